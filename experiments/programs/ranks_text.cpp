#include "experiments/programs/ranks_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::programs {
namespace {

std::uint32_t parse_rank(std::string_view text, std::string_view list) {
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank >= kMaxRanks)
    throw core::InputError(fmt::format("'ranks' must be like \"0-7,16\", with ranks below {}, not \"{}\"", kMaxRanks,
                                       std::string(list.substr(0, 60))));
  return rank;
}

}  // namespace

std::vector<std::uint32_t> parse_ranks(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  for (const std::string_view part : import::words_of(text, ",")) {
    const std::size_t dash = part.find('-');
    const std::uint32_t first = parse_rank(part.substr(0, dash), text);
    const std::uint32_t last = dash == std::string_view::npos ? first : parse_rank(part.substr(dash + 1), text);
    if (last < first) parse_rank("", text);
    for (std::uint32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
    if (ranks.size() > kMaxRanks) parse_rank("", text);
  }
  return ranks;
}

std::vector<std::int64_t> ranks_by_program(const std::vector<std::uint32_t>& program_of_rank, std::size_t programs) {
  std::vector<std::int64_t> ranks(programs);
  for (const std::uint32_t program : program_of_rank) ++ranks[program];
  return ranks;
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    if (!text.empty()) text += ',';
    text += next == first + 1 ? fmt::format("{}", ranks[first]) : fmt::format("{}-{}", ranks[first], ranks[next - 1]);
  }
  return text;
}

}  // namespace manyworlds::experiments::programs

#include "experiments/measured/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/number_in.hpp"
#include "experiments/text/unsupported_row.hpp"

namespace manyworlds::experiments::measured {
namespace {

constexpr double kMaxMib = 1e9;

double positive_number(std::string_view text, std::string_view column) {
  const auto value = core::number_in<double>(text);
  if (!value || !(*value > 0 && *value <= kMaxMib))
    throw import::UnsupportedRow{fmt::format("{} must be numbers above 0 with '+' between them", column),
                                 fmt::format("'{}'", text)};
  return *value;
}

std::vector<double> numbers_of_ranks(const import::CsvRow& row, std::string_view column, std::int64_t ranks) {
  std::vector<double> values;
  for (std::string_view rest = row.text(column); !rest.empty();) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    values.push_back(positive_number(rest.substr(0, end), column));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!values.empty() && static_cast<std::int64_t>(values.size()) != ranks)
    throw import::UnsupportedRow{fmt::format("{} must have one number for each rank", column),
                                 fmt::format("{} numbers, {} ranks", values.size(), ranks)};
  return values;
}

}  // namespace

RankMemory read_rank_memory(const import::CsvRow& row, std::int64_t ranks) {
  return {numbers_of_ranks(row, "rank_allocated_mib", ranks), numbers_of_ranks(row, "rank_reserved_mib", ranks)};
}

}  // namespace manyworlds::experiments::measured

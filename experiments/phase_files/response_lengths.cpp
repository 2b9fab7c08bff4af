#include "experiments/phase_files/response_lengths.hpp"

#include <algorithm>

#include "core/workload/distributions/documents.hpp"
#include "experiments/import/document_lengths.hpp"

namespace manyworlds::experiments::phases {

std::vector<std::int64_t> response_tokens(const ResponseLengths& lengths, std::int64_t count,
                                          const std::string& table) {
  std::vector<std::int64_t> tokens;
  switch (lengths.form) {
    case ResponseLengths::Form::constant:
      tokens.assign(static_cast<std::size_t>(count), lengths.tokens);
      break;
    case ResponseLengths::Form::lognormal:
      tokens = core::workload::lognormal_lengths(lengths.mean, lengths.sigma, lengths.seed, count);
      break;
    case ResponseLengths::Form::table:
      tokens = core::workload::tabled_lengths(import::parse_document_lengths(table, lengths.path), lengths.seed, count);
      break;
  }
  const std::int64_t most = lengths.max_tokens > 0 ? lengths.max_tokens : std::int64_t{1} << 20;
  for (std::int64_t& one : tokens) one = std::min(one, most);
  return tokens;
}

std::vector<std::vector<std::int64_t>> dealt_out(const std::vector<std::int64_t>& tokens, std::int64_t replicas) {
  const auto count = static_cast<std::size_t>(replicas);
  std::vector<std::vector<std::int64_t>> result(count);
  auto from = tokens.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const auto to = from + static_cast<std::ptrdiff_t>(tokens.size() / count + (i < tokens.size() % count ? 1 : 0));
    result[i].assign(from, to);
    from = to;
  }
  return result;
}

}  // namespace manyworlds::experiments::phases

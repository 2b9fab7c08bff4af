#include "experiments/phases/decoding_grid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace manyworlds::experiments::phases {
namespace {

struct Span {
  double least = 0, most = 0;
  void widen(const Span& other) { least = std::min(least, other.least), most = std::max(most, other.most); }
};

/// Returns the mean lengths that stretches have, by their number of samples.
std::map<std::int64_t, Span> spans_of(const std::vector<Decoding>& replicas) {
  std::map<std::int64_t, Span> spans;
  for (const Decoding& replica : replicas)
    for (const Stretch& one : replica.stretches) {
      const Span span{one.first_length(), one.last_length()};
      const auto [known, is_new] = spans.emplace(one.samples, span);
      if (!is_new) known->second.widen(span);
    }
  return spans;
}

std::vector<std::int64_t> lengths_in(const Span& span) {
  const auto least = static_cast<std::int64_t>(std::floor(span.least));
  const auto most = static_cast<std::int64_t>(std::ceil(span.most));
  const std::set<std::int64_t> lengths{least, least + (most - least) / 2, most};
  return {lengths.begin(), lengths.end()};
}

}  // namespace

std::size_t DecodingGrid::below(std::int64_t count) const {
  return static_cast<std::size_t>(std::upper_bound(samples.begin(), samples.end(), count) - samples.begin()) - 1;
}

DecodingGrid decoding_grid(const std::vector<Decoding>& replicas) {
  const std::map<std::int64_t, Span> spans = spans_of(replicas);
  DecodingGrid grid;
  if (spans.empty()) return grid;
  std::set<std::int64_t> samples{spans.rbegin()->first};
  for (std::int64_t power = 1; power < spans.rbegin()->first; power *= 2)
    if (2 * power > spans.begin()->first) samples.insert(power);
  grid.samples.assign(samples.begin(), samples.end());
  std::vector<std::optional<Span>> of_column(samples.size());
  const auto widen = [&](std::size_t column, const Span& span) {
    of_column[column] ? of_column[column]->widen(span) : void(of_column[column] = span);
  };
  std::vector<std::optional<Span>> of_cell(samples.size());
  for (const auto& [count, span] : spans) {
    const std::size_t below = grid.below(count);
    widen(below, span);
    if (count == grid.samples[below]) continue;
    widen(below + 1, span);
    of_cell[below] ? of_cell[below]->widen(span) : void(of_cell[below] = span);
  }
  for (std::size_t column = samples.size(); column-- > 0;)
    if (!of_column[column]) {  // no stretch has so few or so many
      grid.samples.erase(grid.samples.begin() + static_cast<std::ptrdiff_t>(column));
      of_column.erase(of_column.begin() + static_cast<std::ptrdiff_t>(column));
      of_cell.erase(of_cell.begin() + static_cast<std::ptrdiff_t>(column));
    }
  for (const auto& span : of_column) grid.lengths.push_back(lengths_in(*span));
  for (std::size_t column = 0; column < grid.samples.size(); ++column) {
    const Span span = of_cell[column].value_or(*of_column[column]);
    const std::int64_t between =
        of_cell[column] ? (grid.samples[column] + grid.samples[column + 1]) / 2 : grid.samples[column];
    const auto quarter = static_cast<std::int64_t>(std::floor(span.least + (span.most - span.least) / 4));
    const DecodingPoint check{between, std::max(quarter, grid.lengths[column].front())};
    const bool is_known = std::binary_search(grid.lengths[column].begin(), grid.lengths[column].end(), check.length);
    if (between != grid.samples[column] || !is_known) grid.checks.push_back(check);
  }
  return grid;
}

}  // namespace manyworlds::experiments::phases

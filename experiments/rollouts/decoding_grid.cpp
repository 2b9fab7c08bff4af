#include "experiments/rollouts/decoding_grid.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
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

void widen(std::optional<Span>& span, const Span& other) {
  if (span)
    span->widen(other);
  else
    span = other;
}

/// A number of samples that is simulated, with the mean lengths of stretches that use its times.
struct Column {
  std::int64_t samples = 0;
  std::optional<Span> used;     // by stretches of so many samples, and of some more or fewer
  std::optional<Span> between;  // by stretches of more samples, but fewer than the next column's
};

/// Returns columns for powers of two around all numbers of samples, and for the greatest of these.
std::vector<Column> columns_for(const std::map<std::int64_t, Span>& spans) {
  const std::int64_t fewest = spans.begin()->first, most = spans.rbegin()->first;
  std::set<std::int64_t> samples{most};
  for (std::int64_t power = 1; power < most; power *= 2)
    if (2 * power > fewest) samples.insert(power);
  std::vector<Column> columns;
  for (const std::int64_t one : samples) columns.push_back({one, std::nullopt, std::nullopt});
  return columns;
}

/// Notes where the lengths of each number of samples are needed, and drops columns that none needs.
void use(std::vector<Column>& columns, const std::map<std::int64_t, Span>& spans) {
  for (const auto& [count, span] : spans) {
    const auto above =
        std::upper_bound(columns.begin(), columns.end(), count,
                         [](std::int64_t value, const Column& column) { return value < column.samples; });
    Column& below = *std::prev(above);
    widen(below.used, span);
    if (below.samples == count) continue;
    widen(above->used, span);
    widen(below.between, span);
  }
  std::erase_if(columns, [](const Column& column) { return !column.used; });
}

std::vector<std::int64_t> lengths_in(const Span& span) {
  const auto least = static_cast<std::int64_t>(std::floor(span.least));
  const auto most = static_cast<std::int64_t>(std::ceil(span.most));
  const std::set<std::int64_t> lengths{least, least + (most - least) / 2, most};
  return {lengths.begin(), lengths.end()};
}

/// Returns the step half-way to the next column, if stretches are between both, and a quarter of the way between
/// lengths; nullopt if that is simulated anyway.
std::optional<DecodingPoint> check_of(const Column& column, std::int64_t next_samples,
                                      const std::vector<std::int64_t>& lengths) {
  const Span span = column.between.value_or(*column.used);
  const std::int64_t samples = column.between ? (column.samples + next_samples) / 2 : column.samples;
  const auto quarter = static_cast<std::int64_t>(std::floor(span.least + (span.most - span.least) / 4));
  const DecodingPoint check{samples, std::max(quarter, lengths.front())};
  const bool is_simulated =
      samples == column.samples && std::binary_search(lengths.begin(), lengths.end(), check.length);
  if (is_simulated) return std::nullopt;
  return check;
}

}  // namespace

std::size_t DecodingGrid::below(std::int64_t count) const {
  return static_cast<std::size_t>(std::upper_bound(samples.begin(), samples.end(), count) - samples.begin()) - 1;
}

DecodingGrid decoding_grid(const std::vector<Decoding>& replicas) {
  const std::map<std::int64_t, Span> spans = spans_of(replicas);
  DecodingGrid grid;
  if (spans.empty()) return grid;
  std::vector<Column> columns = columns_for(spans);
  use(columns, spans);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    grid.samples.push_back(columns[i].samples);
    grid.lengths.push_back(lengths_in(*columns[i].used));
    const std::int64_t next_samples = columns[std::min(i + 1, columns.size() - 1)].samples;
    if (const auto check = check_of(columns[i], next_samples, grid.lengths.back())) grid.checks.push_back(*check);
  }
  return grid;
}

}  // namespace manyworlds::experiments::phases

#include "farm/phases/rollout_time.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace manyworlds::farm::phases {

using experiments::phases::Decoding;
using experiments::phases::DecodingGrid;
using experiments::phases::Stretch;

namespace {

/// A line between two simulated lengths.
struct Line {
  double length = 0, seconds = 0, per_token = 0;
  double at(double x) const { return seconds + per_token * (x - length); }
};

Line line_of(const std::vector<std::int64_t>& lengths, const std::vector<double>& seconds, std::size_t piece) {
  const auto length = static_cast<double>(lengths[piece]);
  if (lengths.size() == 1) return {length, seconds[0], 0};
  return {length, seconds[piece],
          (seconds[piece + 1] - seconds[piece]) / static_cast<double>(lengths[piece + 1] - lengths[piece])};
}

std::size_t pieces_of(const std::vector<std::int64_t>& lengths) {
  return std::max<std::size_t>(lengths.size(), 2) - 1;
}

std::size_t piece_at(const std::vector<std::int64_t>& lengths, double length) {
  std::size_t piece = 0;
  while (piece + 1 < pieces_of(lengths) && length >= static_cast<double>(lengths[piece + 1])) ++piece;
  return piece;
}

/// Returns how much of the next of two simulated numbers of samples counts.
double share_of_next(const DecodingGrid& grid, std::size_t below, std::int64_t samples) {
  if (grid.samples[below] == samples) return 0;
  return static_cast<double>(samples - grid.samples[below]) /
         static_cast<double>(grid.samples[below + 1] - grid.samples[below]);
}

}  // namespace

double DecodingTimes::step_s(std::int64_t samples, double length) const {
  const std::size_t below = grid_.below(samples);
  const auto at = [&](std::size_t column) {
    return line_of(grid_.lengths[column], seconds_[column], piece_at(grid_.lengths[column], length)).at(length);
  };
  const double next = share_of_next(grid_, below, samples);
  return next == 0 ? at(below) : (1 - next) * at(below) + next * at(below + 1);
}

/// Returns the sum of one column's times over steps whose mean lengths are first_length, first_length + 1, ….
double DecodingTimes::sum_s(std::size_t column, double first_length, std::int64_t steps) const {
  const std::vector<std::int64_t>& lengths = grid_.lengths[column];
  double sum = 0;
  std::int64_t done = 0;
  for (std::size_t piece = piece_at(lengths, first_length); done < steps; ++piece) {
    std::int64_t count = steps - done;
    if (piece + 1 < pieces_of(lengths)) {
      const double left = static_cast<double>(lengths[piece + 1]) - (first_length + static_cast<double>(done));
      count = std::min(count, std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(left))));
    }
    const Line line = line_of(lengths, seconds_[column], piece);
    const auto n = static_cast<double>(count);
    sum += n * line.at(first_length + static_cast<double>(done)) + line.per_token * n * (n - 1) / 2;
    done += count;
  }
  return sum;
}

double DecodingTimes::stretch_s(const Stretch& stretch) const {
  const std::size_t below = grid_.below(stretch.samples);
  const double next = share_of_next(grid_, below, stretch.samples);
  const double sum = sum_s(below, stretch.first_length(), stretch.steps);
  return next == 0 ? sum : (1 - next) * sum + next * sum_s(below + 1, stretch.first_length(), stretch.steps);
}

double PrefillTimes::of(std::int64_t samples) const {
  const auto whole = static_cast<double>(samples / many);
  const std::int64_t rest = samples % many;
  if (rest == 0) return whole * many_s;
  const double per_sample = (many_s - one_s) / static_cast<double>(many - 1);
  return whole * many_s + one_s + per_sample * static_cast<double>(rest - 1);
}

RolloutTime rollout_time(const std::vector<Decoding>& replicas, const DecodingGrid& grid, const DecodingTimes& decoding,
                         const PrefillTimes& prefill) {
  MANYWORLDS_CHECK(!replicas.empty(), "a rollout without replicas");
  RolloutTime result;
  result.share_of_cells.assign(grid.samples.size(), 0);
  double decoding_s = 0;
  for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
    double own_s = 0;
    for (const Stretch& stretch : replicas[replica].stretches) {
      const double seconds = decoding.stretch_s(stretch);
      result.share_of_cells[grid.below(stretch.samples)] += seconds;
      own_s += seconds;
    }
    decoding_s += own_s;
    for (const std::int64_t samples : replicas[replica].prefills) {
      const double seconds = prefill.of(samples);
      result.prefill_s += seconds;
      own_s += seconds;
    }
    result.mean_s += own_s;
    if (own_s <= result.slowest_s) continue;
    result.slowest_s = own_s;
    result.slowest = static_cast<std::int64_t>(replica);
    result.steps = replicas[replica].steps();
  }
  const auto count = static_cast<double>(replicas.size());
  result.mean_s /= count, result.prefill_s /= count;
  for (double& share : result.share_of_cells) share = decoding_s > 0 ? share / decoding_s : 0;
  return result;
}

}  // namespace manyworlds::farm::phases

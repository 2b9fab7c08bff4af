// How long the replicas of a rollout take. The time of a decoding step of n samples is linear in the mean length of
// their caches between simulated lengths, as attention reads all of them, and linear in n between simulated numbers; so
// the sum over the steps between two endings is in closed form.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/rollouts/decoding.hpp"
#include "experiments/rollouts/decoding_grid.hpp"

namespace manyworlds::farm::phases {

class DecodingTimes {
 public:
  /// `seconds` has the time of each point of the grid.
  DecodingTimes(const experiments::phases::DecodingGrid& grid, std::vector<std::vector<double>> seconds)
      : grid_(grid), seconds_(std::move(seconds)) {}

  /// Returns the time of one step, in seconds. `samples` is between the first and the last of the grid; beyond the
  /// simulated lengths the line goes on.
  double step_s(std::int64_t samples, double length) const;
  /// Returns the time of all steps of a stretch.
  double stretch_s(const experiments::phases::Stretch& stretch) const;

 private:
  double sum_s(std::size_t column, double first_length, std::int64_t steps) const;

  const experiments::phases::DecodingGrid& grid_;
  std::vector<std::vector<double>> seconds_;
};

/// Prompts are computed `many` at once at most; fewer are linear between one and these.
struct PrefillTimes {
  double one_s = 0, many_s = 0;
  std::int64_t many = 1;

  double of(std::int64_t samples) const;
};

struct RolloutTime {
  double slowest_s = 0, mean_s = 0;    // of replicas
  double prefill_s = 0;                // mean over replicas
  std::int64_t slowest = 0;            // the replica that ends the phase
  std::int64_t steps = 0;              // decoding steps of it
  std::vector<double> share_of_cells;  // of the decoding time of all replicas, by place in DecodingGrid::samples

  /// Returns the share of the phase that a replica waits for the slowest one, on average.
  double waiting() const { return slowest_s > mean_s ? 1 - mean_s / slowest_s : 0; }
};

RolloutTime rollout_time(const std::vector<experiments::phases::Decoding>& replicas,
                         const experiments::phases::DecodingGrid& grid, const DecodingTimes& decoding,
                         const PrefillTimes& prefill);

}  // namespace manyworlds::farm::phases

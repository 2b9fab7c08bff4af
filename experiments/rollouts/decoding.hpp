// What a replica of a rollout does, counted in decoding steps: continuous batching (Yu et al. 2022, Orca, section 3.2).
// It has a number of samples in flight at most. When some end, as many of those that wait are prefilled, and all decode
// on: each step adds a token to every sample in flight. None of this depends on how long a step takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace manyworlds::experiments::phases {

/// Steps between two endings, in which the same samples are in flight.
struct Stretch {
  std::int64_t samples = 0;
  std::int64_t steps = 0;
  std::int64_t cached = 0;  // tokens in the cache of all samples at the first step; each step adds one for each sample

  double first_length() const { return static_cast<double>(cached) / static_cast<double>(samples); }
  double last_length() const { return first_length() + static_cast<double>(steps - 1); }
  bool operator==(const Stretch&) const = default;
};

struct Decoding {
  std::vector<std::int64_t> prefills;  // how many samples are prefilled at once, each time
  std::vector<Stretch> stretches;
  std::int64_t most_cached = 0;  // tokens in the cache of a replica at any time, of all its samples

  std::int64_t steps() const;
};

/// Returns what a replica does with its samples, whose responses have `tokens` each, in order. A prompt's prefill makes
/// the first token of its response, and each step one more. All numbers are 1 or more.
Decoding decoding_of(std::span<const std::int64_t> tokens, std::int64_t prompt_tokens, std::int64_t concurrent);

}  // namespace manyworlds::experiments::phases

// Random decisions as hashes of their subject: the same on every machine and in every order of evaluation.
#pragma once

#include <cstdint>

namespace manyworlds::core {

inline constexpr std::uint64_t kSplitMixIncrement = 0x9E3779B97F4A7C15ull;

/// Returns the output of SplitMix64 for the state `x` (Steele et al. 2014, figure 17). The next state is
/// x + kSplitMixIncrement.
constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += kSplitMixIncrement;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// Returns the hash of a random decision: the `index`-th decision of `subject` under `seed`.
constexpr std::uint64_t decision_hash(std::uint64_t seed, std::uint64_t subject, std::uint64_t index) {
  return splitmix64(splitmix64(splitmix64(seed) ^ subject) ^ index);
}

/// Returns a hash as a number in [0, 1).
constexpr double unit_interval(std::uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

}  // namespace manyworlds::core

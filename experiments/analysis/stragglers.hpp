// Slow nodes and ranks, found from what a training run can measure of itself: how long the kernels of each rank take by
// phase (L0) and by pass (L1), and how long communication takes from the moment all have come (L2). Ranks are compared
// with peers that do the same work, by median and median absolute deviation (MAD); times until a barrier, which slow
// ranks make long for their victims too, are never looked at. A communicator that is slow beside others of its kind
// does not tell which member makes it so: its members then send to each other pair by pair.
//
// Megatron-LM's straggler detection (megatron/core/README_STRAGGLER.md) reports the least and the largest time and
// throughput over ranks; MegaScale (Jiang et al. 2024, section 5) and Greyhound (Wu et al. 2025) test pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/step/run/recording.hpp"

namespace manyworlds::experiments {

/// How it is measured. The noise is an assumption, no measurement: every figure of a step is off by a normal error of
/// its own, and one in a hundred is half as long again; the median over the steps counts.
struct Measuring {
  std::int64_t seed = 1;
  std::int64_t steps = 10;
  double noise = 0.02;  // standard deviation, share
  /// What is reported: this much over the median of the peers, and so many deviations.
  double slower = 0.1;
  double deviations = 5;
};

enum class StragglerLevel : std::uint8_t { phase, pass, communication };  // L0, L1, L2

/// Something that a rank (or a communicator) does, and how long it takes.
struct Sample {
  std::uint32_t who = 0;
  StragglerLevel level = StragglerLevel::phase;
  std::string what;   // "forward"
  std::string peers;  // those with the same text are to take as long
  double seconds = 0;
};

struct Outlier {
  std::uint32_t who = 0;
  StragglerLevel level = StragglerLevel::phase;
  std::string what;
  double slower = 0;  // over the median of the peers, share
};
/// Samples that are longer than those of their peers, of which there must be 3 at least; in the order of the samples.
std::vector<Outlier> outliers(const std::vector<Sample>& samples, const Measuring& measuring);

/// What somebody who measures `samples` sees of them.
std::vector<Sample> measured(std::vector<Sample> samples, const Measuring& measuring);

/// Kernels of the ranks, of which `recording` must have all.
std::vector<Sample> kernel_samples(const core::step::World& world, const core::step::Recording& recording);

struct Straggler {
  std::uint32_t rank = 0, gpu = 0;
  std::int64_t node = 0;
  std::vector<Outlier> seen;  // the one that is most over its peers first
};

struct StragglerReport {
  std::vector<Straggler> found;          // by rank
  std::vector<std::string> unexplained;  // communicators that are slow, none of whose members is
  std::vector<std::string> alone;        // what has fewer than 3 peers and was not compared
  double least_s = 0, most_s = 0;        // kernels of a step on a rank: Megatron-LM's MnRtt, MxRtt
  std::uint32_t least_rank = 0, most_rank = 0;
};
StragglerReport find_stragglers(const core::step::World& world, const core::step::Recording& recording,
                                const Measuring& measuring);

}  // namespace manyworlds::experiments

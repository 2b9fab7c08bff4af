// Finds slow nodes and ranks from what a training run can measure of itself: how long the kernels of each rank take by
// phase (L0) and by phase and chunk (L1), and how long communication takes once all members have entered (L2). Ranks
// are compared with peers that do the same work, by median and median absolute deviation (MAD); times until a barrier
// are not used, because slow ranks prolong them for their victims too. A communicator that is slower than others of its
// kind does not tell which member is the cause: its members then send to each other pair by pair.
//
// Megatron-LM's straggler detection (megatron/core/README_STRAGGLER.md) reports the smallest and the largest time and
// throughput over ranks; MegaScale (Jiang et al. 2024, section 5) and Greyhound (Wu et al. 2025) test pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/step/run/recording.hpp"

namespace manyworlds::experiments {

/// How measurement is modelled. The noise is an assumption, not a measurement: every value of a step has a normal error
/// of its own, and one in a hundred is half as long again; the median over the steps is used.
struct MeasurementModel {
  std::int64_t seed = 1;
  std::int64_t steps = 10;
  double noise = 0.02;  // standard deviation, share
  /// Thresholds for a report: share by which the median of the peers is exceeded, and number of deviations.
  double slower = 0.1;
  double deviations = 5;
};

enum class StragglerLevel : std::uint8_t { phase, pass, communication };  // L0; L1: a phase of one chunk; L2

/// The time that a rank or a communicator, `Subject` is the id of which, needs for one activity.
template <class Subject>
struct Sample {
  Subject subject;
  StragglerLevel level = StragglerLevel::phase;
  std::string activity;  // "forward", "forward, chunk 1"
  std::string peers;     // samples with the same text should take equally long
  double seconds = 0;
};

template <class Subject>
struct Outlier {
  Subject subject;
  StragglerLevel level = StragglerLevel::phase;
  std::string activity;
  double slower = 0;  // share above the median of the peers
};
/// Returns the samples that are longer than those of their peers, in order. Samples in groups of fewer than 3,
/// themselves included, are skipped.
template <class Subject>
std::vector<Outlier<Subject>> outliers(const std::vector<Sample<Subject>>& samples,
                                       const MeasurementModel& measurement);

/// Returns `samples` with measurement noise added.
template <class Subject>
std::vector<Sample<Subject>> with_noise(std::vector<Sample<Subject>> samples, const MeasurementModel& measurement);

/// Which program of its file each given program is (programs::TimedPrograms::copied_from); empty: none are given.
/// Ranks that run one program do the same work, whatever their GPUs are.
using ProgramsOfFile = std::vector<std::uint32_t>;

/// Returns the kernel times of the ranks; `recording` must contain all ranks.
std::vector<Sample<core::step::RankId>> kernel_samples(const core::step::CompiledStep& compiled,
                                                       const core::step::Recording& recording,
                                                       const ProgramsOfFile& programs = {});

struct Straggler {
  core::step::RankId rank;
  core::step::GpuId gpu;
  std::int64_t node = 0;
  std::vector<Outlier<core::step::RankId>> seen;  // by level, then with the largest excess over the peers first
};

struct StragglerReport {
  std::vector<Straggler> found;           // by rank
  std::vector<std::string> unexplained;   // slow communicators none of whose members is slow
  std::vector<std::string> not_compared;  // groups of fewer than 3 ranks, whose kernels were not compared
  double min_s = 0, max_s = 0;            // kernel time of a step on a rank: Megatron-LM's MnRtt and MxRtt
  core::step::RankId min_rank, max_rank;
};
StragglerReport find_stragglers(const core::step::CompiledStep& compiled, const core::step::Recording& recording,
                                const MeasurementModel& measurement, const ProgramsOfFile& programs = {});

}  // namespace manyworlds::experiments

// Ramps of batches as Megatron-LM has them: --rampup-batch-size START INCREMENT SAMPLES with --global-batch-size LAST.
// Each batch from START on takes an equal part of SAMPLES, and LAST the rest
// (megatron/core/num_microbatches_calculator.py, RampupBatchsizeNumMicroBatchesCalculator).
#pragma once

#include <optional>
#include <span>

#include "farm/ramp/batch_schedule.hpp"

namespace manyworlds::farm::ramp {

struct MegatronRamp {
  std::int64_t start = 0, increment = 0, samples = 0, last = 0;  // all of them samples
  BatchSchedule schedule;
};

/// Returns the ramp to `end`, in steps of an infinite batch, that takes the least time, of all whose batches are
/// candidates of one layout; nullopt if none is faster than the best fixed batch of any layout. SAMPLES is the best of
/// 200 values in equal proportions up to those that START alone would need, refined between the neighbours of the best
/// by golden section and rounded to a whole number. Changes are taken to come when they are due, not at the end of the
/// step then.
std::optional<MegatronRamp> best_megatron_ramp(const CriticalBatch& critical, std::span<const Candidate> candidates,
                                               double tokens_per_sample, double end);

}  // namespace manyworlds::farm::ramp

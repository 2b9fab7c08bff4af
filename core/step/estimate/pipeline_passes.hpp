// The passes of a pipeline in an order in which they can run, for lower bounds of when they begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/schedule/stage_map.hpp"

namespace manyworlds::core::step {

/// How long the passes of one micro-batch through a chunk are at least if they begin when their inputs are there.
struct PassTimes {
  Time forward = 0, backward = 0, input_gradient = 0, weight_gradient = 0;

  Time of(workload::PassKind kind) const {
    const Time all[] = {forward, backward, input_gradient, weight_gradient};
    return all[static_cast<std::size_t>(kind)];
  }
};

/// What a chunk of a pipeline's stage takes at least.
struct ChunkTimes {
  PassTimes passes;
  Time gathered_ps = 0;   // when its parameters are there; its first forward pass does not end before
  Time reduction_ps = 0;  // what the rank waits for after each pass that has weight gradients
};

/// When the passes of a stage end at the earliest.
struct StagePasses {
  struct WeightGradients {
    std::size_t chunk = 0;
    bool last = false;  // of the chunk, in the step
    Time begin = 0, end = 0;
  };
  Time drained_ps = 0;                          // end of its last pass
  std::vector<WeightGradients> gradients = {};  // of passes that have weight gradients, in their order
};

class PipelinePasses {
 public:
  /// `orders` must run to their end.
  PipelinePasses(const workload::StageMap& stage_map, const std::vector<workload::PassOrder>& orders);

  /// Runs every pass in its rank's order as soon as it has its inputs, which arrive from other ranks `transfer_ps`
  /// after they are computed; passes that overlap begin and end together. `chunks` has the chunks of each stage.
  std::vector<StagePasses> run(const std::vector<std::vector<ChunkTimes>>& chunks, Time transfer_ps) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Pass {
    std::uint32_t stage = 0, chunk = 0;
    workload::PassKind kind = workload::PassKind::forward;
    bool first = false, last = false;  // forward pass, and pass with weight gradients, of its chunk
    bool with_next = false;            // begins and ends with the next of these
    bool sent = false;                 // its input comes from another rank
    std::uint32_t input = kNone;       // the pass that computes it
  };
  std::vector<Pass> passes_;  // so that inputs stand before what needs them
  std::size_t stages_;
};

}  // namespace manyworlds::core::step

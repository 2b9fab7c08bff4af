// What a pipeline sends from stage to stage: hidden states of the network that a stage ends in, whose width and tokens
// may be others than the model's, and of which hyper-connections have several for each token.
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Bytes of one micro-batch between two virtual stages, forward; gradients are as many.
struct StageBoundary {
  std::int64_t bytes = 0;           // that each tensor rank has
  std::int64_t transfer_bytes = 0;  // that each of them sends: less if they share out the transfer
};

/// Returns what enters virtual stage `virtual_stage`, from 1: hidden states of the network that ends or goes on there.
/// In front of the model's last network, and in networks of other sizes before it, embedded tokens go with them, as the
/// embedding is in the first stage and the last network reads them; a teacher's states go with the student's, too. All
/// vectors of a token are sent (Megatron-LM, core/pipeline_parallel/schedules.py @d48bd6b, get_tensor_shapes()).
StageBoundary stage_boundary(const Model& model, const Strategy& strategy, std::int64_t virtual_stage);

/// Returns the mean over all boundaries of virtual stages; of a single stage what the model's hidden states are.
StageBoundary mean_boundary(const Model& model, const Strategy& strategy);

/// Returns the least that there is between any two layers, whatever layers stages have.
StageBoundary least_boundary(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload

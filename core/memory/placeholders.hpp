// Weight gradients that nobody reads. Where GEMMs add weight gradients to those of earlier micro-batches, the backward
// pass still has to return a gradient. Transformer Engine returns a tensor that was never written, and keeps one for
// each shape of a weight from then on (get_dummy_wgrad, pytorch/module/base.py: linear layers since 2.3, grouped ones
// since 2.10).
#pragma once

#include <cstdint>

#include "core/memory/activations.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

/// Returns the bytes that the layers of pipeline stage `stage` keep for such gradients: one tensor in 16 bits for each
/// shape of a weight, however many layers and experts have it.
TensorBytes placeholder_gradients(const workload::Model& model, const workload::Strategy& strategy, std::int64_t stage);

}  // namespace manyworlds::core::memory

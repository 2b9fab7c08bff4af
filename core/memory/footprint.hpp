// Peak device memory of a rank and what it is made of. Activation formulas: Korthikanti et al. 2022 (arXiv
// 2205.05198), section 4; optimizer states: Rajbhandari et al. 2020 (ZeRO), section 3.
#pragma once

#include <cstdint>

#include "core/workload/model.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::memory {

/// Bytes on one rank at the moment its activations peak.
struct Footprint {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;  // kept by all micro-batches in flight
  std::int64_t recomputed = 0;   // of the one layer whose activations are made again for its backward pass
  std::int64_t logits = 0;       // last stage: the vocabulary layer's output and its gradient
  std::int64_t total() const { return weights + gradients + optimizer + activations + recomputed + logits; }
};

/// Bytes one layer keeps of one micro-batch for the backward pass.
std::int64_t activation_bytes_per_layer(const workload::Model& model, const workload::Strategy& strategy);

/// Layers times micro-batches that a rank of `stage` keeps activations of when it keeps most.
std::int64_t layers_in_flight(const workload::Model& model, const workload::Strategy& strategy, std::int64_t stage);

/// Peak of pipeline rank `stage` (0-based; all tp and dp ranks of a stage are alike).
Footprint footprint(const workload::Model& model, const workload::Strategy& strategy, std::int64_t stage);

/// The largest footprint over all stages.
Footprint peak(const workload::Model& model, const workload::Strategy& strategy);

}  // namespace manyworlds::core::memory

// The feed-forward part of a layer with experts (Lepikhin et al. 2021, GShard, section 2): a router, the experts that
// it sends tokens to, and a shared expert that every token visits.
#pragma once

#include <cstdint>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

/// Options of experts besides those of the model.
struct ExpertOptions {
  std::int64_t latent = 0;       // width that tokens are projected to before they are sent, and back from; 0: not
  bool correction_bias = false;  // the router adds a number for each expert to its scores before it selects
  bool router_bias = false;      // the router's matrix has a bias, even if other linear layers have none
  bool shared_gate = false;      // what the shared expert returns is multiplied by a gate
};

PartType experts_type();
/// Returns experts without such options.
const LayerPart& experts_part();

}  // namespace manyworlds::core::workload

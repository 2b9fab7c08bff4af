// Weights, gradients and optimizer states of a rank: 16-bit weights, gradients in the precision in which the framework
// accumulates them, and fp32 weights and two moments (Adam); of frozen weights only the first. For the sharding over
// data-parallel ranks see Rajbhandari et al. 2020 (ZeRO), section 5.
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

struct ModelState {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t gathered = 0;  // ZeRO 2 and 3: temporarily gathered weights and full gradients; factors of replicas
};

/// Returns the bytes of model state on a rank of pipeline stage `stage`, without embedding tables that ranks share out
/// (workload::table_bytes()).
ModelState model_state(const workload::Model& model, const workload::Strategy& strategy, std::int64_t stage);

}  // namespace manyworlds::core::memory

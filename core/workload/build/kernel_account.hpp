// What the kernels of a step rest on: measurements, or the model where nobody measured.
#pragma once

#include <array>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/layer/prices.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// What the kernels of a step rest on.
struct KernelAccount {
  Prices prices;
  std::array<Wide, compute::kLevelNames.size()> ps{};  // of one rank of every class, by compute::Level
  std::vector<compute::Kernel> modelled;               // distinct ones that no measurement covers, sorted

  double share(compute::Level level) const;  // of all those times
};

KernelAccount kernel_account(const Model& model, const Strategy& strategy, const compute::Gpu& gpu);

}  // namespace manyworlds::core::workload

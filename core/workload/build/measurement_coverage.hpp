// How much of a step's kernel time is based on measurements, and how much on the model.
#pragma once

#include <array>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/layer/kernel_costs.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Sources of the kernel times of one step.
struct MeasurementCoverage {
  KernelCosts costs;
  std::array<Int128, compute::kCostLevelNames.size()>
      ps{};                               // by compute::CostLevel, summed over one rank of every class
  std::vector<compute::Kernel> modelled;  // distinct kernels that no measurement covers, sorted

  double share(compute::CostLevel level) const;  // fraction of the total kernel time
};

MeasurementCoverage measurement_coverage(const Model& model, const Strategy& strategy, const compute::Gpu& gpu);

}  // namespace manyworlds::core::workload

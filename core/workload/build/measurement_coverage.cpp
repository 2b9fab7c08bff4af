#include "core/workload/build/measurement_coverage.hpp"

#include <set>

#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/trained_parameters.hpp"

namespace manyworlds::core::workload {

using compute::CostLevel;

double MeasurementCoverage::share(compute::CostLevel level) const {
  Int128 sum = 0;
  for (const Int128 each : ps) sum += each;
  return sum > 0 ? static_cast<double>(ps.at(static_cast<std::size_t>(level))) / static_cast<double>(sum) : 0;
}

MeasurementCoverage measurement_coverage(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  MeasurementCoverage result;
  std::set<compute::Kernel> modelled;
  for (const RankClass& rank_class : rank_classes(model, strategy)) {
    stage_work(model, strategy, gpu, rank_class, &result.costs);
    for (const compute::Kernel& kernel :
         optimizer_kernels(strategy, trained_stage_parameters(model, strategy, rank_class.stage)))
      record_cost(result.costs, kernel, gpu);
    for (const KernelUse& use : kernels_used(model, strategy, gpu, rank_class)) {
      result.ps.at(static_cast<std::size_t>(use.level)) += static_cast<Int128>(use.cost_ps) * use.times;
      if (use.level == CostLevel::model) modelled.insert(use.kernel);
    }
  }
  result.modelled.assign(modelled.begin(), modelled.end());
  return result;
}

}  // namespace manyworlds::core::workload

#include "core/workload/build/kernel_account.hpp"

#include <set>

#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

using compute::Level;

double KernelAccount::share(compute::Level level) const {
  Wide sum = 0;
  for (const Wide each : ps) sum += each;
  return sum > 0 ? static_cast<double>(ps.at(static_cast<std::size_t>(level))) / static_cast<double>(sum) : 0;
}

KernelAccount kernel_account(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  KernelAccount made;
  std::set<compute::Kernel> modelled;
  for (const RankClass& of : rank_classes(model, strategy)) {
    stage_work(model, strategy, gpu, of, &made.prices);
    for (const compute::Kernel& kernel : optimizer_kernels(strategy, stage_parameters(model, strategy, of.stage)))
      note(made.prices, kernel, gpu);
    for (const KernelUse& use : kernels_used(model, strategy, gpu, of)) {
      made.ps.at(static_cast<std::size_t>(use.level)) += static_cast<Wide>(use.cost_ps) * use.times;
      if (use.level == Level::model) modelled.insert(use.kernel);
    }
  }
  made.modelled.assign(modelled.begin(), modelled.end());
  return made;
}

}  // namespace manyworlds::core::workload

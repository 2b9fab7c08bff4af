// The kernels of a stage's program, counted from its parts instead of its operations.
#include <map>
#include <tuple>

#include "core/base/error.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

std::vector<KernelUse> kernels_used(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                                    RankClass rank_class) {
  const StageWork work = stage_work(model, strategy, gpu, rank_class);
  std::map<ModelPart, std::int64_t> parts;
  for (const auto& chunk : work.chunks)
    for (const ModelPart part : chunk) parts[part] += strategy.chunk_micro_batches();

  std::map<std::tuple<compute::Kernel, Time, compute::CostLevel, compute::TimeBasis>, std::int64_t> times;
  const auto add = [&](const compute::Kernel& kernel, const compute::KernelCost& cost, std::int64_t count) {
    times[{kernel, cost.ps, cost.level, cost.basis}] += count;
  };
  Parameters parameters;
  for (const auto& [part, runs] : parts) {
    const std::int64_t copies = runs / strategy.chunk_micro_batches();
    parameters.dense += work.of(part).trained.dense * copies;
    parameters.experts += work.of(part).trained.experts * copies;
    for (const PhaseList* pass : {&work.of(part).forward, &work.of(part).backward})
      for (const Phase& phase : *pass)
        for (const WorkItem& item : phase.ops)
          if (const KernelWork* kernel = item.kernel()) add(kernel->shape, kernel->cost, runs);
    for (const WeightFactors& weight : work.of(part).factors)
      for (const WorkItem& item : weight.gradient) add(item.kernel()->shape, item.kernel()->cost, copies);
  }
  for (const compute::Kernel& kernel : optimizer_kernels(strategy, parameters))
    add(kernel, compute::kernel_cost(kernel, gpu), 1);

  std::vector<KernelUse> uses;
  for (const auto& [use, count] : times) {
    const auto& [kernel, ps, level, basis] = use;
    uses.push_back({kernel, ps, level, basis, count});
  }
  return uses;
}

}  // namespace manyworlds::core::workload

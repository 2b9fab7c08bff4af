// The kernels of a stage's program, counted without walking it.
#include <map>
#include <tuple>

#include "core/base/error.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

std::vector<KernelUse> kernels_used(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                                    RankClass of) {
  const StageWork work = stage_work(model, strategy, gpu, of);
  std::map<Part, std::int64_t> parts;
  for (const auto& chunk : work.chunks)
    for (const Part part : chunk) parts[part] += strategy.chunk_micro_batches();

  std::map<std::tuple<compute::Kernel, Time, compute::Level>, std::int64_t> times;
  Parameters parameters;
  for (const auto& [part, runs] : parts) {
    const std::int64_t copies = runs / strategy.chunk_micro_batches();
    parameters.dense += work.of(part).parameters.dense * copies;
    parameters.experts += work.of(part).parameters.experts * copies;
    for (const Pass* pass : {&work.of(part).forward, &work.of(part).backward})
      for (const Phase& phase : *pass)
        for (const Work& item : phase.tape)
          if (item.kind == Work::Kind::kernel) times[{item.kernel, item.price.ps, item.price.level}] += runs;
  }
  for (const compute::Kernel& kernel : optimizer_kernels(strategy, parameters)) {
    const compute::Price price = compute::price(kernel, gpu);
    times[{kernel, price.ps, price.level}] += 1;
  }

  std::vector<KernelUse> uses;
  for (const auto& [use, count] : times)
    uses.push_back({std::get<compute::Kernel>(use), std::get<Time>(use), std::get<compute::Level>(use), count});
  return uses;
}

}  // namespace manyworlds::core::workload

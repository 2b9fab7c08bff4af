// Small models under strategies of every kind, for the tests of programs.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "core/workload/build/build_program.hpp"
#include "tests/core/workload/workload_models.hpp"

namespace manyworlds::core::workload {

inline Model small(bool llama_style, std::int64_t layers) {
  return llama_style ? llama(layers, 512, 8, 4, 1'024, 3'000) : gpt(layers, 512, 8, 3'000);
}

inline std::vector<Program> programs(const Model& model, const Strategy& strategy) {
  std::vector<Program> all;
  const auto orders = pipeline_orders(model, strategy, round_gpu());
  for (std::int64_t stage = 0; stage < strategy.pp; ++stage)
    all.push_back(build_program(model, strategy, round_gpu(), orders, stage));
  return all;
}

/// Strategies over schedules, sizes, cuts and recomputation; each with a model whose layers it divides.
inline std::vector<std::pair<Model, Strategy>> grid() {
  std::vector<std::pair<Model, Strategy>> all;
  for (const auto& [pp, v, m] :
       {std::tuple{1, 1, 3}, {2, 1, 5}, {2, 1, 1}, {4, 1, 4}, {2, 2, 4}, {4, 2, 8}, {4, 3, 4}, {3, 2, 9}, {8, 2, 16}})
    for (const ScheduleType& type : schedules()) {
      if (!schedule_infeasible_reason(type, {pp, m, v}).empty()) continue;
      for (const int tp : {1, 4})
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
          for (const bool fancy : {false, true}) {  // sequence parallel, ZeRO 1, Llama style; or none of them
            Strategy strategy = layout(tp, pp, 2, 2 * 2 * m, v);
            strategy.dp = 2;
            strategy.schedule = schedule_by_name(type.name);
            strategy.recompute = recompute;
            strategy.sequence_parallel = fancy;
            strategy.zero = fancy;
            strategy.overlap_grad_reduce = recompute != Recompute::full;
            strategy.bucket_parameters = 1'000'000;
            all.push_back({small(fancy, 2 * pp * v), strategy});
          }
    }
  return all;
}

}  // namespace manyworlds::core::workload

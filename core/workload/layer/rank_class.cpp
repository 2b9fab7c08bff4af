// The rank classes of a parallel configuration.
#include "core/workload/layer/rank_class.hpp"

#include "core/workload/parts/expert_load.hpp"

namespace manyworlds::core::workload {

std::vector<RankClass> rank_classes(const Model& model, const Strategy& strategy) {
  const std::int64_t expert_ranks = expert_ranks_differ(model, strategy) ? strategy.ep : 1;
  std::vector<RankClass> classes;
  for (std::int64_t stage = 0; stage < strategy.pp; ++stage)
    for (std::int64_t e = 0; e < expert_ranks; ++e) classes.emplace_back(stage, e);
  return classes;
}

}  // namespace manyworlds::core::workload

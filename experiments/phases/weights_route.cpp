#include "experiments/phases/weights_route.hpp"

#include <algorithm>

#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::experiments::phases {
namespace {

using core::workload::Strategy;

/// Returns the ranks of a stage that hold its weights together.
std::int64_t shards_of(const Strategy& strategy) {
  return strategy.zero == 3 ? strategy.tp * strategy.shards() : std::max(strategy.tp, strategy.ep * strategy.etp);
}

bool is_same_layout(const Strategy& a, const Strategy& b) {
  return a.tp == b.tp && a.pp == b.pp && a.ep == b.ep && a.etp == b.etp && a.cp == b.cp &&
         a.virtual_stages == b.virtual_stages && a.zero < 3;
}

/// Returns the GPU of each rank.
class GpusOfRanks {
 public:
  explicit GpusOfRanks(const PoolOfModel& pool) : first_(pool.first_gpu) {
    const Strategy& strategy = pool.config.configuration.strategy;
    layout_.tp = strategy.tp, layout_.cp = strategy.cp, layout_.dp = strategy.dp, layout_.pp = strategy.pp;
    layout_.placement = pool.config.configuration.placement;
  }
  std::uint32_t operator()(std::int64_t rank) const {
    return first_ + core::step::gpu_of(layout_, core::step::RankId(static_cast<std::uint32_t>(rank))).value();
  }

 private:
  std::uint32_t first_;
  core::step::ParallelConfig layout_;
};

}  // namespace

std::int64_t ranks_with_model(const Strategy& strategy) {
  return shards_of(strategy) * strategy.pp;
}

WeightsRoute weights_route(const PoolOfModel& trained, const PoolOfModel& used, bool same_gpus) {
  const Strategy& strategy = trained.config.configuration.strategy;
  WeightsRoute route;
  if (same_gpus && is_same_layout(strategy, used.config.configuration.strategy)) return route;
  const GpusOfRanks gpu(trained);
  const std::int64_t per_stage = strategy.tp * strategy.cp * strategy.dp, shards = shards_of(strategy);
  for (std::int64_t group = 0; group < per_stage / shards && ranks_with_model(strategy) > 1; ++group) {
    route.gatherers.emplace_back();
    for (std::int64_t stage = 0; stage < strategy.pp; ++stage)
      for (std::int64_t shard = 0; shard < shards; ++shard)
        route.gatherers.back().push_back(gpu(stage * per_stage + group * shards + shard));
  }
  if (same_gpus) return route;
  route.receivers = {gpu(0)};
  for (std::int64_t i = 0; i < used.gpus; ++i)
    route.receivers.push_back(used.first_gpu + static_cast<std::uint32_t>(i));
  return route;
}

}  // namespace manyworlds::experiments::phases

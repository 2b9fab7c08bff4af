#include "experiments/weight_transfers/weights_route.hpp"

#include <algorithm>
#include <numeric>

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

/// Returns the groups of GPUs that each hold a pool's model together; none if each GPU holds it.
std::vector<std::vector<std::uint32_t>> gatherers_of(const PoolOfModel& pool) {
  const Strategy& strategy = pool.config.configuration.strategy;
  std::vector<std::vector<std::uint32_t>> groups;
  if (ranks_with_model(strategy) == 1) return groups;
  const GpusOfRanks gpu(pool);
  const std::int64_t per_stage = strategy.tp * strategy.cp * strategy.dp, shards = shards_of(strategy);
  for (std::int64_t group = 0; group < per_stage / shards; ++group) {
    groups.emplace_back();
    for (std::int64_t stage = 0; stage < strategy.pp; ++stage)
      for (std::int64_t shard = 0; shard < shards; ++shard)
        groups.back().push_back(gpu(stage * per_stage + group * shards + shard));
  }
  return groups;
}

std::vector<std::uint32_t> gpus_of(const PoolOfModel& pool) {
  std::vector<std::uint32_t> gpus(static_cast<std::size_t>(pool.gpus));
  std::iota(gpus.begin(), gpus.end(), pool.first_gpu);
  return gpus;
}

}  // namespace

std::int64_t ranks_with_model(const Strategy& strategy) {
  return shards_of(strategy) * strategy.pp;
}

WeightsRoute route_on_same_gpus(const PoolOfModel& trained, const PoolOfModel& used) {
  WeightsRoute route;
  if (!is_same_layout(trained.config.configuration.strategy, used.config.configuration.strategy))
    route.gatherers = gatherers_of(trained);
  return route;
}

WeightsRoute route_to_other_gpus(const PoolOfModel& trained, const PoolOfModel& used, BroadcastGroup group) {
  WeightsRoute route;
  route.gatherers = gatherers_of(trained);
  const std::uint32_t first = GpusOfRanks(trained)(0);
  route.receivers = {first};
  if (group == BroadcastGroup::all_trainers)
    for (const std::uint32_t gpu : gpus_of(trained))
      if (gpu != first) route.receivers.push_back(gpu);
  const std::vector<std::uint32_t> replicas = gpus_of(used);
  route.receivers.insert(route.receivers.end(), replicas.begin(), replicas.end());
  return route;
}

}  // namespace manyworlds::experiments::phases

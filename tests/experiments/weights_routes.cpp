// Who takes part in a transfer of weights, of layouts that are small enough to be written down.
#include "experiments/weight_transfers/weights_route.hpp"

#include <catch2/catch.hpp>

namespace manyworlds::experiments::phases {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;
using Gpus = std::vector<std::uint32_t>;

PoolOfModel pool(std::uint32_t first_gpu, std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  PoolOfModel result;
  core::workload::Strategy& strategy = result.config.configuration.strategy;
  strategy.tp = tp, strategy.pp = pp, strategy.dp = dp;
  result.first_gpu = first_gpu, result.gpus = tp * pp * dp;
  return result;
}

}  // namespace

TEST_CASE("on the same GPUs weights are gathered unless the layout is the same") {
  CHECK_FALSE(route_on_same_gpus(pool(0, 2, 1, 2), pool(0, 2, 1, 2)).moves());
  const WeightsRoute gathered = route_on_same_gpus(pool(0, 2, 1, 2), pool(0, 1, 1, 4));
  CHECK(gathered.gatherers == Groups{{0, 1}, {2, 3}});
  CHECK(gathered.receivers.empty());
  // Each GPU has the model: nothing has to be gathered for any layout.
  CHECK_FALSE(route_on_same_gpus(pool(0, 1, 1, 4), pool(0, 2, 1, 2)).moves());
}

TEST_CASE("under ZeRO 3 all ranks that share weights gather them, in equal layouts too") {
  PoolOfModel trained = pool(0, 2, 1, 2);
  trained.config.configuration.strategy.zero = 3;
  CHECK(ranks_with_model(trained.config.configuration.strategy) == 4);
  CHECK(route_on_same_gpus(trained, trained).gatherers == Groups{{0, 1, 2, 3}});
}

TEST_CASE("weights go to other GPUs from the first trainer, in whose group all trainers may be") {
  const PoolOfModel trained = pool(4, 1, 2, 2), used = pool(0, 2, 1, 2);
  const WeightsRoute alone = route_to_other_gpus(trained, used, BroadcastGroup::first_trainer);
  CHECK(alone.gatherers.size() == 2);
  CHECK(alone.gatherers.front().size() == 2);  // both stages
  CHECK(alone.receivers == Gpus{4, 0, 1, 2, 3});
  const WeightsRoute all = route_to_other_gpus(trained, used, BroadcastGroup::all_trainers);
  CHECK(all.gatherers == alone.gatherers);
  CHECK(all.receivers == Gpus{4, 5, 6, 7, 0, 1, 2, 3});
}

}  // namespace manyworlds::experiments::phases

// Ranks that go alike although their collectives share links are simulated once, against all ranks.
#include <catch2/catch.hpp>

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

struct Simulated {
  step::StepResult result;
  std::size_t ranks = 0;
};

Simulated simulate(const step::Configuration& configuration, step::Ranks ranks) {
  step::SimulationContext context;
  step::IsolatedResults results;
  const step::CompiledStep compiled = context.compile(configuration, ranks);
  return {context.run(compiled, results), compiled.symmetry().representative_rank.size()};
}

/// What a step gives, but for how it was computed: collectives that overlap are one episode of all members, or one of
/// those that stand for them.
std::string answer_of(step::StepResult result) {
  result.computed = {};
  result.cpu_s = 0;
  result.episodes.clear();
  return step::encode(result);
}

/// A drawn configuration with more replicas, on rails or leaves that are often short of bandwidth.
step::Configuration draw_replicated(std::uint64_t seed) {
  step::Configuration configuration = draw_configuration(seed);
  std::mt19937_64 random(seed);
  Cluster cluster;
  cluster.gpus_per_node = static_cast<std::uint32_t>(configuration.gpus_per_node);
  workload::Strategy& s = configuration.strategy;
  cluster.nodes = static_cast<std::uint32_t>(4 * s.tp * s.pp) >> random() % 2;
  cluster.rails = random() % 4 != 0;
  cluster.spines = 1 + static_cast<std::uint32_t>(random() % 2);
  if (random() % 3 == 0) cluster.nic = 50'000'000'000;
  configuration.graph = graph_of(cluster);
  const std::int64_t micro_batches = s.global_batch / s.dp;
  s.dp = cluster.nodes * cluster.gpus_per_node / (s.tp * s.pp);
  s.global_batch = micro_batches * s.dp;
  s.zero = s.dp > 1 ? static_cast<std::int64_t>(seed % 3) : 0;
  s.overlap_grad_reduce = seed % 4 != 0;
  s.stack.overlap_parameters = s.zero > 0 && s.zero < 3 && seed % 2 == 0;
  if (seed % 4 != 3) configuration.collectives.all_reduce = collective::Algorithm::ring;
  if (seed % 4 != 2) configuration.transport.routing = network::Routing::destination_mod_k;
  return configuration;
}

}  // namespace

TEST_CASE("a step whose alike ranks are merged is the step of all ranks, packet by packet") {
  std::size_t merged = 0, with_episodes = 0, with_marks = 0, with_pauses = 0;
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_replicated(seed);
    if (seed % 5 == 0) configuration = with_context_and_experts(configuration, seed);
    const Simulated some = simulate(configuration, step::Ranks::representatives);
    if (some.ranks == configuration.graph->gpus) continue;
    const Simulated all = simulate(configuration, step::Ranks::all);
    REQUIRE(answer_of(some.result) == answer_of(all.result));
    if (seed % 5 == 0) {
      configuration.composition = step::Composition::coupled;
      CHECK(simulate(configuration, step::Ranks::all).result.step_ps == some.result.step_ps);
    }
    ++merged;
    with_episodes += !some.result.episodes.empty();
    with_marks += some.result.ecn_marks > 0;
    with_pauses += some.result.pauses > 0;
  }
  UNSCOPED_INFO(merged << " merged, " << with_episodes << " with episodes, " << with_marks << " with marks, "
                       << with_pauses << " with pauses");
  CHECK((merged > 25 && with_episodes > 15 && with_marks > 3 && with_pauses > 3));
}

TEST_CASE("under packets the simulated ranks of a rail do not grow with its nodes") {
  for (const std::uint32_t nodes : {4u, 8u, 16u, 32u}) {
    step::Configuration configuration = config_of({nodes, 4}, 2, 2, 4);
    configuration.strategy.zero = 1;
    configuration.collectives.all_reduce = collective::Algorithm::ring;
    // Two stages of two nodes of two replicas, as a ring of replicas goes through every other node backwards. The ranks
    // of a replica go alike: their rings are on rails of their own.
    CHECK(simulate(configuration, step::Ranks::representatives).ranks == 2 * 4);
  }
}

TEST_CASE("under packets rails go alike where no two nodes of a stage do") {
  step::Configuration configuration = config_of({8, 8}, 8, 2, 4);
  configuration.collectives.all_reduce = collective::Algorithm::ring;
  // One of the four nodes of a stage is further away, as if it were in a pod of its own.
  auto graph = std::make_shared<network::Graph>(*configuration.graph);
  for (network::Link& link : graph->links)
    if (link.kind == network::LinkKind::network && std::min(link.from, link.to) < 8) link.latency_ps += kMicrosecond;
  configuration.graph = graph;
  const Simulated some = simulate(configuration, step::Ranks::representatives);
  CHECK(some.ranks == 8);  // one for each node
  CHECK(answer_of(some.result) == answer_of(simulate(configuration, step::Ranks::all).result));
}

TEST_CASE("ranks are not merged where one of them differs") {
  step::Configuration configuration = config_of({8, 4}, 2, 2, 4);
  configuration.strategy.zero = 1;
  configuration.collectives.all_reduce = collective::Algorithm::ring;
  const auto ranks = [&] { return simulate(configuration, step::Ranks::representatives).ranks; };
  CHECK(ranks() == 8);
  step::Configuration other = configuration;
  auto graph = std::make_shared<network::Graph>(*configuration.graph);
  for (network::Link& link : graph->links)
    if (link.kind == network::LinkKind::network && link.from == 0) link.bits_per_second /= 2;
  configuration.graph = graph;
  CHECK(ranks() == 32);
  configuration.graph = other.graph;
  configuration.transport.rate_tolerance_ppm = 10'000;
  CHECK_FALSE(step::can_deduplicate_ranks(configuration));
}

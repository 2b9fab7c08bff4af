// Tensor parallelism over nodes: its groups are communicators like others of these GPUs, with all their NICs, and
// composed and coupled steps agree.
#include <catch2/catch.hpp>
#include <map>

#include "core/network/fabric/router.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::core;
using namespace manyworlds::tests;
using workload::Role;

namespace {

/// The layout of a step, and what its first group with a role does and uses.
struct GroupUse {
  collective::Shape shape;
  std::shared_ptr<const step::Connections> connections;
};

GroupUse use_of(const step::Configuration& configuration, Role role, collective::Kind kind) {
  step::RankLayout layout(step::parallel_config_of(configuration),
                          std::make_shared<network::Router>(configuration.graph, configuration.transport.routing, 0));
  const step::GroupId group = layout.group_of(step::RankId{0}, role);
  REQUIRE(group != step::RankLayout::kNoGroup);
  GroupUse result;
  result.shape = step::shape_of(configuration, layout.kinds()[layout.groups()[group].kind], kind, 1 << 20);
  result.connections = layout.connections_of(group, layout.connectivity_number(collective::build(result.shape)));
  return result;
}

/// Four nodes of four GPUs, each with a NIC, and a group of eight GPUs on the first two of them.
step::Configuration eight_over_two_nodes(std::int64_t tp, std::int64_t pp) {
  step::Configuration result = config_of({.nodes = 4, .gpus_per_node = 4}, tp, pp, 4);
  result.collectives.channels = 0;  // as the library: each member's NIC
  return result;
}

}  // namespace

TEST_CASE("a tensor-parallel group over nodes has the collectives and paths of replicas on the same GPUs") {
  const step::Configuration tensor = eight_over_two_nodes(8, 1), replicas = eight_over_two_nodes(1, 2);
  for (const collective::Kind kind : {collective::Kind::all_gather, collective::Kind::reduce_scatter}) {
    const GroupUse a = use_of(tensor, Role::tensor, kind), b = use_of(replicas, Role::data, kind);
    CHECK(a.shape == b.shape);
    CHECK(a.connections->routes == b.connections->routes);
    CHECK(a.shape.members == 8);
    CHECK(a.shape.per_node == 4);
    CHECK(a.shape.channels == 4);
  }
}

TEST_CASE(
    "a ring of a tensor-parallel group over nodes enters and leaves each node by every NIC, each for one channel") {
  const step::Configuration tensor = eight_over_two_nodes(8, 1);
  const GroupUse use = use_of(tensor, Role::tensor, collective::Kind::all_gather);
  std::map<std::uint32_t, int> sends, receives;  // pairs by the cable of a NIC
  for (const network::Route& route : use.connections->routes)
    for (const std::uint32_t link : route) {
      const network::LinkSpec spec = network::spec_of(*tensor.graph, link);
      if (spec.scale_up) continue;
      if (spec.leaves_gpu) ++sends[link];
      if (spec.enters_gpu) ++receives[link];
    }
  for (const auto* side : {&sends, &receives}) {
    CHECK(side->size() == 8);  // two nodes of four NICs
    for (const auto& [link, pairs] : *side) CHECK(pairs == 1);
  }
}

TEST_CASE("steps with tensor parallelism over nodes are composed as they are coupled") {
  for (const std::int64_t tp : {8, 16})
    for (const bool sequence_parallel : {false, true})
      for (const bool overlap : {false, true})
        for (const std::int64_t channels : {0, 1}) {
          if (overlap && !sequence_parallel) continue;
          step::Configuration configuration = config_of({.nodes = 4, .gpus_per_node = 4}, tp, 1, 2);
          configuration.model.heads = 16;
          configuration.strategy.sequence_parallel = sequence_parallel;
          configuration.strategy.stack.overlap_tensor = overlap;
          configuration.collectives.channels = channels;
          std::vector<step::StepResult> results;
          for (const auto composition : {step::Composition::composed, step::Composition::coupled}) {
            configuration.composition = composition;
            step::SimulationContext context(true);
            step::IsolatedResults isolated;
            results.push_back(context.run(context.compile(configuration), isolated));
          }
          CAPTURE(tp, sequence_parallel, overlap, channels);
          CHECK(results[0].step_ps == results[1].step_ps);
          CHECK(results[0].link_hops == results[1].link_hops);
        }
}

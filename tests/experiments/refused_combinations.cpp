// What rules leave of a document: combinations of a sweep, lines of a single experiment, and layouts that are valid.
#include <catch2/catch.hpp>

#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::StartsWith;

TEST_CASE("steps take every transport and routing, coupled or as fluids where not composed") {
  for (const std::string set :
       {"transport.routing=spray", "transport.routing=adaptive", "transport.routing=flowlet", "transport.fabric=lossy"})
    CHECK(read(kSingle, {set}).experiments.size() == 1);
  for (const std::string set : {"transport.acks=in_band", "transport=eqds"}) {
    CAPTURE(set);
    CHECK_THAT(error_of(kSingle, {set}), Contains("violates rule composed_acks: ") && Contains("composition coupled"));
    for (const std::string other : {"composition=coupled", "fidelity=fluid", "fidelity=analytic"})
      CHECK(read(kSingle, {set, other}).experiments.size() == 1);
    CHECK(read(kSingle, {set}, {.scope = Scope::network}).experiments.size() == 1);
  }
}

TEST_CASE("a single invalid experiment names the line of the key") {
  CHECK_THAT(
      error_of(with(kSingle, "tp: 2", "tp: 3")),
      StartsWith("s.yaml:6: 'strategy.tp' violates rule tp_by_node: tp must divide gpus_per_node or be a multiple of "
                 "it: a tensor-parallel group is a part of a node, or whole nodes: gpus_per_node 4, tp 3; it violates "
                 "heads_by_tp, "));
  CHECK_THAT(error_of(with(kSingle, "hidden: 64", "hidden: 66")), StartsWith("s.yaml:2: 'model.hidden'"));
}

TEST_CASE("in a sweep an invalid combination is left out and kept with its rule") {
  const Sweep sweep = read(kSingle + "axes:\n  strategy.tp: [1, 2, 3, 4]\n");
  REQUIRE(sweep.experiments.size() == 3);
  REQUIRE(sweep.excluded.size() == 1);
  CHECK(sweep.excluded[0].rule == "tp_by_node");
  CHECK(sweep.excluded[0].axes == std::vector<core::OptionValue>{std::int64_t{3}});
  CHECK(integer(sweep.experiments[2], "strategy.tp") == 4);
  CHECK(sweep.experiments[2].id == 2);
}

TEST_CASE("two-level all-reduce is valid where replicas share nodes and span several") {
  CHECK(error_of(kSingle, {"collectives.all_reduce=two_level", "strategy.pp=1"}) == "(no error)");
  CHECK_THAT(error_of(kSingle, {"collectives.all_reduce=two_level", "strategy.pp=1", "cluster.nodes=1"}),
             Contains("two_level_needs_levels"));
}

TEST_CASE("data parallel size follows from the GPUs") {
  GraphCache graphs;
  const Sweep sweep = read(kSingle + "axes:\n  strategy.tp: [1, 2, 4]\n");
  for (const Experiment& experiment : sweep.experiments) {
    const auto result = configure(experiment, graphs);
    CHECK(result.strategy.tp * result.strategy.pp * result.strategy.dp == 8);
    CHECK(result.graph->gpus == 8);
  }
  CHECK(configure(sweep.experiments[0], graphs).graph == configure(sweep.experiments[2], graphs).graph);
}

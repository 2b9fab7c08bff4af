// Algorithms of some groups, as sweeps name them.
#include "experiments/config/collective_groups.hpp"

#include <catch2/catch.hpp>

#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::testing;
using core::collective::Algorithm;
using core::workload::Role;

TEST_CASE("a sweep varies the algorithms of one kind of group") {
  const auto sweep = read(kSingle + "axes:\n  collectives.data.all_reduce: [library, double_tree]\n",
                          {"collectives.all_reduce=halving_doubling"});
  REQUIRE(sweep.experiments.size() == 2);
  experiments::GraphCache graphs;
  const auto library = configure(sweep.experiments[0], graphs), tree = configure(sweep.experiments[1], graphs);
  CHECK(library.library_of(Role::data) == library.collectives);
  CHECK(tree.library_of(Role::data).all_reduce == Algorithm::double_tree);
  CHECK(tree.library_of(Role::data_inter_group).all_reduce == Algorithm::double_tree);
  CHECK(tree.library_of(Role::tensor).all_reduce == Algorithm::halving_doubling);
  CHECK(tree.collectives.all_reduce == Algorithm::halving_doubling);
  // What nobody asks for is nowhere: the settings of a sweep without it are those of before.
  CHECK(configure(read(kSingle).experiments[0], graphs).group_libraries.empty());
  CHECK(read(kSingle).experiments[0].settings.count("collectives.data.all_reduce") == 0);
}

TEST_CASE("every group that a sweep can name takes algorithms, and others are refused by name") {
  experiments::GraphCache graphs;
  for (const experiments::CollectiveGroup& group : experiments::collective_groups()) {
    INFO(group.name);
    const auto own =
        configure(read(kSingle, {"collectives." + group.name + ".all_gather=ring"}).experiments[0], graphs);
    CHECK(own.group_libraries.size() == group.roles.size());
    for (const Role role : group.roles) CHECK(own.library_of(role).all_gather == Algorithm::ring);
  }
  CHECK(error_of(kSingle + "  collectives: {tensors: {all_reduce: ring}}\n").find("s.yaml:7") == 0);
  CHECK(error_of(kSingle + "  collectives: {tensor: {all_reduce: pairwise}}\n").find("'pairwise'") !=
        std::string::npos);
  CHECK(error_of(kSingle + "  collectives: {tensor: {channels: 2}}\n").find("channels") != std::string::npos);
}

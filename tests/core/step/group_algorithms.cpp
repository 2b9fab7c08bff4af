// Groups whose collectives have algorithms of their own.
#include <map>
#include <set>

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using collective::Algorithm;
using workload::Role;

namespace {

/// Four nodes of four: groups of four tensor-parallel ranks, and of four replicas, one in each node.
step::Configuration tensor_and_data() {
  Cluster cluster;
  cluster.nodes = 4;
  return config_of(cluster, 4, 1, 2);
}

void set_own(step::Configuration& configuration, Role role, const collective::GroupAlgorithms& algorithms) {
  configuration.group_libraries[role] = collective::with_algorithms(configuration.collectives, algorithms);
}

/// Returns the algorithms of the all-reduces of each role.
std::map<Role, std::set<Algorithm>> all_reduces_of(const step::Configuration& configuration) {
  step::SimulationContext context;
  const step::CompiledStep compiled = context.compile(configuration);
  std::map<Role, std::set<Algorithm>> used;
  for (const step::CollectiveOp& op : compiled.collective_ops())
    if (op.shape.kind == collective::Kind::all_reduce)
      used[compiled.layout().groups()[op.group].role].insert(op.shape.algorithm);
  return used;
}

}  // namespace

TEST_CASE("groups of a role have their own algorithm, and all others the library's") {
  step::Configuration configuration = tensor_and_data();
  configuration.collectives.all_reduce = Algorithm::ring;
  set_own(configuration, Role::data, {.all_reduce = Algorithm::double_tree});
  const auto used = all_reduces_of(configuration);
  CHECK(used.at(Role::tensor) == std::set{Algorithm::ring});
  CHECK(used.at(Role::data) == std::set{Algorithm::double_tree});
  // The same, said the other way round.
  step::Configuration other = tensor_and_data();
  other.collectives.all_reduce = Algorithm::double_tree;
  set_own(other, Role::tensor, {.all_reduce = Algorithm::ring});
  for (const step::Composition composition : {step::Composition::composed, step::Composition::coupled})
    CHECK(run_configuration(configuration, composition).step_ps == run_configuration(other, composition).step_ps);
}

TEST_CASE("groups with the algorithms of the library change nothing, whoever shares a context") {
  step::Configuration plain = tensor_and_data(), own = plain, tree = plain;
  set_own(own, Role::data, {});
  set_own(tree, Role::data, {.all_reduce = Algorithm::double_tree});
  for (const network::Fidelity fidelity :
       {network::Fidelity::packet, network::Fidelity::fluid, network::Fidelity::analytic}) {
    step::SimulationContext context;  // in which nothing of one must be taken for the other
    const auto step_of = [&](step::Configuration configuration, step::SimulationContext& in) {
      configuration.transport.fidelity = fidelity;
      if (fidelity == network::Fidelity::fluid) return in.run_fluids(configuration, step::Ranks::all).step_ps;
      step::IsolatedResults results;
      return in.run(in.compile(configuration), results).step_ps;
    };
    step::SimulationContext alone;
    const Time expected = step_of(plain, context), other = step_of(tree, context);
    CHECK(step_of(own, context) == expected);
    CHECK(other != expected);
    CHECK(step_of(tree, alone) == other);
  }
}

TEST_CASE("each operation of a group has its algorithm, halves that of its all-reduce") {
  collective::Library library;
  library.all_reduce = Algorithm::ring;
  const auto only = [](const collective::Library& of, collective::Kind kind) { return of.candidates(kind).at(0); };
  const auto own = collective::with_algorithms(
      library, {.all_reduce = Algorithm::halving_doubling, .all_to_all = Algorithm::node_aware});
  CHECK(only(own, collective::Kind::all_reduce) == Algorithm::halving_doubling);
  CHECK(only(own, collective::Kind::reduce_scatter) == Algorithm::halving_doubling);
  CHECK(only(own, collective::Kind::all_to_all) == Algorithm::node_aware);
  CHECK(only(own, collective::Kind::broadcast) == library.broadcast);
  CHECK(only(library, collective::Kind::reduce_scatter) == Algorithm::ring);
  CHECK(collective::with_algorithms(library, {}) == library);
  for (const auto& row : collective::group_algorithm_options().rows())
    CHECK(std::get<std::string>(row.info.default_value) == "library");
}

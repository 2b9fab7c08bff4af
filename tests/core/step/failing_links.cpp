// Cables that fail while a step of fluids is under way: against closed forms, and steps on the fabric that is left.
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>

#include "core/step/fluid/failing_links.hpp"
#include "core/step/fluid/fluid_network.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using step::LinkFailures;

namespace {

constexpr Time kMs = 1'000'000'000;

step::Configuration fluid(step::Configuration configuration) {
  configuration.transport.fidelity = network::Fidelity::fluid;
  configuration.transport.routing = network::Routing::ecmp_hash;
  configuration.collectives = {};
  return configuration;
}

/// Ranks on nodes of two, of which those with equal tensor rank average their gradients over a leaf per node and two
/// spines.
step::Configuration two_pairs(std::int64_t seed) {
  Cluster cluster;
  cluster.nodes = 2, cluster.gpus_per_node = 2, cluster.rails = false, cluster.spines = 2;
  step::Configuration result = fluid(config_of(cluster, 2, 1, 1));
  result.transport.seed = seed;
  return result;
}

/// Collectives that all enter at one instant, by themselves.
class Race {
 public:
  explicit Race(const step::Configuration& configuration)
      : compiled_(context_.compile(configuration)), cache_(packets(configuration)), efficiency_(cache_) {
    for (const step::InstanceId instance : compiled_.instance_ids()) {
      const auto role = compiled_.layout().groups()[compiled_.group_of(instance)].role;
      if (role == workload::Role::data && first_.try_emplace(compiled_.group_of(instance), instance).second)
        results_[op(instance).key] = std::make_shared<step::IsolatedResult>(context_.isolated(compiled_, op(instance)));
    }
  }

  std::vector<step::InstanceId> instances() const {
    std::vector<step::InstanceId> result;
    for (const auto& [group, instance] : first_) result.push_back(instance);
    return result;
  }
  const step::CollectiveOp& op(step::InstanceId instance) const { return compiled_.collective_op_of(instance); }
  const step::CompiledStep& compiled() const { return compiled_; }

  /// Returns when the last member of each leaves.
  std::vector<Time> ends(const std::vector<step::InstanceId>& racing) {
    const auto network = step::make_fluid(compiled_, results_, efficiency_);
    std::vector<step::Member> members;
    for (const step::InstanceId instance : racing)
      for (std::uint32_t member = 0; member < op(instance).dag->members; ++member)
        members.push_back({instance, member});
    network->enter(0, members);
    std::vector<Time> ends(racing.size(), 0);
    for (Time at = network->next_exit(kNever); at != kNever; at = network->next_exit(kNever)) {
      std::vector<step::Member> exits;
      network->take_exits(at, exits);
      for (const step::Member& member : exits)
        for (std::size_t i = 0; i < racing.size(); ++i)
          if (racing[i] == member.instance) ends[i] = at;
    }
    return ends;
  }

 private:
  static network::Transport packets(const step::Configuration& configuration) {
    network::Transport transport = configuration.transport;
    transport.fidelity = network::Fidelity::packet;
    return transport;
  }
  step::SimulationContext context_;
  step::CompiledStep compiled_;
  network::ComponentCache cache_;
  step::TransportEfficiency efficiency_;
  step::IsolatedResults results_;
  std::map<step::GroupId, step::InstanceId> first_;
};

/// The cables between switches that an operation crosses, each by its lower link.
std::set<std::uint32_t> cables_of(const Race& race, step::InstanceId instance) {
  const network::Graph& graph = race.compiled().layout().graph();
  std::set<std::uint32_t> result;
  for (const std::uint32_t link : race.op(instance).connections->links)
    if (graph.vertices[graph.links[link].from] == network::VertexKind::network_switch &&
        graph.vertices[graph.links[link].to] == network::VertexKind::network_switch)
      result.insert(link & ~1u);
  return result;
}

/// Returns a seed by which both directions of the first pair go over one spine, and those of the second over the other.
std::int64_t parting_seed() {
  for (std::int64_t seed = 1;; ++seed) {
    const Race race(two_pairs(seed));
    const auto all = race.instances();
    REQUIRE(all.size() == 2);
    const auto a = cables_of(race, all[0]), b = cables_of(race, all[1]);
    std::set<std::uint32_t> both = a;
    both.insert(b.begin(), b.end());
    if (a.size() == 2 && b.size() == 2 && both.size() == 4) return seed;
  }
}

step::Configuration failing(step::Configuration configuration, std::uint32_t link, Time at, Time reconvergence,
                            Time retransmit = 0) {
  configuration.failures = {{{link, at}}, reconvergence, retransmit};
  return configuration;
}

}  // namespace

TEST_CASE("a collective whose cable fails stands still until routes avoid it and senders send again") {
  const step::Configuration configuration = two_pairs(parting_seed());
  Race intact(configuration);
  const step::InstanceId one = intact.instances().front();
  const Time alone = intact.ends({one}).front();
  const std::set<std::uint32_t> cables = cables_of(intact, one);
  for (const std::uint32_t cable : cables)
    for (const std::uint32_t direction : {0u, 1u}) {
      const auto end = [&](Time at, Time reconvergence, Time retransmit) {
        Race race(failing(configuration, cable + direction, at, reconvergence, retransmit));
        return race.ends({one}).front();
      };
      CHECK(end(alone / 3, 5 * kMs, 0) == alone + 5 * kMs);
      CHECK(end(0, 5 * kMs, 0) == alone + 5 * kMs);
      CHECK(end(alone - 1, 1, 0) == alone + 1);
      CHECK(end(alone / 3, 5 * kMs, 2 * kMs) == alone + 6 * kMs);  // the third retransmission arrives
      CHECK(end(alone / 3, 4 * kMs, 2 * kMs) == alone + 4 * kMs);
      CHECK(end(alone, 5 * kMs, 0) == alone);  // it is over
    }
  for (std::uint32_t cable = 0; cable < configuration.graph->links.size(); cable += 2)
    if (configuration.graph->links[cable].from >= 4 && cables.count(cable) == 0 &&
        configuration.graph->links[cable].kind == network::LinkKind::network)
      CHECK(Race(failing(configuration, cable, alone / 3, 5 * kMs)).ends({one}).front() == alone);
}

TEST_CASE("two collectives on two spines go over one when routes avoid the other, each at the speed that is left") {
  const step::Configuration configuration = two_pairs(parting_seed());
  Race intact(configuration);
  const std::vector<step::InstanceId> both = intact.instances();
  const Time alone = intact.ends({both[0]}).front();
  REQUIRE(intact.ends(both) == std::vector{alone, alone});
  // What one takes of the time of an uplink: of both ways the busier, which are equal in a ring of two.
  const std::vector<step::PairLoad> loads = step::pair_loads_of(*intact.op(both[0]).dag, configuration.transport);
  const double busy = static_cast<double>(serialization_ps(loads[0].bytes, 200'000'000'000));
  const double share = busy / static_cast<double>(alone), speed = 1 / (2 * share);
  REQUIRE(speed < 1);
  for (const double failed : {0.1, 0.4})
    for (const double avoided : {0.05, 0.3}) {
      const auto at = static_cast<Time>(failed * static_cast<double>(alone));
      const auto outage = static_cast<Time>(avoided * static_cast<double>(alone));
      Race race(failing(configuration, *cables_of(intact, both[0]).begin(), at, outage));
      const std::vector<Time> ends = race.ends(both);
      // The second has gone on meanwhile; then both share its spine until it ends, and the first has the outage left.
      const Time begin = at + outage;
      const double second = static_cast<double>(begin) + static_cast<double>(alone - begin) / speed;
      CHECK(static_cast<double>(ends[1]) == Approx(second).margin(1'000));
      CHECK(static_cast<double>(ends[0]) == Approx(second + static_cast<double>(outage)).margin(1'000));
    }
}

TEST_CASE("a cable that fails at the begin of a step leaves the step of a fabric without it") {
  std::size_t steps = 0, longer = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    step::Configuration drawn = draw_configuration(seed);
    drawn.transport.fidelity = network::Fidelity::fluid;
    drawn.collectives.all_reduce = collective::Algorithm::ring;
    if (seed % 4 == 0) drawn.collectives.qps_per_connection = 2;
    if (seed % 4 == 1) drawn.transport.ecmp_weights = network::PathWeights::rate;
    std::vector<std::uint32_t> uplinks, spines;
    for (std::uint32_t link = 0; link < drawn.graph->links.size(); link += 2)
      if (drawn.graph->vertices[drawn.graph->links[link].from] == network::VertexKind::network_switch)
        uplinks.push_back(link), spines.push_back(drawn.graph->links[link].to);
    if (std::set(spines.begin(), spines.end()).size() < 2) continue;
    INFO("seed " << seed);
    const std::uint32_t cable = uplinks[seed % uplinks.size()];
    step::Configuration without = drawn;
    network::Graph left = *drawn.graph;
    left.links.erase(left.links.begin() + cable, left.links.begin() + cable + 2);
    without.graph = std::make_shared<const network::Graph>(left);
    const Time expected = run_at(without, network::Fidelity::fluid).step_ps;
    const auto failed = run_at(failing(drawn, cable, 0, 1), network::Fidelity::fluid);
    REQUIRE(failed.step_ps == expected);
    const Time intact = run_at(drawn, network::Fidelity::fluid).step_ps;
    REQUIRE(run_at(failing(drawn, cable, intact + 1, 1), network::Fidelity::fluid).step_ps == intact);
    // In the middle, for a time: the same with and without sharing, and no shorter than what the outage leaves.
    const step::Configuration middle = failing(drawn, cable, intact / 2, kMs);
    const auto shared = run_at(middle, network::Fidelity::fluid);
    REQUIRE(run_at(middle, network::Fidelity::fluid, step::Ranks::all, false).step_ps == shared.step_ps);
    longer += shared.step_ps > intact + kMs / 2;
    ++steps;
  }
  CHECK(steps > 15);
  CHECK(longer > 5);
}

TEST_CASE("steps that differ in what fails have keys of their own") {
  const step::Configuration configuration = two_pairs(1);
  const auto key = [](const step::Configuration& one) { return step::SimulationContext().summary(one).step; };
  const step::Configuration failed = failing(configuration, 8, kMs, kMs);
  CHECK(key(failed) == key(failing(configuration, 8, kMs, kMs)));
  CHECK_FALSE(key(failed) == key(configuration));
  CHECK_FALSE(key(failed) == key(failing(configuration, 8, 2 * kMs, kMs)));
  CHECK_FALSE(key(failed) == key(failing(configuration, 8, kMs, 2 * kMs)));
  CHECK_FALSE(key(failed) == key(failing(configuration, 8, kMs, kMs, kMs)));
  CHECK_FALSE(key(failed) == key(failing(configuration, 10, kMs, kMs)));
}

TEST_CASE("several cables fail and are avoided one after the other") {
  // Four spines; the cables that a pair goes over fail in turn, each while routes still avoid the one before.
  Cluster cluster;
  cluster.nodes = 2, cluster.gpus_per_node = 1, cluster.rails = false, cluster.spines = 4;
  step::Configuration configuration = fluid(config_of(cluster, 1, 1, 1));
  Race intact(configuration);
  const step::InstanceId one = intact.instances().front();
  const Time alone = intact.ends({one}).front();
  const std::set<std::uint32_t> first = cables_of(intact, one);
  for (const std::uint32_t cable : first) configuration.failures.cables.push_back({cable, alone / 4});
  configuration.failures.reconvergence_ps = 3 * kMs;
  CHECK(Race(configuration).ends({one}).front() == alone + 3 * kMs);
  // One more, of all that are left but those of one spine, a while after the collective has gone on.
  for (std::uint32_t link = 0; link < configuration.graph->links.size(); link += 2) {
    const network::Link& cable = configuration.graph->links[link];
    const std::uint32_t last = static_cast<std::uint32_t>(configuration.graph->vertices.size()) - 1;
    if (configuration.graph->vertices[cable.from] != network::VertexKind::network_switch) continue;
    if (cable.to != last && first.count(link) == 0)
      configuration.failures.cables.push_back({link, alone / 2 + 3 * kMs});
  }
  const bool last_is_first = std::any_of(first.begin(), first.end(), [&](std::uint32_t link) {
    return configuration.graph->links[link].to + 1 == configuration.graph->vertices.size();
  });
  if (!last_is_first) {
    const Time end = Race(configuration).ends({one}).front();
    CHECK((end == alone + 3 * kMs || end == alone + 6 * kMs));  // whether the new route was the last spine's
  }
}

// Cables that fail while a step of packets is under way: against the step without failures, that of the fabric that is
// left, and the step as fluids.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

constexpr Time kMs = 1'000'000'000;

step::StepResult packets(const step::Configuration& configuration) {
  return run_configuration(configuration, step::Composition::coupled);
}

step::Configuration failing(step::Configuration configuration, std::uint32_t link, Time at, Time reconvergence,
                            Time retransmit = 0) {
  configuration.failures = {{{link, at}}, reconvergence, retransmit};
  return configuration;
}

/// A drawn step with a cable between switches that others can stand for; no cable if it has none.
struct Drawn {
  step::Configuration configuration;
  std::uint32_t cable = UINT32_MAX;
};
Drawn draw(std::uint64_t seed) {
  Drawn drawn{draw_configuration(seed), UINT32_MAX};
  drawn.configuration.collectives.all_reduce = collective::Algorithm::ring;
  const network::Graph& graph = *drawn.configuration.graph;
  std::vector<std::uint32_t> uplinks;
  std::set<std::uint32_t> spines;
  for (std::uint32_t link = 0; link < graph.links.size(); link += 2)
    if (graph.vertices[graph.links[link].from] == network::VertexKind::network_switch)
      uplinks.push_back(link), spines.insert(graph.links[link].to);
  if (spines.size() > 1) drawn.cable = uplinks[seed % uplinks.size()];
  return drawn;
}

}  // namespace

TEST_CASE("a step of packets whose cable fails after its end is the step without failures") {
  int steps = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Drawn drawn = draw(seed);
    if (drawn.cable == UINT32_MAX) continue;
    INFO("seed " << seed);
    const step::StepResult intact = packets(drawn.configuration);
    const step::StepResult failed = packets(failing(drawn.configuration, drawn.cable, intact.step_ps + 1, 1));
    require_same_packets(failed, intact);
    CHECK(failed.packets_lost == 0);
    CHECK(failed.packets_sent_again == 0);
    CHECK(step::decode_step(step::encode(failed)).step_ps == failed.step_ps);
    ++steps;
  }
  CHECK(steps > 5);
}

TEST_CASE("a step of packets whose cable fails at its begin is that of the fabric that is left") {
  int steps = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Drawn drawn = draw(seed);
    if (drawn.cable == UINT32_MAX) continue;
    step::Configuration without = drawn.configuration;
    network::Graph left = *drawn.configuration.graph;
    left.links.erase(left.links.begin() + drawn.cable, left.links.begin() + drawn.cable + 2);
    without.graph = std::make_shared<const network::Graph>(left);
    INFO("seed " << seed);
    const step::StepResult failed = packets(failing(drawn.configuration, drawn.cable, 0, 1));
    if (failed.packets_lost > 0) continue;  // collectives that begin with the step lose their first packets
    require_same_packets(failed, packets(without));
    ++steps;
  }
  CHECK(steps > 5);
}

TEST_CASE("what a failure adds to a step is for packets what it is for fluids, to a quarter of the outage at most") {
  int longer = 0, steps = 0;
  double differences = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Drawn drawn = draw(seed);
    if (drawn.cable == UINT32_MAX) continue;
    const auto added = [&](auto run) {
      const Time intact = run(drawn.configuration).step_ps;
      const step::StepResult failed = run(failing(drawn.configuration, drawn.cable, intact / 3, kMs));
      CHECK(failed.packets_sent_again == failed.packets_lost);
      return static_cast<double>(failed.step_ps - intact);
    };
    const double by_packets = added(packets),
                 by_fluids = added([](const step::Configuration&one) { return run_at(one, network::Fidelity::fluid); });
    INFO("seed " << seed << ", " << drawn.configuration.transport.kind);
    // Fluids stop a collective as a whole and as long as the cable is in use, and know no congestion control.
    const double difference = std::abs(by_packets - by_fluids) / static_cast<double>(kMs);
    CHECK(difference < 0.25);
    differences += difference;
    longer += by_packets > 0;
    ++steps;
  }
  CHECK(longer > 5);
  CHECK(differences / steps < 0.05);
}

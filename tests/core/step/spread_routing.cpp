// Steps whose packets choose their paths one by one: packets composed and coupled, fluids, and their bounds.
#include <catch2/catch.hpp>

#include <cmath>

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

/// A drawn configuration over leaves and two to four spines, one cable of which may be down or slow.
step::Configuration draw_spread(std::uint64_t seed, network::Routing routing) {
  step::Configuration result = draw_configuration(seed);
  std::mt19937_64 random(seed);
  Cluster cluster;
  cluster.nodes = static_cast<std::uint32_t>(result.graph->gpus / result.gpus_per_node);
  cluster.gpus_per_node = static_cast<std::uint32_t>(result.gpus_per_node);
  cluster.rails = false;
  cluster.spines = static_cast<std::uint32_t>(2 + random() % 3);
  cluster.uplink = random() % 2 == 0 ? 200'000'000'000 : 100'000'000'000;
  auto graph = std::make_shared<network::Graph>(*graph_of(cluster));
  const std::size_t cable = graph->links.size() - 2;  // of the last leaf and the last spine
  if (random() % 3 == 0) graph->links.resize(cable);
  if (random() % 3 == 1)
    for (const std::size_t link : {cable, cable + 1})
      if (link < graph->links.size()) graph->links[link].bits_per_second /= 2;
  result.graph = graph;
  result.transport.routing = routing;
  if (result.transport.kind == "hpcc") result.transport.kind = "dctcp";  // HPCC needs one path
  return undisturbed(std::move(result));
}

constexpr network::Routing kSpread[] = {network::Routing::spray, network::Routing::adaptive, network::Routing::flowlet};

}  // namespace

TEST_CASE("composed and coupled agree to the picosecond where packets choose their paths") {
  std::size_t episodes = 0, collectives = 0;
  for (std::uint64_t seed = 1; seed <= 45; ++seed) {
    const network::Routing routing = kSpread[seed % 3];
    INFO("seed " << seed);
    step::Configuration configuration = draw_spread(seed, routing);
    if (seed % 5 == 0) configuration.transport.fabric = network::Fabric::lossy;
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    require_same_packets(composed, coupled);
    REQUIRE(run_configuration(configuration, step::Composition::composed, false).step_ps == composed.step_ps);
    episodes += composed.episodes.size();
    collectives += composed.collectives.size();
  }
  CHECK(episodes > 45);
  CHECK(collectives > 45);
}

TEST_CASE("where there is nothing to choose, packets that choose take the time of those on pinned paths") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    Cluster cluster;
    cluster.nodes = static_cast<std::uint32_t>(configuration.graph->gpus / configuration.gpus_per_node);
    cluster.gpus_per_node = static_cast<std::uint32_t>(configuration.gpus_per_node);
    cluster.spines = 1;
    configuration.graph = graph_of(cluster);
    const step::StepResult pinned = run_configuration(configuration, step::Composition::composed);
    for (const network::Routing routing : kSpread) {
      configuration.transport.routing = routing;
      for (const step::Composition composition : {step::Composition::composed, step::Composition::coupled}) {
        const step::StepResult spread = run_configuration(configuration, composition);
        REQUIRE(spread.step_ps == pinned.step_ps);
        REQUIRE(spread.link_hops == pinned.link_hops);
      }
    }
  }
}

TEST_CASE("fluids that are sprayed or adaptive are no faster than the bound, and have one answer") {
  std::size_t contended = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    for (const network::Routing routing : {network::Routing::spray, network::Routing::adaptive}) {
      INFO("seed " << seed);
      const step::Configuration configuration = draw_spread(seed, routing);
      const step::StepResult bound = run_at(configuration, network::Fidelity::analytic);
      const step::StepResult fluid = run_at(configuration, network::Fidelity::fluid);
      REQUIRE(fluid.step_ps >= bound.step_ps);
      if (fluid.fluid.contended == 0) REQUIRE(fluid.step_ps == bound.step_ps);
      REQUIRE((fluid.fluid.sampled > 0) == (fluid.fluid.contended > 0));
      REQUIRE(run_at(configuration, network::Fidelity::fluid, step::Ranks::all, false).step_ps == fluid.step_ps);
      REQUIRE(run_at(configuration, network::Fidelity::analytic, step::Ranks::representatives).step_ps ==
              bound.step_ps);
      contended += fluid.fluid.contended > 0;
    }
  CHECK(contended > 20);
}

TEST_CASE("steps take EQDS, acknowledgements as packets and fabrics that drop, coupled and as fluids") {
  std::size_t contended = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration =
        draw_spread(seed, seed % 2 == 0 ? network::Routing::spray : network::Routing::ecmp_hash);
    if (seed % 3 == 0) configuration.transport.kind = "eqds";
    if (seed % 3 == 1) configuration.transport.acks = network::Acks::in_band;
    if (seed % 3 == 2) configuration.transport.fabric = network::Fabric::lossy;
    const step::StepResult bound = run_at(configuration, network::Fidelity::analytic);
    const step::StepResult fluid = run_at(configuration, network::Fidelity::fluid);
    const step::StepResult packets = run_configuration(configuration, step::Composition::coupled);
    REQUIRE(packets.step_ps >= bound.step_ps);
    REQUIRE(fluid.step_ps >= bound.step_ps);
    REQUIRE((fluid.fluid.sampled > 0) == (fluid.fluid.contended > 0));
    contended += fluid.fluid.contended > 0;
  }
  CHECK(contended > 8);
}

TEST_CASE("fluids that are sprayed or adaptive are nearer to packets than analytic steps are") {
  for (const network::Routing routing : {network::Routing::spray, network::Routing::adaptive}) {
    double fluid_error = 0, analytic_error = 0, largest = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      INFO("seed " << seed);
      const step::Configuration configuration = draw_spread(seed, routing);
      const auto packets = static_cast<double>(run_at(configuration, network::Fidelity::packet).step_ps);
      const auto off = [&](network::Fidelity fidelity) {
        return std::abs(static_cast<double>(run_at(configuration, fidelity).step_ps) / packets - 1);
      };
      const double fluid = off(network::Fidelity::fluid);
      fluid_error += fluid / 40, largest = std::max(largest, fluid);
      analytic_error += off(network::Fidelity::analytic) / 40;
    }
    CAPTURE(static_cast<int>(routing), fluid_error, largest, analytic_error);
    CHECK(fluid_error < 2 * analytic_error / 3);
  }
}

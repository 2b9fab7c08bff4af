// Steps under fluid fidelity: what they have in common with the other fidelities, and the error that they say they
// have.
#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "core/step/fluid/link_shares.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

/// What a step gives, but for how it was computed.
std::string answer_of(step::StepResult result) {
  result.computed = {};
  result.cpu_s = 0;
  return step::encode(result);
}

step::Configuration fluid_of(step::Configuration configuration) {
  configuration.transport.fidelity = network::Fidelity::fluid;
  return configuration;
}

step::Configuration draw_undisturbed(std::uint64_t seed) {
  return undisturbed(draw_configuration(seed));
}

}  // namespace

TEST_CASE("a step of fluids is the analytic one if nothing is contended for or sent too slowly, and never faster") {
  std::size_t alone = 0, contended = 0, slower = 0, sent_slowly = 0, nearer = 0, nearly_packets = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_undisturbed(seed);
    const step::StepResult bound = run_at(configuration, network::Fidelity::analytic);
    const step::StepResult fluid = run_at(configuration, network::Fidelity::fluid);
    REQUIRE(fluid.step_ps >= bound.step_ps);
    if (fluid.fluid.contended == 0 && fluid.step_ps != bound.step_ps) {
      // HPCC leaves a share of a link free, and a drawn window may be too small for its path.
      INFO(configuration.transport.kind);
      REQUIRE((configuration.transport.kind == "hpcc" || configuration.transport.window_bytes > 0));
      const auto packets = static_cast<double>(run_at(configuration, network::Fidelity::packet).step_ps);
      const double fluid_error = std::abs(static_cast<double>(fluid.step_ps) / packets - 1);
      const double analytic_error = std::abs(static_cast<double>(bound.step_ps) / packets - 1);
      nearer += fluid_error < analytic_error;
      nearly_packets += fluid_error < analytic_error / 2;
      ++sent_slowly;
    }
    ++(fluid.fluid.contended == 0 ? alone : contended);
    slower += fluid.step_ps > bound.step_ps;
  }
  CHECK(alone > 20);
  CHECK(contended > 20);
  CHECK(slower > 20);
  CHECK(sent_slowly > 10);
  CAPTURE(nearer, nearly_packets, sent_slowly);
  CHECK(10 * nearer >= 9 * sent_slowly);
  CHECK(2 * nearly_packets >= sent_slowly);
}

TEST_CASE("steps of fluids are nearer to packets than analytic ones are, and their measured error is of that size") {
  double fluid_error = 0, analytic_error = 0, measured = 0, told = 0;
  std::size_t sampled = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_undisturbed(seed);
    const auto packets = static_cast<double>(run_at(configuration, network::Fidelity::packet).step_ps);
    const step::StepResult fluid = run_at(configuration, network::Fidelity::fluid);
    fluid_error += std::abs(static_cast<double>(fluid.step_ps) / packets - 1) / 60;
    analytic_error +=
        std::abs(static_cast<double>(run_at(configuration, network::Fidelity::analytic).step_ps) / packets - 1) / 60;
    REQUIRE((fluid.fluid.sampled > 0) == (fluid.fluid.contended > 0));
    REQUIRE(fluid.fluid.mean <= fluid.fluid.max);
    REQUIRE(std::abs(fluid.fluid.bias) <= fluid.fluid.mean);
    REQUIRE(fluid.fluid.step >= 0);
    if (fluid.fluid.mean == 0) REQUIRE(fluid.fluid.step == 0);
    if (fluid.fluid.sampled == 0) continue;
    ++sampled;
    measured += fluid.fluid.mean;
    told += fluid.fluid.step;
  }
  CAPTURE(fluid_error, analytic_error, measured / static_cast<double>(sampled), told / static_cast<double>(sampled));
  CHECK(fluid_error < analytic_error / 2);
  CHECK(sampled > 20);
  CHECK(fluid_error < measured / static_cast<double>(sampled));  // much of what collectives are off by is hidden
  CHECK(told < measured);
  // What it is worth in a step is of the size of the step's error.
  CHECK(told > 0.2 * 60 * fluid_error);
}

TEST_CASE("a step of fluids has one answer, with and without sharing, of all ranks and of those that stand for them") {
  std::size_t merged = 0, contended = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    step::StepResult all = run_at(configuration, network::Fidelity::fluid);
    if (seed % 3 == 0)
      REQUIRE(answer_of(run_at(configuration, network::Fidelity::fluid, step::Ranks::all, false)) == answer_of(all));
    step::StepResult some = run_at(configuration, network::Fidelity::fluid, step::Ranks::representatives);
    REQUIRE(some.fluid.contended == all.fluid.contended);
    contended += all.fluid.contended > 0;
    // Which collectives are drawn depends on their numbers.
    some.fluid = all.fluid = {};
    REQUIRE(answer_of(some) == answer_of(all));
    step::SimulationContext context;
    merged += !context.compile(fluid_of(configuration), step::Ranks::representatives).has_all_ranks();
  }
  CHECK(merged > 60);
  CHECK(contended > 40);
}

TEST_CASE(
    "steps of fluids that differ in their transport alone share what is the same, and answer as each does alone") {
  std::size_t equal = 0, different = 0, contended = 0, told = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    step::Configuration drawn = draw_configuration(seed);
    drawn.model.sequence = 4096;  // sends of several megabytes, of which some transports make less than others
    if (seed % 3 == 0) drawn.transport.routing = seed % 2 == 0 ? network::Routing::spray : network::Routing::adaptive;
    step::SimulationContext shared;
    std::set<Time> times;
    for (const char* kind : {"dcqcn", "swift", "timely", "static_window", "dctcp", "swift", "dcqcn"}) {
      INFO("seed " << seed << ", " << kind);
      step::Configuration configuration = fluid_of(drawn);
      configuration.transport.kind = kind;
      configuration.transport.kind_options.clear();
      const step::Ranks ranks =
          step::can_deduplicate_ranks(configuration) ? step::Ranks::representatives : step::Ranks::all;
      // Alone, nothing is taken up from another run, not even the step that is slowed from the one that is not.
      const step::StepResult alone = run_at(configuration, network::Fidelity::fluid, ranks, false);
      const step::StepResult together = shared.run_fluids(configuration, ranks);
      REQUIRE(answer_of(together) == answer_of(alone));
      times.insert(alone.step_ps);
      contended += alone.fluid.contended > 0;
      told += alone.fluid.step > 0;
    }
    ++(times.size() == 1 ? equal : different);
  }
  CHECK(equal > 10);
  CHECK(different > 10);
  CHECK(contended > 100);
  CHECK(told > 20);
}

TEST_CASE("links that no collectives of a step can fill are left out of their loads, and nobody is faster for it") {
  std::size_t left_out = 0, kept = 0, short_of_links = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    step::SimulationContext context;
    const step::CompiledStep compiled = context.compile(fluid_of(draw_configuration(seed)));
    network::Transport packets = compiled.transport();
    packets.fidelity = network::Fidelity::packet;
    network::ComponentCache cache(packets);
    step::TransportEfficiency efficiency(cache);
    step::LinkShares shares(compiled, efficiency);
    const auto& ops = compiled.collective_ops();
    IdVector<step::CollectiveOpId, step::MaxMinSpeeds::Loads> all;  // with all links
    std::map<step::GroupId, std::vector<step::CollectiveOpId>> of_group;
    for (const step::CollectiveOpId id : ops.ids()) {
      all.push_back(shares.on(id, *ops[id].dag, *ops[id].connections));
      of_group[ops[id].group].push_back(id);
      kept += shares.of(id).size();
      left_out += all[id].size() - shares.of(id).size();
    }
    // Groups begin and end collectives at random, one after another.
    step::MaxMinSpeeds whole(compiled.link_numbers(), shares.preference()),
        some(compiled.link_numbers(), shares.preference());
    std::mt19937_64 random(seed);
    std::map<step::GroupId, step::CollectiveOpId> running;
    for (int i = 0; i < 300 && !of_group.empty(); ++i) {
      const auto& [group, ids] = *std::next(of_group.begin(), static_cast<std::ptrdiff_t>(random() % of_group.size()));
      if (running.erase(group) > 0) {
        whole.remove(group.value()), some.remove(group.value());
      } else {
        const step::CollectiveOpId id = running[group] = ids[random() % ids.size()];
        whole.add(group.value(), all[id]), some.add(group.value(), shares.of(id));
      }
      if (i % 3 == 0) continue;
      REQUIRE(whole.update() == some.update());
      for (const auto& [one, id] : running) {
        REQUIRE(whole.speed(one.value()) == some.speed(one.value()));
        if (whole.speed(one.value()) == step::kFullSpeed) continue;
        ++short_of_links;
        REQUIRE(whole.bottleneck(one.value()) == some.bottleneck(one.value()));
      }
    }
  }
  CHECK(left_out > 1'000);
  CHECK(kept > 200);
  CHECK(short_of_links > 200);
}

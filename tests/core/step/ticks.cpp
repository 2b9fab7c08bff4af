// Steps whose streams have a clock that ticks: what is on the ticks, what that costs, and what it leaves alone.
#include <catch2/catch.hpp>
#include <set>

#include "core/step/network/ticked_completions.hpp"
#include "core/workload/build/build_program.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

step::Configuration ticking(step::Configuration configuration, std::int64_t tick_ns) {
  configuration.tick_ns = tick_ns;
  return configuration;
}

std::int64_t any_tick_ns(std::uint64_t draw) {
  constexpr std::array<std::int64_t, 5> kTicks{1, 7, 200, 1'000, 30'000};
  return kTicks[draw % kTicks.size()];
}

/// A network of nothing but exits, by instant.
class Exits final : public step::NetworkModel {
 public:
  explicit Exits(std::map<Time, std::vector<step::Member>> exits) : exits_(std::move(exits)) {}
  void enter(Time, const std::vector<step::Member>&) override {}
  Time next_exit(Time limit) override {
    return exits_.empty() || exits_.begin()->first > limit ? kNever : exits_.begin()->first;
  }
  void take_exits(Time at, std::vector<step::Member>& to) override {
    REQUIRE(exits_.begin()->first == at);
    to.insert(to.end(), exits_.begin()->second.begin(), exits_.begin()->second.end());
    exits_.erase(exits_.begin());
  }
  network::PauseDependencies deadlock() const override { return {}; }
  network::Counters counters() const override { return {}; }
  step::Work work() const override { return {}; }

 private:
  std::map<Time, std::vector<step::Member>> exits_;
};

/// The end of the one program of `compiled`, whose ranks do the same at the same times and whose collectives never
/// meet: operation by operation, each as soon as the one before on its stream and those it waits for have ended.
Time by_hand(step::SimulationContext& context, const step::CompiledStep& compiled, Time tick) {
  const workload::Program& program = compiled.programs().at(0);
  std::vector<Time> ends;
  std::array<Time, workload::kStreams> stream_ends{};
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const workload::Op& op = program.ops[i];
    Time& stream = stream_ends[static_cast<std::size_t>(op.stream)];
    Time begin = stream;
    for (std::uint32_t wait = op.waits_begin; wait < op.waits_end; ++wait)
      begin = std::max(begin, ends[program.waits[wait]]);
    Time lasts = op.kernel() ? op.kernel()->duration_ps : 0;
    if (op.collective()) {
      const auto [instance, member] = compiled.instance_entered_by(step::RepresentativeId(0), i);
      const step::IsolatedResult alone = context.isolated(compiled, compiled.collective_op_of(instance));
      for (const Time exit : alone.exits) REQUIRE(exit == alone.exits[member]);
      lasts = alone.exits[member];
    }
    const Time beyond = lasts % tick;
    const bool up = op.collective() ? beyond > 0 : 2 * beyond >= tick;
    ends.push_back(stream = begin + lasts - beyond + (up ? tick : 0));
  }
  return *std::max_element(ends.begin(), ends.end());
}

/// Operations that one chain of dependences can pass: ranks of a stage run one program, and what comes later in a
/// chain comes later in the order in which the programs can run, so that a chain has each of their operations once.
Time longest_chain(const step::Configuration& configuration) {
  std::size_t ops = 0;
  for (std::int64_t stage = 0; stage < configuration.strategy.pp; ++stage)
    ops += workload::build_program(configuration.model, configuration.strategy, configuration.gpu, stage).ops.size();
  return static_cast<Time>(ops);
}

step::Member member(std::uint32_t instance, std::uint32_t position) {
  return {step::InstanceId(instance), position};
}

}  // namespace

TEST_CASE("what leaves the network between two ticks is noticed at the second, together and in order") {
  Exits network(
      {{101, {member(7, 1)}}, {150, {member(2, 0), member(2, 1)}}, {200, {member(5, 0)}}, {300, {member(1, 0)}}});
  step::TickedCompletions held{stream::Clock(100)};
  CHECK(held.due() == kNever);
  CHECK(held.take_due(100).empty());
  for (const Time at : {101, 150, 200}) {
    held.take_exits(network, at);
    CHECK(held.due() == 200);
  }
  CHECK(held.take_due(100).empty());
  CHECK(held.take_due(200) == std::vector<step::Member>{member(2, 0), member(2, 1), member(5, 0), member(7, 1)});
  CHECK(held.due() == kNever);
  held.take_exits(network, 300);  // on a tick: noticed there and then
  CHECK(held.take_due(300) == std::vector<step::Member>{member(1, 0)});

  Exits late({{101, {member(7, 1)}}, {201, {member(2, 0)}}});
  held.take_exits(late, 101);
  CHECK_THROWS_AS(held.take_exits(late, 201), InternalError);
}

TEST_CASE("two ranks take what their operations take one after another, each on ticks") {
  Cluster cluster{1, 2};
  for (const std::int64_t tp : {1, 2})
    for (const std::int64_t tick_ns : {0, 1, 7, 200, 1'000, 5'000}) {
      INFO("tp " << tp << ", a tick of " << tick_ns << " ns");
      step::Configuration configuration = ticking(config_of(cluster, tp, 1, 2), tick_ns);
      configuration.strategy.bucket_parameters = 1'000'000'000;
      step::SimulationContext context;
      const Time tick = tick_ns == 0 ? 1 : tick_ns * kNanosecond;
      const Time expected = by_hand(context, context.compile(configuration), tick);
      CHECK(expected > 100 * tick);
      CHECK(run_configuration(configuration, step::Composition::composed).step_ps == expected);
      CHECK(run_configuration(configuration, step::Composition::coupled).step_ps == expected);
    }
}

TEST_CASE("with ticks every step is whole ticks, and sharing changes nothing") {
  std::size_t changed = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = ticking(draw_configuration(seed), any_tick_ns(seed));
    const auto shared = run_configuration(configuration, step::Composition::composed);
    const auto alone = run_configuration(configuration, step::Composition::composed, false);
    REQUIRE(shared.step_ps % (configuration.tick_ns * kNanosecond) == 0);
    REQUIRE(alone.step_ps == shared.step_ps);
    REQUIRE(alone.link_hops == shared.link_hops);
    REQUIRE(alone.breakdown[workload::StepPart::stall] == shared.breakdown[workload::StepPart::stall]);
    REQUIRE(alone.episodes.size() == shared.episodes.size());
    for (std::size_t i = 0; i < alone.episodes.size(); ++i) REQUIRE(alone.episodes[i].key == shared.episodes[i].key);
    changed += shared.step_ps != run_configuration(ticking(configuration, 0), step::Composition::composed).step_ps;
  }
  CHECK(changed > 20);
}

TEST_CASE("without contention a step is off by at most a tick for each operation of its longest chain") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    step::Configuration configuration = draw_configuration(seed);
    configuration.transport.fidelity = network::Fidelity::analytic;
    const Time exact = run_configuration(configuration, step::Composition::composed).step_ps;
    for (const std::int64_t tick_ns : {7, 200, 1'000}) {
      INFO("seed " << seed << ", a tick of " << tick_ns << " ns");
      const Time ticked = run_configuration(ticking(configuration, tick_ns), step::Composition::composed).step_ps;
      REQUIRE(std::abs(ticked - exact) <= longest_chain(configuration) * tick_ns * kNanosecond);
    }
  }
}

TEST_CASE("with ticks too the analytic step is a lower bound") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = ticking(draw_configuration(seed), any_tick_ns(seed));
    const Time packets = run_configuration(configuration, step::Composition::composed).step_ps;
    configuration.transport.fidelity = network::Fidelity::analytic;
    REQUIRE(run_configuration(configuration, step::Composition::composed).step_ps <= packets);
  }
}

TEST_CASE("a tick is in the key of a step, not in those of its collectives") {
  step::SimulationContext context;
  const step::Configuration configuration = draw_configuration(3);
  std::set<sharing::Key> steps;
  const auto collectives = [&](std::int64_t tick_ns) {
    const step::StepSummary summary = context.summary(ticking(configuration, tick_ns));
    steps.insert(summary.step);
    std::vector<sharing::Key> keys;
    for (const auto& collective : summary.collectives) keys.push_back(collective.key);
    return keys;
  };
  const auto exact = collectives(0);
  REQUIRE(exact.size() > 1);
  for (const std::int64_t tick_ns : {1, 200, 1'000}) CHECK(collectives(tick_ns) == exact);
  CHECK(steps.size() == 4);
}

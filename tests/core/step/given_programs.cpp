// Programs that are given: those of a model and a strategy, written down as such, have its step.
#include "core/step/layout/as_given.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

/// The same configuration with its programs given, and a model and a strategy that say nothing.
step::Configuration with_programs_given(const step::Configuration& configuration) {
  step::SimulationContext context;
  const step::CompiledStep compiled = context.compile(configuration);
  step::Configuration given = configuration;
  given.programs = std::make_shared<const workload::GivenPrograms>(step::as_given(configuration, compiled.layout()));
  given.model = {};
  given.strategy = {};
  return given;
}

void require_same_uses(const std::vector<step::SubsimulationUse>& one,
                       const std::vector<step::SubsimulationUse>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    REQUIRE(one[i].key == other[i].key);
    REQUIRE(one[i].result_ps == other[i].result_ps);
    REQUIRE(one[i].times == other[i].times);
  }
}

void require_same_step(const step::Configuration& configuration) {
  const step::Configuration given = with_programs_given(configuration);
  for (const network::Fidelity fidelity :
       {network::Fidelity::packet, network::Fidelity::fluid, network::Fidelity::analytic}) {
    INFO("fidelity " << static_cast<int>(fidelity));
    const step::StepResult one = run_at(configuration, fidelity), other = run_at(given, fidelity);
    require_same_packets(one, other);
    REQUIRE(one.breakdown == other.breakdown);
    require_same_uses(one.kernels, other.kernels);
    require_same_uses(one.collectives, other.collectives);
    step::Configuration alone = given;
    alone.transport.fidelity = fidelity;
    if (can_deduplicate_ranks(alone))
      REQUIRE(run_at(given, fidelity, step::Ranks::representatives).step_ps == one.step_ps);
  }
}

}  // namespace

TEST_CASE("the programs of 100 drawn experiments, given as such, have their steps to the picosecond") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    require_same_step(draw_configuration(seed));
  }
}

TEST_CASE("given programs of experts, context rings and every schedule have the steps of what they are from") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    require_same_step(draw_routed(seed));
  }
  for (const workload::ScheduleType& type : workload::schedules()) {
    INFO(type.name);
    if (std::string(type.name) == "written") continue;  // whose passes are in a file
    require_same_step(with_schedule(draw_configuration(7), type));
  }
}

TEST_CASE("given programs are composed as they are coupled") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    const step::Configuration given = with_programs_given(draw_configuration(seed));
    require_same_packets(run_configuration(given, step::Composition::composed),
                         run_configuration(given, step::Composition::coupled));
  }
}

TEST_CASE("given programs on GPUs of several kinds have the step of what they are from") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    if (seed % 3 == 0) configuration = with_context_and_experts(configuration, seed);
    configuration.strategy.stack.dispatcher = workload::Dispatcher::all_to_all;  // programs have no other
    compute::Gpu slower = configuration.gpu, other = configuration.gpu;
    slower.speed_factor = 0.7;
    other.matrix_tflops /= 2, other.memory_gb_per_s /= 3, other.communication_slowdown = 0.2;
    configuration.other_gpus = {slower, other};
    for (std::uint32_t gpu = 0; gpu < configuration.graph->gpus; ++gpu)
      configuration.kind_of_gpu.push_back(static_cast<std::uint32_t>((seed * 7 + gpu * gpu * 5) % 11 % 3));
    require_same_step(configuration);
  }
}

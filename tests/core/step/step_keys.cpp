// Keys of steps: equal where ranks do the same, whichever settings made them do it.
#include <map>

#include "core/step/run/simulation_context.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;

namespace {

/// Returns a step's result without what computing it cost.
std::string answer_of(const step::Configuration& configuration) {
  step::SimulationContext context;
  step::IsolatedResults results;
  step::StepResult result = context.run(context.compile(configuration), results);
  result.computed = {};
  result.cpu_s = 0;
  return encode(result);
}

/// Returns the configuration with every option of a table changed, one at a time, to another value that it may have.
template <class T, class Get>
void for_each_change(const core::OptionTable<T>& table, const step::Configuration& configuration, const Get& get,
                     const std::function<void(const std::string&, const step::Configuration&)>& visit) {
  for (const auto& row : table.rows()) {
    step::Configuration changed = configuration;
    T& part = get(changed);
    const core::OptionValue value = row.get(part);
    if (const bool* flag = std::get_if<bool>(&value)) {
      row.set(part, !*flag);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      const auto& choices = row.info.choices;
      const auto at = std::find(choices.begin(), choices.end(), *text);
      if (choices.size() < 2 || at == choices.end()) continue;
      row.set(part, at + 1 == choices.end() ? choices.front() : *(at + 1));
    } else {
      continue;
    }
    visit(row.info.name, changed);
  }
}

}  // namespace

TEST_CASE("steps with one key have the same answer to the last bit, whatever setting differs") {
  std::map<std::string, int> shared;  // how often a setting that changed left the key as it was
  std::size_t other_keys = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    step::Configuration configuration = with_overlaps(with_context_and_experts(draw_configuration(seed), seed), seed);
    configuration.transport.fidelity = network::Fidelity::analytic;
    const sharing::Key key = step::SimulationContext().summary(configuration).step;
    const std::string answer = answer_of(configuration);
    const auto look_at = [&](const std::string& option, const step::Configuration& changed) {
      try {
        if (step::SimulationContext().summary(changed).step != key) {
          ++other_keys;
          return;
        }
        CAPTURE(seed, option);
        REQUIRE(answer_of(changed) == answer);
        ++shared[option];
      } catch (const core::InternalError&) {
        // A change by itself need not be a layout that rules allow.
      }
    };
    for_each_change(
        workload::stack_options(), configuration,
        [](step::Configuration& one) -> workload::Stack& { return one.strategy.stack; }, look_at);
    for_each_change(
        workload::strategy_options(), configuration,
        [](step::Configuration& one) -> workload::Strategy& { return one.strategy; }, look_at);
  }
  CHECK(other_keys > 300);
  // Without tensor parallelism nothing of it can overlap; without replicas no gradients are reduced.
  for (const char* option : {"overlap_input_gradient", "overlap_tensor", "overlap_grad_reduce", "overlap_transfers"})
    CHECK(shared[option] > 5);
}

TEST_CASE("an input gradient that a schedule computes by itself overlaps nothing, and the step is the same one") {
  Cluster cluster{2, 4, true, 1};
  step::Configuration configuration = config_of(cluster, 2, 2, 8);
  configuration.strategy.schedule = workload::schedule_by_name("zb_h1");
  configuration.strategy.sequence_parallel = true;
  const auto key = [&](bool overlap) {
    configuration.strategy.stack.overlap_input_gradient = overlap;
    return step::SimulationContext().summary(configuration).step;
  };
  CHECK(key(false) == key(true));
  configuration.strategy.schedule = workload::schedule_by_name("1f1b");
  configuration.strategy.sequence_parallel = false;
  CHECK(key(false) != key(true));
}

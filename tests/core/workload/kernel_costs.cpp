// Kernel costs from measured tables instead of the model: what they change, and that nothing else changes.
#include "core/workload/layer/kernel_costs.hpp"
#include "core/workload/build/measurement_coverage.hpp"

#include <catch2/catch.hpp>

#include "core/step/estimate/closed_form.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using compute::CostLevel;
using compute::Direction;
using compute::MeasurementKey;
using workload::MeasurementCoverage;

namespace {

/// One GPU whose host is never late: a step is the sum of its kernels. Four layers, four micro-batches.
step::Configuration alone() {
  Cluster cluster;
  cluster.nodes = cluster.gpus_per_node = 1;
  step::Configuration configuration = config_of(cluster, 1, 1, 4);
  workload::Stack& stack = configuration.strategy.stack;
  stack.host_kernel_us = stack.host_collective_us = 0;
  return configuration;
}
constexpr std::int64_t kLayerPasses = 16;

using Row = std::pair<MeasurementKey, Time>;

step::Configuration with(step::Configuration configuration, const std::vector<Row>& rows) {
  auto table = std::make_shared<compute::MeasuredTimes>();
  int line = 1;
  for (const auto& [what, time_ps] : rows) table->add(what, {time_ps, ++line});
  configuration.gpu.measured = table;
  return configuration;
}

Time step_ps(const step::Configuration& configuration) {
  return run_configuration(configuration, step::Composition::composed).step_ps;
}

MeasurementCoverage account(const step::Configuration& configuration) {
  return workload::measurement_coverage(configuration.model, configuration.strategy, configuration.gpu);
}

/// The one of that level, name and direction; of several kernels the first.
Row find(const MeasurementCoverage& in, CostLevel level, std::string_view name, Direction direction = Direction::any) {
  for (const auto& [what, sources] : in.costs)
    if (what.level == level && what.name == name && what.direction == direction) return {what, sources.ps()};
  throw InternalError("no such row");
}

std::vector<Row> all_of(const MeasurementCoverage& in, CostLevel level) {
  std::vector<Row> rows;
  for (const auto& [what, sources] : in.costs)
    if (what.level == level) rows.emplace_back(what, sources.ps());
  return rows;
}

sharing::Key key_of(const step::Configuration& configuration) {
  return step::SimulationContext().summary(configuration).step;
}

}  // namespace

TEST_CASE("a measured kernel changes a step without overlap by the times it runs and what it differs by") {
  const step::Configuration configuration = alone();
  const auto [softmax, cost_ps] = find(account(configuration), CostLevel::kernel, "softmax");
  const Time before = step_ps(configuration);
  CHECK(step_ps(with(configuration, {{softmax, cost_ps + 12'345}})) == before + kLayerPasses * 12'345);
  CHECK(step_ps(with(configuration, {{softmax, 1}})) == before + kLayerPasses * (1 - cost_ps));
  CHECK(step_ps(with(configuration, {{softmax, cost_ps}})) == before);
}

TEST_CASE("a row without name, bytes and FLOPs fits every kernel of its shape, and a fuller row comes before it") {
  const step::Configuration configuration = alone();
  const Row row = find(account(configuration), CostLevel::kernel, "mlp_up");
  MeasurementKey shape = row.first;
  shape.name.clear();
  shape.bytes = shape.flops = MeasurementKey::kAny;
  const Time time_ps = 77'000'000;
  Time expected = step_ps(configuration), of_row = 0;
  for (const auto& use : workload::kernels_used(configuration.model, configuration.strategy, configuration.gpu, 0)) {
    const compute::Kernel& k = use.kernel;
    if (k.kernel_class != shape.kernel_class || k.dtype != shape.dtype || k.m != shape.m || k.n != shape.n ||
        k.k != shape.k || k.batch != shape.batch)
      continue;
    expected += use.times * (time_ps - use.cost_ps);
    if (compute::measurement_key(k) == row.first) of_row += use.times;
  }
  CHECK(of_row > 0);
  CHECK(step_ps(with(configuration, {{shape, time_ps}})) == expected);
  CHECK(step_ps(with(configuration, {{shape, time_ps}, {row.first, time_ps - 1'000}})) == expected - of_row * 1'000);
}

TEST_CASE("a measured layer takes what was measured, as often as it runs, and its kernels keep their shares") {
  for (const auto recompute : {workload::Recompute::none, workload::Recompute::full}) {
    step::Configuration configuration = alone();
    configuration.strategy.recompute = recompute;
    const auto [layer, modelled_ps] = find(account(configuration), CostLevel::layer, "layer", Direction::forward);
    const Time longer = 1'000'003, runs = recompute == workload::Recompute::full ? 2 * kLayerPasses : kLayerPasses;
    CHECK(step_ps(with(configuration, {{layer, modelled_ps + longer}})) == step_ps(configuration) + runs * longer);
    const Time third = modelled_ps / 3;
    const step::Configuration measured = with(configuration, {{layer, third}});
    const auto work = workload::stage_work(measured.model, measured.strategy, measured.gpu, 0);
    const auto plain = workload::stage_work(configuration.model, configuration.strategy, configuration.gpu, 0);
    const auto& ops = work.parts.at(1).forward.at(0).ops;
    const auto& of_model = plain.parts.at(1).forward.at(0).ops;
    Time sum = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const workload::KernelWork* kernel = ops[i].kernel();
      if (kernel == nullptr) continue;
      sum += kernel->cost.ps;
      CHECK(kernel->cost.level == CostLevel::layer);
      CHECK(std::abs(3 * kernel->cost.ps - of_model[i].kernel()->cost.ps) <= 6);
    }
    CHECK(sum == third);
  }
}

TEST_CASE("of several levels the coarsest counts, and how far the finer are from it is told") {
  const step::Configuration configuration = alone();
  const MeasurementCoverage model = account(configuration);
  const Time us = kMicrosecond;
  const Row kernel{find(model, CostLevel::kernel, "gelu").first, 100 * us};
  const Row submodule{find(model, CostLevel::submodule, "gelu", Direction::forward).first, 80 * us};
  const auto [layer, layer_ps] = find(model, CostLevel::layer, "layer", Direction::forward);
  const Time gelu_ps = find(model, CostLevel::submodule, "gelu", Direction::forward).second;

  const step::Configuration two = with(configuration, {kernel, submodule});
  CHECK(step_ps(two) == step_ps(configuration) + kLayerPasses * (80 * us - gelu_ps));
  const MeasurementCoverage of_two = account(two);
  const auto levels = workload::level_disagreement(of_two.costs);
  CHECK(levels.share == Approx(0.25));
  CHECK_THAT(levels.at, Catch::Contains("submodule gelu forward") && Catch::Contains("80.000 us measured") &&
                            Catch::Contains("100.000 us otherwise"));
  CHECK(workload::rows_used(of_two.costs) == 2);
  CHECK(of_two.share(CostLevel::submodule) ==
        Approx(static_cast<double>(kLayerPasses * 80 * us) / static_cast<double>(step_ps(two))));
  CHECK(of_two.share(CostLevel::kernel) == 0);
  CHECK(of_two.share(CostLevel::model) == Approx(1 - of_two.share(CostLevel::submodule)));

  const step::Configuration three = with(configuration, {kernel, submodule, {layer, 2 * layer_ps}});
  CHECK(step_ps(three) == step_ps(configuration) + kLayerPasses * layer_ps);
  CHECK(workload::level_disagreement(account(three).costs).share ==
        Approx(0.25));  // the layer's other kernels are modelled
  const step::Configuration one = with(configuration, {{layer, 2 * layer_ps}});
  CHECK(workload::level_disagreement(account(one).costs).at.empty());
  CHECK(workload::model_disagreement(account(one).costs).share == Approx(-0.5));
}

TEST_CASE("a table of what the model says changes nothing, at any level, and leaves nothing to the model") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const step::Configuration configuration = draw_configuration(seed);
    const MeasurementCoverage model = account(configuration);
    const step::StepResult plain = run_configuration(configuration, step::Composition::composed);
    for (const CostLevel level : {CostLevel::kernel, CostLevel::submodule, CostLevel::layer}) {
      const step::Configuration measured = with(configuration, all_of(model, level));
      const step::StepResult result = run_configuration(measured, step::Composition::composed);
      CHECK(result.step_ps == plain.step_ps);
      CHECK(result.breakdown[workload::StepPart::forward] == plain.breakdown[workload::StepPart::forward]);
      CHECK(result.breakdown[workload::StepPart::backward] == plain.breakdown[workload::StepPart::backward]);
      CHECK(result.breakdown[workload::StepPart::host] == plain.breakdown[workload::StepPart::host]);
      const MeasurementCoverage rests_on = account(measured);
      CHECK(rests_on.share(level) > 0.5);
      if (level == CostLevel::kernel) CHECK(rests_on.modelled.empty());
    }
  }
}

TEST_CASE("what no measurement covers is told by kernel, and the optimizer's kernels are among it") {
  const step::Configuration configuration = alone();
  const MeasurementCoverage model = account(configuration);
  std::vector<Row> rows = all_of(model, CostLevel::layer);
  std::vector<std::string> left;
  for (const compute::Kernel& kernel : account(with(configuration, rows)).modelled) left.emplace_back(kernel.name);
  CHECK(left == std::vector<std::string>{"adam", "gradient_norm", "zero_gradients"});
  rows = all_of(model, CostLevel::kernel);
  std::erase_if(rows, [](const Row& row) { return row.first.name == "softmax" && row.first.flops == 0; });
  const auto lacking = account(with(configuration, rows)).modelled;
  REQUIRE_FALSE(lacking.empty());
  for (const compute::Kernel& kernel : lacking) CHECK(kernel.name == "softmax");
}

TEST_CASE("a changed row changes the keys of the steps that it is in, and of no others") {
  const step::Configuration configuration = alone();
  const MeasurementKey softmax = find(account(configuration), CostLevel::kernel, "softmax").first;
  MeasurementKey elsewhere = softmax;
  elsewhere.bytes += 1;
  step::Configuration fused = configuration;
  fused.strategy.stack.attention = workload::AttentionKernel::cudnn;
  CHECK(key_of(with(configuration, {{elsewhere, 5}})) == key_of(configuration));
  CHECK(key_of(with(configuration, {{softmax, 5}})) != key_of(configuration));
  CHECK(key_of(with(configuration, {{softmax, 5}})) != key_of(with(configuration, {{softmax, 6}})));
  CHECK(key_of(with(configuration, {{softmax, 5}})) == key_of(with(configuration, {{softmax, 5}, {elsewhere, 9}})));
  CHECK(key_of(with(fused, {{softmax, 5}})) == key_of(fused));
}

TEST_CASE("with measured times, coupled and composed steps and the closed form still agree") {
  const step::Configuration drawn = draw_configuration(5);
  std::vector<Row> rows;
  for (const auto& [what, time_ps] : all_of(account(drawn), CostLevel::layer)) rows.emplace_back(what, 2 * time_ps + 7);
  const step::Configuration configuration = with(drawn, rows);
  CHECK(run_configuration(configuration, step::Composition::composed).step_ps ==
        run_configuration(configuration, step::Composition::coupled).step_ps);
  CHECK(run_configuration(configuration, step::Composition::composed, false).step_ps == step_ps(configuration));
  CHECK(step_ps(configuration) > step_ps(drawn));
  const step::Configuration single = alone();
  const auto [layer, layer_ps] = find(account(single), CostLevel::layer, "layer", Direction::backward);
  const step::Configuration slow = with(single, {{layer, 3 * layer_ps}});
  CHECK(step::closed_form(slow, {}).step_s == Approx(seconds(step_ps(slow))).epsilon(1e-9));
}

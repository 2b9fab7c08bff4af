// Nodes of several kinds in one cluster: how they are told, and what follows for fabric, memory, energy and money.
#include <catch2/catch.hpp>

#include "core/step/layout/memory_requirement.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/analysis/costs.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;

namespace {

const std::vector<std::string> kPower{"cluster.host_power_w=1000", "cluster.pue=1.2", "cluster.switch_port_power_w=10",
                                      "cluster.usd_per_gpu_hour=2"};

std::vector<std::string> with_power(std::vector<std::string> sets) {
  sets.insert(sets.end(), kPower.begin(), kPower.end());
  return sets;
}

ExperimentConfig config_with(const std::vector<std::string>& sets) {
  return read(kSingle, sets).experiments.front().config();
}

/// A step of known times: of each kind twice as long in kernels as of the one before.
core::step::StepResult step_of(std::size_t kinds) {
  core::step::StepResult result;
  result.step_ps = core::kSecond;
  result.breakdown[core::workload::StepPart::forward] = 0.5, result.breakdown[core::workload::StepPart::bubble] = 0.5;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    result.by_kind.emplace_back();
    result.by_kind.back()[core::workload::StepPart::forward] = 0.25 * static_cast<double>(kind + 1);
    result.by_kind.back()[core::workload::StepPart::bubble] =
        1 - result.by_kind.back()[core::workload::StepPart::forward];
  }
  return result;
}

std::vector<double> numbers(const Costs& costs) {
  return {costs.gpu_energy_per_token_j, costs.host_energy_per_token_j, costs.network_energy_per_token_j,
          costs.energy_per_step_j,      costs.energy_per_token_j,      costs.usd_per_million_tokens};
}

}  // namespace

TEST_CASE("nodes of a kind named twice are nodes of that kind, to the last figure") {
  GraphCache graphs;
  core::step::SimulationContext context;
  const auto sweep = [&](const std::vector<std::string>& sets) { return read(kSingle, with_power(sets)); };
  const Sweep whole = sweep({"cluster.nodes=4"});
  for (const std::string more : {"{nodes: 2, gpu: a100_40}", "{nodes: 2, gpu: a100_40, nic_gbps: 200}",
                                 "{nodes: 2, gpu: {like: a100_40, name: mine}, usd_per_gpu_hour: 2}"}) {
    const Sweep parts = sweep({"cluster.second=" + more});
    const auto one = configure(whole.experiments[0], graphs), two = configure(parts.experiments[0], graphs);
    CAPTURE(more);
    CHECK_FALSE(two.is_mixed());
    CHECK(two.graph == one.graph);
    CHECK(context.summary(one).step == context.summary(two).step);
    const ExperimentConfig a = whole.experiments[0].config(), b = parts.experiments[0].config();
    CHECK(b.machines.empty());
    const auto money = [&](const ExperimentConfig& config) {
      return numbers(costs_of(config, step_of(0), one.graph.get()));
    };
    CHECK(money(a) == money(b));
  }
}

TEST_CASE("each node's links have its own rates, and the fabric those of the fastest NICs") {
  GraphCache graphs;
  const Sweep sweep = read(kSingle, {"cluster.second={nodes: 1, gpu: h100_sxm, nic_gbps: 400}",
                                     "cluster.third={nodes: 1, gpu: a100_40, nic_gbps: 100}"});
  const auto config = configure(sweep.experiments[0], graphs);
  REQUIRE(config.graph->gpus == 16);
  CHECK(config.kind_of_gpu == std::vector<std::uint32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  const std::vector<std::int64_t> nic{200, 200, 400, 100};  // of nodes, Gb/s
  const double a100 = config.gpu.scale_up_gb_per_s, h100 = config.other_gpus[0].scale_up_gb_per_s;
  REQUIRE(h100 > a100);
  std::size_t uplinks = 0;
  for (const core::network::Link& link : config.graph->links) {
    const std::uint32_t gpu = std::min(link.from, link.to), node = gpu / 4;
    const bool is_uplink = gpu >= config.graph->gpus;
    std::int64_t expected = is_uplink ? 400'000'000'000 : nic[std::min<std::size_t>(node, 3)] * 1'000'000'000;
    if (link.kind == core::network::LinkKind::scale_up) expected = std::llround(8e9 * (node == 2 ? h100 : a100));
    CHECK(link.bits_per_second == expected);
    uplinks += is_uplink;
  }
  CHECK(uplinks > 0);
}

TEST_CASE("energy and money count every kind by its own figures, and lack what one kind lacks") {
  const std::string more = "cluster.second={nodes: 1, gpu: h100_sxm, usd_per_gpu_hour: 5, host_power_w: 3000}";
  const ExperimentConfig mixed = config_with(with_power({more, "strategy.global_batch=12"}));
  REQUIRE(mixed.machines.size() == 2);
  CHECK(mixed.cluster.nodes == 3);
  const auto step = step_of(2);
  GraphCache graphs;
  const auto graph = graphs.get(mixed);
  const Costs costs = costs_of(mixed, step, graph.get());
  const double gpus_j = 8 * gpu_energy_j(step.by_kind[0], mixed.machines[0].power) +
                        4 * gpu_energy_j(step.by_kind[1], mixed.machines[1].power);
  const double tokens = 12 * 32;
  CHECK(costs.gpu_energy_per_token_j == Approx(gpus_j / tokens));
  CHECK(costs.host_energy_per_token_j == Approx((2 * 1000 + 3000) / tokens));
  CHECK(costs.usd_per_million_tokens == Approx((8 * 2.0 + 4 * 5.0) / 3600 / tokens * 1e6));
  const ExperimentConfig unpriced =
      config_with(with_power({"cluster.second={nodes: 1, gpu: h100_sxm}", "strategy.global_batch=12"}));
  CHECK(std::isnan(costs_of(unpriced, step, graph.get()).usd_per_million_tokens));
  CHECK(costs_of(unpriced, step, graph.get()).host_energy_per_token_j == Approx(3 * 1000 / tokens));
}

TEST_CASE("a slow GPU is a kind by itself with the power and the price of its node") {
  const ExperimentConfig slow = config_with(with_power({"faults.slow_gpus=gpu2=0.8, node1=0.9"}));
  CHECK(slow.slow_gpus_error.empty());
  REQUIRE(slow.machines.size() == 3);
  CHECK(slow.configuration.kind_of_gpu == std::vector<std::uint32_t>{0, 0, 1, 0, 2, 2, 2, 2});
  CHECK(slow.configuration.other_gpus[0].speed_factor == 0.8);
  CHECK(slow.configuration.other_gpus[1].speed_factor == 0.9);
  CHECK(core::step::mean_peak_tflops(slow.configuration) == slow.configuration.gpu.matrix_tflops);
  auto step = step_of(0);
  step.by_kind.assign(3, step.breakdown);
  GraphCache graphs;
  const auto graph = graphs.get(slow);
  CHECK(numbers(costs_of(slow, step, graph.get())) == [&] {
    auto all = numbers(costs_of(config_with(with_power({})), step, graph.get()));
    for (double& one : all) one = Approx(one).epsilon(1e-12) == one ? one : 0;
    return all;
  }());
}

TEST_CASE("what is not told of more nodes is not there, and what is missing is asked for by its own name") {
  const Settings without = read(kSingle).experiments.front().settings;
  for (const auto& [key, value] : without) CHECK_FALSE(key.starts_with("cluster.second"));
  CHECK_FALSE(document(without)["cluster"].contains("second"));
  CHECK_THAT(error_of(kSingle, {"cluster.second={nodes: 2}"}),
             Contains("'cluster.second.gpu' is missing") && Contains("matrix_tflops"));
  CHECK_THAT(error_of(kSingle, {"cluster.second={gpu: h100_sxm}"}), Contains("cluster.second.nodes"));
  CHECK_THAT(error_of(kSingle, {"cluster.second={nods: 2}"}), Contains("did you mean 'nodes'"));
  const Sweep mixed = read(kSingle, {"cluster.second={nodes: 2, gpu: h100_sxm}"});
  CHECK(serialize(deserialize(serialize(mixed))) == serialize(mixed));
  CHECK(document(mixed.experiments[0].settings)["cluster"]["second"]["nodes"] == 2);
  const Sweep axis = read(kSingle + "axes:\n  cluster.second.nodes: [1, 2]\n", {"cluster.second.gpu=h100_sxm"});
  REQUIRE(axis.experiments.size() + axis.excluded.size() == 2);
}

TEST_CASE("one node needs no rate of a NIC, which changes no step there, and more nodes do") {
  const auto text = [](const std::string& machines) {
    return "base:\n  model: {like: gpt3-125m}\n  cluster: {gpu: h100_sxm, gpus_per_node: 8, " + machines +
           "}\n  strategy: {tp: 2, pp: 2, micro_batch: 1, global_batch: 16}\n";
  };
  GraphCache graphs;
  core::step::SimulationContext context;
  core::step::IsolatedResults isolated;
  const auto step = [&](const std::string& machines) {
    const Sweep sweep = read(text(machines));
    return context.run(context.compile(configure(sweep.experiments[0], graphs)), isolated).step_ps;
  };
  const auto without = step("nodes: 1");
  for (const char* rate : {"1", "100", "400"}) CHECK(step(std::string("nodes: 1, nic_gbps: ") + rate) == without);
  CHECK_THROWS_WITH(read(text("nodes: 2")), Contains("'cluster.nic_gbps' is missing"));
  CHECK_THROWS_WITH(read(text("nodes: 1, second: {nodes: 1, gpu: a100_80}")),
                    Contains("'cluster.nic_gbps' is missing"));
}

TEST_CASE("measured times are refused where GPUs are not alike") {
  ExperimentConfig mixed = config_with({"faults.slow_gpus=gpu0=0.5"});
  mixed.has_measured_kernels = true;
  GraphCache graphs;
  const auto violation = find_violation(mixed, graphs);
  REQUIRE(violation);
  CHECK(violation->rule == "measured_on_one_kind");
}

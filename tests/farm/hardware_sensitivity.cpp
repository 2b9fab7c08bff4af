// What better hardware brings to an experiment, against closed forms.
#include "farm/explain/hardware_sensitivity.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "farm/texts/step_text.hpp"
#include "tests/farm/sweep_samples.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

Sensitivity sensitivity_of(const std::vector<std::string>& sets, const std::string& rest = "") {
  const experiments::Sweep sweep = small_sweep(rest, sets);
  Sensitivity result = hardware_sensitivity(sweep.experiments.at(0));
  result.results = simulate_here(result.sweep);
  return result;
}

const HardwareFigure& figure_named(const Sensitivity& sensitivity, const std::string& name) {
  for (const HardwareFigure& figure : sensitivity.figures)
    if (figure.name == name) return figure;
  FAIL("no figure " << name);
  return sensitivity.figures.front();
}

double elasticity_of(const Sensitivity& sensitivity, const std::string& name) {
  return improvement_by(sensitivity, figure_named(sensitivity, name)).value().elasticity;
}

double sum_of(const Sensitivity& sensitivity) {
  double sum = 0;
  for (const HardwareFigure& figure : sensitivity.figures)
    sum += improvement_by(sensitivity, figure).value().elasticity;
  return sum;
}

/// One GPU without launches, whose long kernels are not throttled: kernels follow their rates alone.
const std::vector<std::string> kAlone{
    "cluster.nodes=1",         "cluster.gpus_per_node=1",     "strategy.tp=1",      "strategy.global_batch=4",
    "cluster.gpu.launch_us=0", "cluster.gpu.gemm_throttle=0", "model.sequence=1024"};

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

}  // namespace

TEST_CASE("where bytes cost nothing a step goes with the GPU's compute, and where FLOPs do with its memory") {
  const std::vector<std::string> no_host = with(kAlone, {"strategy.stack.host_kernel_us=0"});
  const Sensitivity compute = sensitivity_of(with(no_host, {"cluster.gpu.memory_gb_per_s=500000"}));
  CHECK(elasticity_of(compute, "GPU compute") == Approx(1).margin(0.03));
  CHECK(elasticity_of(compute, "GPU memory bandwidth") == Approx(0).margin(0.03));
  CHECK(sum_of(compute) == Approx(1).margin(1e-3));
  const Sensitivity memory =
      sensitivity_of(with(no_host, {"cluster.gpu.matrix_tflops=500000", "cluster.gpu.clock_ghz=90"}));
  CHECK(elasticity_of(memory, "GPU memory bandwidth") == Approx(1).margin(0.03));
  CHECK(sum_of(memory) == Approx(1).margin(1e-3));
  // On an A100 a step is kernels of both kinds.
  const Sensitivity both = sensitivity_of(no_host);
  CHECK(elasticity_of(both, "GPU compute") > 0.2);
  CHECK(elasticity_of(both, "GPU memory bandwidth") > 0.1);
  CHECK(sum_of(both) <= 1 + 1e-6);
  CHECK(sum_of(both) > 0.97);
  CHECK(elasticity_of(both, "GPU memory") == 0);
}

TEST_CASE("where the host launches slowly a step goes with it") {
  const Sensitivity host = sensitivity_of(with(kAlone, {"strategy.stack.host_kernel_us=5000"}));
  CHECK(elasticity_of(host, "host launch") == Approx(1).margin(0.01));
  CHECK(elasticity_of(host, "GPU compute") < 0.01);
}

TEST_CASE("the share of a step that goes with the NICs is the time of its all-reduce on the wire") {
  for (const std::string fidelity : {"analytic", "packet"}) {
    const Sensitivity found = sensitivity_of(
        {"cluster.gpus_per_node=1", "strategy.tp=1", "strategy.micro_batch=1", "strategy.global_batch=2",
         "cluster.nic_gbps=10", "collectives.all_reduce=ring", "strategy.zero=0", "fidelity=" + fidelity});
    const ResultRow row{found.results.experiments, 0};
    const double step_s = row.number("step_time_s");
    // A ring of two members sends 2 (n - 1) / n = 1 times the gradients from each.
    const double wire_s = row.number("memory_gradients_bytes") * 8 / 10e9;
    CAPTURE(fidelity, step_s, wire_s);
    CHECK(row.number("exposed_dp_s") > 0.8 * step_s);
    CHECK(elasticity_of(found, "NICs") * step_s == Approx(wire_s).epsilon(0.05));
    CHECK(sum_of(found) <= 1 + 1e-3);
    CHECK(sum_of(found) > 0.97);
  }
}

TEST_CASE("better hardware lengthens no analytic step, and elasticities add up to 1 at most") {
  std::mt19937 random(11);
  const auto draw = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  std::size_t ran = 0;
  for (int round = 0; round < 50; ++round) {
    const std::vector<std::string> sets{"fidelity=analytic",
                                        "strategy.tp=" + draw({"1", "2", "4"}),
                                        "strategy.pp=" + draw({"1", "2"}),
                                        "strategy.micro_batch=" + draw({"1", "2"}),
                                        "strategy.recompute=" + draw({"none", "selective", "full"}),
                                        "strategy.overlap_grad_reduce=" + draw({"true", "false"}),
                                        "cluster.nic_gbps=" + draw({"10", "100", "400"}),
                                        "model.sequence=" + draw({"256", "1024"}),
                                        "collectives.protocol=" + draw({"none", "simple", "ll128", "calibrated"})};
    const Sensitivity found = sensitivity_of(sets);
    if (!ResultRow{found.results.experiments, 0}.ran()) continue;
    ++ran;
    for (const HardwareFigure& figure : found.figures) {
      const auto improved = improvement_by(found, figure);
      CAPTURE(sets, figure.name);
      REQUIRE(improved);
      CHECK(improved->change <= 1e-9);
    }
    CAPTURE(sets);
    CHECK(sum_of(found) <= 1 + 1e-3);
  }
  CHECK(ran > 20);
}

TEST_CASE("a figure that is 10 % better is the experiment with its settings overridden") {
  const Sensitivity found = sensitivity_of({});
  const HardwareFigure& nics = figure_named(found, "NICs");
  CHECK(nics.keys == std::vector<std::string>{"cluster.nic_gbps"});
  const Sensitivity faster = sensitivity_of({"cluster.nic_gbps=220"});
  CHECK(found.results.experiments.find("step_time_ps")->number_at(*nics.row) ==
        faster.results.experiments.find("step_time_ps")->number_at(0));
  const HardwareFigure& compute = figure_named(found, "GPU compute");
  CHECK(compute.keys == std::vector<std::string>{"cluster.gpu.clock_ghz", "cluster.gpu.matrix_tflops"});
  for (const HardwareFigure& figure : found.figures)
    for (const std::string& key : figure.keys) {
      const double before = std::get<double>(found.layout.settings.at(std::string_view(key)));
      const double after = std::get<double>(found.sweep.experiments.at(*figure.row).settings.at(std::string_view(key)));
      CHECK(after == Approx(key.ends_with("_us") ? before / 1.1 : before * 1.1).epsilon(1e-14));
    }
}

TEST_CASE("figures that cannot be better say why") {
  const Sensitivity found = sensitivity_of({"cluster.gpu.clock_ghz=95"});
  const HardwareFigure& compute = figure_named(found, "GPU compute");
  CHECK_FALSE(compute.row);
  CHECK_THAT(compute.unknown, Catch::Contains("'cluster.gpu.clock_ghz' must be a number (GHz) from 0.001 to 100"));
  CHECK_FALSE(improvement_by(found, compute));
  CHECK_THAT(sensitivity_text(found), Catch::Contains("must be a number (GHz) from 0.001 to 100"));
  CHECK(improvement_by(found, figure_named(found, "NICs")));
}

TEST_CASE("figures that a file with the fabric tells are not changed by settings, and that is said") {
  const std::string file = source_folder() + "/tests/experiments/topologies/spectrum_x_16g_8gps_400gbps_h100.txt";
  const experiments::Sweep sweep = experiments::parse_sweep(
      "base:\n  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}\n"
      "  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 8}\n  topology: {graph: {file: '" +
          file +
          "'}}\n"
          "  strategy: {tp: 2, global_batch: 16}\n",
      "graph.yaml", {"fidelity=analytic"}, experiments::Catalog(), {});
  const Sensitivity found = hardware_sensitivity(sweep.experiments.at(0));
  for (const char* name : {"NICs", "scale-up links", "link latency"}) {
    CHECK(figure_named(found, name).unknown == file + " tells it, and no setting changes it");
    CHECK_FALSE(figure_named(found, name).row);
  }
  CHECK(figure_named(found, "GPU compute").row);
}

TEST_CASE("of a layout that does not fit only more memory can tell anything") {
  const Sensitivity found = sensitivity_of({"cluster.gpu.memory_gib=0.6"});
  REQUIRE(ResultRow{found.results.experiments, 0}.text("status") == "out_of_memory");
  for (const HardwareFigure& figure : found.figures) CHECK_FALSE(improvement_by(found, figure));
  CHECK_THAT(sensitivity_text(found), Catch::Contains("out_of_memory: needs"));
}

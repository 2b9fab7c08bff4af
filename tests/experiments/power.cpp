// What a step's GPUs draw, part by part, and the settings that energy and price follow from.
#include <catch2/catch.hpp>

#include <cmath>

#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::step::Breakdown;

namespace {

constexpr GpuPower kPower{400, 100, 0.25};

using core::workload::StepPart;
const std::vector<StepPart> kKernels{StepPart::forward,   StepPart::backward, StepPart::recompute,
                                     StepPart::optimizer, StepPart::kernels,  StepPart::slowed};
const std::vector<StepPart> kCommunication{StepPart::exposed_tp, StepPart::exposed_dp, StepPart::exposed_pp,
                                           StepPart::exposed_cp, StepPart::exposed_ep, StepPart::exposed_other};
const std::vector<StepPart> kWaiting{StepPart::host, StepPart::exposed_offload, StepPart::bubble, StepPart::stall};

/// A second of nothing but one part.
double watts(StepPart part, const GpuPower& power) {
  Breakdown breakdown;
  breakdown[part] = 1;
  return gpu_energy_j(breakdown, power);
}

ExperimentConfig config_with(const std::string& from = "a100_40", const std::string& to = "a100_40") {
  return read(with(kSingle, from, to)).experiments.at(0).config();
}

}  // namespace

TEST_CASE("kernels draw board power, waiting idle power, and communication its share of what is between") {
  for (const auto part : kKernels) CHECK(watts(part, kPower) == 400);
  for (const auto part : kCommunication) CHECK(watts(part, kPower) == 100 + 0.25 * 300);
  for (const auto part : kWaiting) CHECK(watts(part, kPower) == 100);
  for (const auto part : kCommunication) CHECK(watts(part, {400, 100, 0}) == 100);
  for (const auto part : kCommunication) CHECK(watts(part, {400, 100, 1}) == 400);
}

TEST_CASE("the energy of a step is that of its parts, and every part of the breakdown is in it") {
  Breakdown breakdown;
  double seconds = 0, joules = 0, next = 0.5;
  for (const auto* parts : {&kKernels, &kCommunication, &kWaiting})
    for (const auto part : *parts) {
      breakdown[part] = next;
      seconds += next, joules += next * watts(part, kPower), next += 0.25;
    }
  CHECK(breakdown.size() == kKernels.size() + kCommunication.size() + kWaiting.size());  // all are named above
  CHECK(gpu_energy_j(breakdown, kPower) == Approx(joules).epsilon(1e-12));
  CHECK(gpu_energy_j(breakdown, {300, 300, 0.25}) == Approx(300 * seconds).epsilon(1e-12));
}

TEST_CASE("without one of its two figures a GPU's energy is not known") {
  Breakdown breakdown;
  breakdown[StepPart::forward] = 1;
  CHECK(std::isnan(gpu_energy_j(breakdown, {})));
  CHECK(std::isnan(gpu_energy_j(breakdown, {400, 0, 0.25})));
  CHECK(std::isnan(gpu_energy_j(breakdown, {0, 100, 0.25})));
}

TEST_CASE("every GPU of the catalog idles below half of what its board is built for") {
  const Catalog catalog;
  for (const auto& [name, entry] : catalog.entries("gpus")) {
    CAPTURE(name);
    REQUIRE((entry.values.count("board_power_w") == 1 && entry.values.count("idle_power_w") == 1));
    const double board = std::get<double>(entry.values.at("board_power_w").value);
    const double idle = std::get<double>(entry.values.at("idle_power_w").value);
    CHECK((0 < idle && idle < board / 2));
  }
}

TEST_CASE("power comes from the catalog or from the user, and no experiment needs power or a price") {
  CHECK(config_with().power.board_power_w == 400);
  CHECK(config_with().power.communication_power_share == GpuPower().communication_power_share);
  CHECK(config_with().cluster.usd_per_gpu_hour == 0);
  const ExperimentConfig own =
      config_with("gpu: a100_40", "usd_per_gpu_hour: 2.5, gpu: {like: a100_40, board_power_w: 250}");
  CHECK((own.power.board_power_w == 250 && own.power.idle_power_w == config_with().power.idle_power_w));
  CHECK(own.cluster.usd_per_gpu_hour == 2.5);
  const std::string unnamed =
      "{matrix_tflops: 100, memory_gib: 40, memory_gb_per_s: 1000, compute_units: 100, scale_up_gb_per_s: 100}";
  CHECK_FALSE(config_with("a100_40", unnamed).power.known());
}

TEST_CASE("a price or a power that cannot be is an error with its line") {
  const auto fails = [](const std::string& more, const std::vector<std::string>& says) {
    const std::string message = error_of(with(kSingle, "gpu: a100_40", more));
    CHECK_THAT(message, Catch::StartsWith("s.yaml:3: "));
    for (const std::string& part : says) CHECK_THAT(message, Catch::Contains(part));
  };
  for (const char* price : {"0", "-1", "nan", "free"})
    fails(fmt::format("gpu: a100_40, usd_per_gpu_hour: {}", price), {"'cluster.usd_per_gpu_hour'", "USD/h"});
  fails("gpu: {like: a100_40, board_power_w: 0}", {"'cluster.gpu.board_power_w'", "(W)"});
  fails("gpu: {like: a100_40, idle_power_w: -1}", {"'cluster.gpu.idle_power_w'", "(W)"});
  fails("gpu: {like: a100_40, communication_power_share: 1.5}", {"'cluster.gpu.communication_power_share'", "to 1"});
  fails("gpu: {like: a100_40, idle_power_w: 401}", {"idle_below_board", "idle_power_w 401, board_power_w 400"});
}

TEST_CASE("a sweep may rank by cost where some experiment has the figures, and is refused where none has") {
  const std::string by_price = kSingle + "objective: usd_per_million_tokens\n";
  CHECK_THAT(error_of(by_price), Catch::StartsWith("s.yaml:7: ") && Catch::Contains("cluster.usd_per_gpu_hour"));
  CHECK(read(by_price, {"cluster.usd_per_gpu_hour=2"}).objective == "usd_per_million_tokens");
  CHECK(error_of(kSingle + "objective: gpu_energy_per_token_j\n") == "(no error)");
  const std::string unnamed =
      "{matrix_tflops: 100, memory_gib: 40, memory_gb_per_s: 1000, compute_units: 100, scale_up_gb_per_s: 100}";
  CHECK_THAT(
      error_of(with(kSingle, "a100_40", unnamed) + "objective: gpu_energy_per_token_j\n"),
      Catch::StartsWith("s.yaml:7: ") && Catch::Contains("cluster.gpu.board_power_w and cluster.gpu.idle_power_w"));
  CHECK(error_of(with(kSingle, "a100_40", unnamed) + "axes: {cluster.gpu: [a100_40, " + unnamed +
                 "]}\nobjective: gpu_energy_per_token_j\n") == "(no error)");
}

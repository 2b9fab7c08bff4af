// Energy and money in the answer of a sweep: what they follow from, and that nothing else follows from them.
#include <catch2/catch.hpp>

#include <cmath>

#include "io/answer.hpp"
#include "io/top.hpp"
#include "sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

constexpr double kTokens = 16 * 256, kGpus = 8;  // of a step of small_sweep()

io::Results answer(const experiments::Sweep& sweep) {
  const SweepJob job(frozen_job(sweep, {}));
  const auto outcomes = run_all(job);
  return answer_of(sweep, job.plan(), looking_into(outcomes));
}

double number(const io::Results& results, const std::string& column, std::size_t row = 0) {
  const io::Column* found = results.experiments.find(column);
  REQUIRE(found);
  return found->number_at(row);
}

std::vector<core::sharing::Key> keys(const experiments::Sweep& sweep) {
  const Plan plan = make_plan(sweep);
  std::vector<core::sharing::Key> all;
  for (const auto& step : plan.steps) all.push_back(step.key);
  for (const auto& collective : plan.collectives) all.push_back(collective.key);
  return all;
}

const char* const kUnnamed =
    "{matrix_tflops: 312, memory_gib: 39.4, memory_gb_per_s: 1555, compute_units: 108, scale_up_gb_per_s: 300}";

}  // namespace

TEST_CASE("a step draws power times time, whatever it is made of, where power is the same all along") {
  const auto results = answer(
      small_sweep("axes: {strategy.pp: [1, 2]}\n", {"cluster.gpu.board_power_w=300", "cluster.gpu.idle_power_w=300"}));
  for (const std::size_t row : {0u, 1u})
    CHECK(number(results, "gpu_energy_per_token_j", row) ==
          Approx(300 * kGpus * number(results, "step_time_s", row) / kTokens).epsilon(1e-9));
}

TEST_CASE("one GPU alone computes or waits for its host, and draws board or idle power") {
  const auto results = answer(small_sweep("", {"cluster.nodes=1", "cluster.gpus_per_node=1", "strategy.tp=1"}));
  const double host = number(results, "host_s"), step = number(results, "step_time_s");
  REQUIRE(host < step);
  CHECK(number(results, "gpu_energy_per_token_j") == Approx((400 * (step - host) + 51 * host) / kTokens).epsilon(1e-9));
}

TEST_CASE("energy is that of the breakdown beside it") {
  const auto results = answer(small_sweep("", {"strategy.pp=2", "cluster.gpu.communication_power_share=0.5"}));
  const auto sum = [&](const std::vector<const char*>& names) {
    double seconds = 0;
    for (const char* name : names) seconds += number(results, name);
    return seconds;
  };
  const double kernels = sum({"forward_s", "backward_s", "recompute_s", "optimizer_s", "slowed_s"});
  const double communication = sum({"exposed_tp_s", "exposed_dp_s", "exposed_pp_s", "exposed_cp_s", "exposed_ep_s"});
  const double waiting = sum({"host_s", "bubble_s", "stall_s"});
  REQUIRE((communication > 0 && waiting > 0));
  const double joules = 400 * kernels + (51 + 0.5 * (400 - 51)) * communication + 51 * waiting;
  CHECK(number(results, "gpu_energy_per_token_j") == Approx(joules * kGpus / kTokens).epsilon(1e-9));
}

TEST_CASE("a million tokens cost their GPU-hours, at every price of an axis, and all prices are one step") {
  const auto sweep = small_sweep("axes: {cluster.usd_per_gpu_hour: [2, 3]}\n");
  CHECK(make_plan(sweep).steps.size() == 1);
  const auto results = answer(sweep);
  for (const std::size_t row : {0u, 1u}) {
    const double hours = kGpus * number(results, "step_time_s", row) / 3600;
    CHECK(number(results, "usd_per_million_tokens", row) ==
          Approx((2.0 + static_cast<double>(row)) * hours / kTokens * 1e6).epsilon(1e-12));
  }
  CHECK(number(results, "step_time_ps", 0) == number(results, "step_time_ps", 1));
  CHECK(number(results, "usd_per_million_tokens", 1) ==
        Approx(1.5 * number(results, "usd_per_million_tokens", 0)).epsilon(1e-12));
}

TEST_CASE("power and price are in no key and change no other column") {
  const auto plain = small_sweep("");
  const auto priced = small_sweep("", {"cluster.usd_per_gpu_hour=2", "cluster.gpu.board_power_w=500",
                                       "cluster.gpu.idle_power_w=20", "cluster.gpu.communication_power_share=1"});
  CHECK(keys(plain) == keys(priced));
  io::Results without = answer(plain), with = answer(priced);
  CHECK(number(with, "gpu_energy_per_token_j") > number(without, "gpu_energy_per_token_j"));
  with.spec = without.spec;
  for (io::Results* results : {&without, &with})
    std::erase_if(results->experiments.columns, [](const io::Column& column) {
      return column.name == "gpu_energy_per_token_j" || column.name == "usd_per_million_tokens";
    });
  CHECK(io::answer_bytes(without) == io::answer_bytes(with));
}

TEST_CASE("a column of costs is there where some experiment has figures for it, and NaN where one has none") {
  const auto plain = answer(small_sweep(""));
  CHECK(plain.experiments.find("gpu_energy_per_token_j") != nullptr);
  CHECK(plain.experiments.find("usd_per_million_tokens") == nullptr);
  const std::string unnamed = fmt::format("axes: {{cluster.gpu: [{}]}}\n", kUnnamed);
  CHECK(answer(small_sweep(unnamed)).experiments.find("gpu_energy_per_token_j") == nullptr);
  const auto both = answer(small_sweep(fmt::format("axes: {{cluster.gpu: [a100_40, {}]}}\n", kUnnamed)));
  CHECK(number(both, "gpu_energy_per_token_j", 0) == number(plain, "gpu_energy_per_token_j"));
  CHECK(std::isnan(number(both, "gpu_energy_per_token_j", 1)));
  CHECK(number(both, "step_time_s", 1) > 0);
}

TEST_CASE("rows of a sweep can be ranked by its objective also where none of them has the figure") {
  const auto sweep =
      small_sweep(fmt::format("axes: {{cluster.gpu: [a100_40, {}]}}\nobjective: gpu_energy_per_token_j\n", kUnnamed));
  const SweepJob job(frozen_job(sweep, {}));
  const auto outcomes = run_all(job);
  const auto rows = rows_of(sweep, job.plan(), looking_into(outcomes), experiments::Uncertainty::compiled(), {1});
  const auto ranking = io::rank_experiments(rows, {3, sweep.objective, ""});
  CHECK((ranking.rows.empty() && ranking.without_value == 1));
  CHECK(io::rank_experiments(answer(sweep), {3, sweep.objective, ""}).rows.size() == 1);
}

TEST_CASE("what did not run costs nothing that is known") {
  const auto results =
      answer(small_sweep("axes: {cluster.gpu.memory_gib: [0.125, 40]}\n", {"cluster.usd_per_gpu_hour=2"}));
  for (const char* name : {"gpu_energy_per_token_j", "usd_per_million_tokens"}) {
    CHECK(std::isnan(number(results, name, 0)));
    CHECK(number(results, name, 1) > 0);
  }
}

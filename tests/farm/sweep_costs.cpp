// Energy and money in the answer of a sweep: what they follow from, and that nothing else follows from them.
#include <catch2/catch.hpp>

#include <cmath>

#include "experiments/analysis/costs.hpp"
#include "io/ranking/top.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

constexpr double kTokens = 16 * 256, kGpus = 8;  // of a step of small_sweep()

io::Results answer(const experiments::Sweep& sweep) {
  const SweepJob job(serialize_job(sweep, {}));
  const auto outcomes = run_all(job);
  return make_results(sweep, job.plan(), looking_into(outcomes));
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
  CHECK(io::canonical_bytes(without) == io::canonical_bytes(with));
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

TEST_CASE("rows of a sweep of which none has the figure of its objective are ranked by the step time") {
  const auto sweep =
      small_sweep(fmt::format("axes: {{cluster.gpu: [a100_40, {}]}}\nobjective: gpu_energy_per_token_j\n", kUnnamed));
  const SweepJob job(serialize_job(sweep, {}));
  const auto outcomes = run_all(job);
  const auto rows = make_rows(sweep, job.plan(), looking_into(outcomes), experiments::Uncertainty::compiled(), {1});
  const auto ranking = io::rank_experiments(rows, {3, sweep.objective, ""});
  CHECK((ranking.rows.size() == 1 && ranking.by == "step_time_s" && ranking.instead_of == sweep.objective));
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

TEST_CASE("what a training run costs is in no key, and follows from the step, its price and its failures") {
  const std::vector<std::string> fails{"training.node_mtbf_hours=100",  "training.restart_s=600",
                                       "training.storage_gb_per_s=0.5", "training.snapshot_gb_per_s=20",
                                       "training.tokens=1e10",          "cluster.usd_per_gpu_hour=2"};
  const auto sweep = small_sweep("axes: {training.checkpoint: [none, sync, async, flash]}\n", fails);
  CHECK(make_plan(sweep).steps.size() == 1);
  CHECK(keys(sweep) == keys(small_sweep("")));
  const auto results = answer(sweep);
  for (std::size_t row = 0; row < 4; ++row) {
    const double useful = 1e10 / kTokens * number(results, "step_time_s", row);
    CHECK(number(results, "train_time_s", row) == Approx(useful / number(results, "goodput", row)).epsilon(1e-12));
    CHECK(number(results, "train_usd", row) ==
          Approx(2 * kGpus / 3600 * number(results, "train_time_s", row)).epsilon(1e-12));
    double shares = 0;
    for (const char* name : {"goodput", "rework_share", "checkpointing_share", "restarting_share"})
      shares += number(results, name, row);
    CHECK(shares == Approx(1).epsilon(1e-12));
    if (row > 0) CHECK(number(results, "goodput", row) > number(results, "goodput", row - 1));
  }
  CHECK(std::isnan(number(results, "checkpoint_interval_s", 0)));
  CHECK(results.experiments.find("train_energy_kwh") == nullptr);  // nobody said what hosts draw
  CHECK(io::rank_experiments(results, {4, "train_usd", ""}).rows.front().row == 3);
}

TEST_CASE("columns of costs are there from the beginning of a sweep, and by the figures of what does not run") {
  const std::vector<std::string> sets{"training.node_mtbf_hours=100", "training.restart_s=600",
                                      "training.checkpoint=sync", "training.block_s=5", "training.tokens=1e9"};
  const auto sweep = small_sweep("axes: {cluster.gpu.memory_gib: [0.125, 40]}\n", sets);
  const SweepJob job(serialize_job(sweep, {}));
  const Outcome pending{Status::pending, "", 0};
  const auto begun = make_results(sweep, job.plan(), [&](std::uint32_t) -> const Outcome& { return pending; });
  const auto done = answer(sweep);
  std::vector<std::string> at_first, at_last;
  for (const io::Column& column : begun.experiments.columns) at_first.push_back(column.name);
  for (const io::Column& column : done.experiments.columns) at_last.push_back(column.name);
  CHECK(at_first == at_last);
  CHECK(std::isnan(number(done, "train_time_s", 0)));
  CHECK(number(done, "train_time_s", 1) > 0);
  CHECK(std::isnan(number(begun, "train_time_s", 1)));
}

TEST_CASE("a fabric with fewer ports draws less, and the steps on it are what they were") {
  const std::vector<std::string> draws{"cluster.host_power_w=1000", "cluster.switch_port_power_w=20",
                                       "cluster.pue=1.2"};
  const std::string fabrics =
      "axes: {topology: [{rail_optimized: {oversubscription: 1}}, {rail_optimized: {oversubscription: 2}}]}\n";
  const auto with = answer(small_sweep(fabrics, draws)), without = answer(small_sweep(fabrics));
  experiments::GraphCache graphs;
  for (std::size_t row = 0; row < 2; ++row) {
    const auto config = small_sweep(fabrics).experiments.at(row).config();
    const auto ports = static_cast<double>(experiments::switch_ports(*graphs.get(config)));
    const double step = number(with, "step_time_s", row);
    CHECK(number(with, "network_energy_per_token_j", row) == Approx(20 * ports * step / kTokens).epsilon(1e-12));
    CHECK(number(with, "energy_per_token_j", row) ==
          Approx(1.2 * (number(with, "gpu_energy_per_token_j", row) + (20 * ports + 2000) * step / kTokens))
              .epsilon(1e-12));
    CHECK(number(with, "step_time_ps", row) == number(without, "step_time_ps", row));
  }
  CHECK(number(with, "network_energy_per_token_j", 1) / number(with, "step_time_s", 1) <
        number(with, "network_energy_per_token_j", 0) / number(with, "step_time_s", 0));
  CHECK(without.experiments.find("energy_per_token_j") == nullptr);
}

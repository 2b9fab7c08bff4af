// Sweeps over models under a budget: the best by loss alone, and published runs in days and money.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/costs/scaling_law.hpp"
#include "experiments/sweep/best.hpp"
#include "farm/best/best_selection.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "io/ranking/top.hpp"
#include "tests/farm/sweep_samples.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

const std::string kSweeps = source_folder() + "/experiments/sweeps/";

io::Results whole(const experiments::Sweep& sweep) {
  const SweepJob job(serialize_job(sweep, {}));
  const std::vector<Outcome> outcomes = run_all(job);
  return make_results(sweep, job.plan(), looking_into(outcomes));
}

/// The results of a sweep that asks for its best, one task after the other.
io::Results selected(const experiments::Sweep& sweep) {
  const SweepJob job(serialize_job(sweep, {}));
  BestSelection selection(job, 1);
  TaskQueue queue(job.tasks(), &selection);
  SweepRunner runner(job.common_spec());
  while (!queue.complete()) {
    const auto task = queue.take();
    REQUIRE(task);
    queue.settle(*task, run_guarded(runner, job.spec(*task), {}));
  }
  const SelectedResults results =
      selected_results(job, [&](std::uint32_t task) -> const Outcome& { return queue.outcome(task); });
  return make_results(job.sweep(), results.plan, results.outcome);
}

double number(const io::Results& results, const char* column, std::size_t row) {
  const io::Column* found = results.experiments.find(column);
  REQUIRE(found);
  return found->number_at(row);
}

std::vector<std::pair<double, std::size_t>> by_loss(const io::Results& results) {
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    if (const double loss = number(results, "budget_loss", row); !std::isnan(loss)) ranked.emplace_back(loss, row);
  std::sort(ranked.begin(), ranked.end());
  return ranked;
}

}  // namespace

TEST_CASE("a sweep over models by loss finds with bounds alone what it finds whole, in packets") {
  const std::string axes =
      "axes:\n"
      "  model: [{like: gpt3-125m, layers: 4, sequence: 256}, {like: gpt3-125m, layers: 12, sequence: 256},\n"
      "          {like: gpt3-350m, sequence: 256}, {like: gpt3-760m, sequence: 256}]\n"
      "  strategy.tp: [1, 2, 4]\n"
      "  strategy.pp: [1, 2]\n"
      "objective: budget_loss\n";
  for (const double hours : {0.2, 1.0, 20.0}) {
    const std::vector<std::string> sets{fmt::format("training.budget_gpu_days={}", hours / 3)};  // 8 GPUs
    experiments::Sweep sweep = small_sweep(axes, sets);
    const io::Results all = whole(sweep);
    const auto ranked = by_loss(all);
    REQUIRE(ranked.size() > 15);
    experiments::ask_for_best(sweep, 1, "--best");
    const io::Results best = selected(sweep);
    const auto found = by_loss(best);
    CAPTURE(hours, found.size());
    REQUIRE_FALSE(found.empty());
    CHECK(found.front() == ranked.front());
    CHECK(found.size() < ranked.size() / 2);
    for (const auto& [loss, row] : ranked) {
      const double step_s = number(all, "step_time_s", row);
      const double tokens = hours * 3600 / step_s * 16 * 256;
      CHECK(number(all, "budget_tokens", row) == Approx(tokens).epsilon(1e-12));
      const auto parameters =
          static_cast<double>(core::workload::model_parameters(sweep.experiments.at(row).config().configuration.model));
      CHECK(loss == experiments::predicted_loss({}, parameters, number(all, "budget_tokens", row)));
    }
  }
}

TEST_CASE("a longer budget has a larger model") {
  std::vector<double> chosen;
  for (const int days : {1, 300, 100'000}) {
    const experiments::Sweep sweep =
        experiments::read_sweep(kSweeps + "compute_optimal.yaml",
                                {"cluster.nodes=1", "strategy.global_batch=64", "strategy.micro_batch=1",
                                 "strategy.recompute=full", fmt::format("training.budget_gpu_days={}", days)});
    const io::Results results = selected(sweep);
    const auto ranked = by_loss(results);
    REQUIRE_FALSE(ranked.empty());
    chosen.push_back(static_cast<double>(
        core::workload::model_parameters(sweep.experiments.at(ranked.front().second).config().configuration.model)));
  }
  CHECK(std::is_sorted(chosen.begin(), chosen.end()));
  CHECK(chosen[0] < chosen[1]);
  CHECK(chosen[1] < chosen[2]);
}

TEST_CASE("MT-NLG's published runs become days and money") {
  // Smith et al. 2022, section 2.4: seconds of a step of 1,920 samples on 280, 350 and 420 nodes.
  const std::map<std::size_t, double> measured{{0, 60.1}, {1, 50.2}, {2, 44.4}};
  const experiments::Sweep sweep = experiments::read_sweep(kSweeps + "mt-nlg.yaml");
  const io::Results results = whole(sweep);
  const double steps = 270e9 / (1920 * 2048.0);
  for (const auto& [row, measured_s] : measured) {
    const double step_s = number(results, "step_time_s", row), days = steps * step_s / 86'400;
    CHECK(number(results, "train_time_s", row) == Approx(days * 86'400).epsilon(1e-12));
    CHECK(number(results, "train_usd", row) ==
          Approx(5 * 24 * days * 8 * (280.0 + 70 * static_cast<double>(row))).epsilon(1e-12));
    CAPTURE(step_s, measured_s, days);
    CHECK(step_s < measured_s);  // without contention, and with the kernels of 2021 at their best
    CHECK(step_s > 0.6 * measured_s);
  }
  CHECK(number(results, "train_time_s", 2) < number(results, "train_time_s", 0));
  CHECK(number(results, "train_usd", 2) > number(results, "train_usd", 0));
}

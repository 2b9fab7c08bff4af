// Why the best of a sweep are its best, and what more memory would bring, against all of them simulated.
#include "farm/explain/explained_best.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/error.hpp"
#include "experiments/sweep/best.hpp"
#include "farm/best/best_selection.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "farm/explain/hardware_sensitivity.hpp"
#include "farm/texts/step_text.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

const TaskProgress kSilent = [](std::size_t, std::size_t) {};

io::Results proven_results(const experiments::Sweep& sweep) {
  const SweepJob job(serialize_job(sweep, {}));
  BestSelection selection(job, 1);
  TaskQueue queue(job.tasks(), &selection);
  SweepRunner runner(job.common_spec());
  while (const auto task = queue.take()) queue.settle(*task, run_guarded(runner, job.spec(*task), {}));
  const SelectedResults selected =
      selected_results(job, [&](std::uint32_t task) -> const Outcome& { return queue.outcome(task); });
  io::Results results = make_results(job.sweep(), selected.plan, selected.outcome);
  results.provenance = {{"best", static_cast<std::int64_t>(sweep.best)},
                        {"best_analytic", static_cast<std::int64_t>(selected.analytic)},
                        {"best_gap", selected.proven_gap.value_or(0)}};
  return results;
}

experiments::Sweep sweep_in(double memory_gib, const std::string& objective) {
  experiments::Sweep sweep = small_sweep(
      "axes: {strategy.tp: [1, 2, 4], strategy.pp: [1, 2], strategy.micro_batch: [1, 2, 4, 8]}\nobjective: " +
          objective + "\n",
      {fmt::format("cluster.gpu.memory_gib={}", memory_gib)});
  experiments::ask_for_best(sweep, 1, "--best");
  return sweep;
}

}  // namespace

TEST_CASE("10 % more memory brings the best of all experiments that then fit") {
  std::size_t better = 0, none = 0;
  for (const std::string objective : {"step_time_s", "tokens_per_s_per_gpu"})
    for (const double gib : {1.3, 1.45, 1.6, 1.75, 1.9, 2.1, 2.3, 2.6}) {
      const experiments::Sweep sweep = sweep_in(gib, objective);
      const io::Results results = proven_results(sweep);
      if (!io::best_proof(results)) continue;
      const ExplainedBest explained = explain_best(results, &sweep, "run");
      const MoreMemory found = look_at_more_memory(explained, sweep, kSilent);
      // Everything in more memory, all of it simulated.
      experiments::Sweep larger = sweep;
      larger.best = 0;
      for (auto& one : larger.experiments) improve(one.settings, memory_keys(one.settings));
      const io::Table all = simulate_here(larger, kSilent).experiments;
      std::size_t fitting = 0;
      double best = explained.proof.last;
      const io::Column& value = *all.find(objective);
      const auto is_better = [&](double a, double b) { return objective == "step_time_s" ? a < b : a > b; };
      for (std::size_t row = 0; row < all.rows(); ++row) {
        if (results.experiments.text_at("status", row) != "out_of_memory" || all.text_at("status", row) != "ran")
          continue;
        ++fitting;
        if (is_better(value.number_at(row), best)) best = value.number_at(row);
      }
      CAPTURE(objective, gib);
      CHECK(found.fitting == fitting);
      CHECK(found.best.has_value() == is_better(best, explained.proof.last));
      if (found.best) CHECK(found.value == best);
      if (found.best) CHECK(value.number_at(static_cast<std::size_t>(*found.best)) == best);
      CHECK(found.simulated <= fitting);
      (found.best ? better : none) += 1;
    }
  CHECK(better > 0);
  CHECK(none > 0);
}

TEST_CASE("the best of a sweep is explained by the parts of its bound beside those of its step") {
  const experiments::Sweep sweep = sweep_in(40, "tokens_per_s_per_gpu");
  const io::Results results = proven_results(sweep);
  const ExplainedBest explained = explain_best(results, &sweep, "runs/mine");
  const ResultRow row{results.experiments, explained.proof.rows.front()};
  const ResultRow analytic{explained.winner.value().analytic.experiments};
  CHECK(analytic.number("step_time_s") == row.number("step_time_bound_s"));
  CHECK(explained.winner->sums_s <= row.number("step_time_bound_s"));
  CHECK(explained.winner->sums_s > 0);
  const auto json = best_explained_json(explained, "runs/mine");
  double bound = 0, step = 0, shares = 0;
  for (const auto& [name, part] : json.at("winner").at("parts").items())
    bound += part.at("bound").get<double>(), step += part.at("step").get<double>();
  for (const auto& [name, share] : json.at("winner").at("binds").items()) shares += share.get<double>();
  CHECK(bound == Approx(row.number("step_time_bound_s")).epsilon(1e-9));
  CHECK(step == Approx(row.number("step_time_s")).epsilon(1e-9));
  CHECK(shares == Approx(1).epsilon(1e-9));
  const std::string text = best_explained_text(explained, "runs/mine");
  for (const char* part : {"runs/mine: the best 1 by tokens_per_s_per_gpu", "sums over a micro-batch",
                           "what binds it: ", "kernels", "memory: "})
    CHECK_THAT(text, Catch::Contains(part));
  // The results alone have everything but what has to be simulated.
  const std::string alone = best_explained_text(explain_best(results, nullptr, "runs/mine"), "runs/mine");
  CHECK_THAT(alone, Catch::Contains("its bound is ") && !Catch::Contains("what binds it"));
}

TEST_CASE("a run that nobody asked for its best has no proof to explain") {
  experiments::Sweep sweep = sweep_in(40, "step_time_s");
  sweep.best = 0;
  const io::Results results = simulate_here(sweep, kSilent);
  CHECK_THROWS_WITH(
      explain_best(results, &sweep, "runs/mine"),
      Catch::Contains("runs/mine: nobody asked it for its best (sweep --best K); explain RUN --experiment"));
}

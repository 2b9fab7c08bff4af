// A sweep that asks for a Pareto front: what is simulated, against the whole sweep and a plain definition.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/base/error.hpp"
#include "experiments/sweep/best.hpp"
#include "farm/best/best_selection.hpp"
#include "farm/best/minimised_objective.hpp"
#include "farm/best/skyband.hpp"
#include "io/ranking/best_proof.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/farm/selected_run.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

const std::string kAxes =
    "axes: {strategy.tp: [1, 2, 4], strategy.pp: [1, 2], strategy.micro_batch: [1, 2], cluster.nodes: [1, 2],\n"
    "       strategy.recompute: [none, full], transport.seed: [1, 2]}\n";

struct Asked {
  std::string objective, column;
  std::uint32_t best = 1;
  double gap = 0;
};

const std::string kBatch = experiments::kFrontOfBatches;
const std::string kBatchAxes =
    "axes: {strategy.tp: [1, 2, 4], strategy.pp: [1, 2], strategy.micro_batch: [1, 2],\n"
    "       strategy.recompute: [none, full], strategy.global_batch: [16, 32, 64]}\n";

SweepJob job_of(const Asked& asked) {
  experiments::Sweep sweep =
      small_sweep((asked.column == kBatch ? kBatchAxes : kAxes) + "objective: " + asked.objective + "\n",
                  {"cluster.usd_per_gpu_hour=2", "transport.routing=ecmp_hash", "topology={rail_optimized: {}}"});
  if (asked.best > 0) {
    experiments::ask_for_best(sweep, asked.best, "--best");
    experiments::ask_for_front(sweep, asked.column, "--front");
  }
  sweep.gap = asked.gap;
  return SweepJob(serialize_job(sweep, {}));
}

/// A column and its bound, minimised; of a column that is known the bound is the value.
struct Values {
  Values(const io::Results& results, const std::string& column)
      : of(minimised_objective(results, column)), at_best(of) {
    const std::string name = column == "step_time_s" ? "step_time_bound_s" : column + std::string(io::kBoundSuffix);
    const io::Column* bound = results.experiments.find(name);
    for (std::size_t row = 0; bound != nullptr && row < of.size(); ++row)
      at_best[row] = minimised(bound->number_at(row), column);
  }
  std::vector<double> of, at_best;
};

/// Returns which rows ran, as 1.
std::vector<int> rows_that_ran(const io::Results& results) {
  std::vector<int> ran;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    ran.push_back(results.experiments.text_at("status", row) == "ran" ? 1 : 0);
  return ran;
}

/// What is to run, one experiment after the other in the order of the bounds.
std::vector<int> rows_to_run(const Values& objective, const Values& other, const Asked& asked) {
  std::vector<std::size_t> order(objective.of.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return objective.at_best[a] < objective.at_best[b]; });
  std::vector<int> runs(order.size());
  for (const std::size_t row : order) {
    std::size_t dominating = 0;
    for (const std::size_t before : order)
      if (runs[before] == 1 && objective.at_best[before] < objective.at_best[row] &&
          objective.of[before] - asked.gap * std::abs(objective.of[before]) < objective.at_best[row] &&
          other.of[before] <= other.at_best[row])
        ++dominating;
    runs[row] = dominating < asked.best ? 1 : 0;
  }
  return runs;
}

io::Results whole_results(const Asked& asked, bool slow) {
  const SweepJob whole = job_of({asked.objective, asked.column, 1'000});  // more than there are: every step
  return SelectedRun(whole, 1, 1, {}, slow).results();
}

const std::vector<Asked> kPairs{{"tokens_per_s_per_gpu", "memory_peak_bytes"},
                                {"step_time_s", "gpus"},
                                {"tokens_per_s_per_gpu", kBatch},
                                {"mfu", "usd_per_million_tokens"},
                                {"usd_per_million_tokens", "step_time_s"}};

}  // namespace

TEST_CASE("of a front those are simulated whose bounds nothing dominates, in any order and for any ranks") {
  for (Asked asked : kPairs) {
    for (const bool slow : {false, true}) {
      const io::Results whole = whole_results(asked, slow);
      const Values all(whole, asked.objective), others(whole, asked.column);
      for (const std::uint32_t best : {1u, 2u, 5u}) {
        asked.best = best;
        const SweepJob job = job_of(asked);
        const io::Results results = SelectedRun(job, 1, 1, {}, slow).results();
        const std::vector<int> ran = rows_that_ran(results);
        CAPTURE(asked.objective, asked.column, best, slow);
        const Values objective(results, asked.objective), other(results, asked.column);
        CHECK(ran == rows_to_run(objective, other, asked));
        CHECK(std::count(ran.begin(), ran.end(), 1) < std::ssize(ran));
        for (std::size_t row = 0; row < ran.size(); ++row) {
          std::size_t dominating = 0;
          for (std::size_t by = 0; by < ran.size(); ++by)
            dominating += all.of[by] < all.of[row] && others.of[by] <= others.of[row] ? 1 : 0;
          if (dominating < best) CHECK(ran[row] == 1);
        }
        for (const std::size_t at_once : {2u, 100u})
          CHECK(
              io::canonical_bytes(SelectedRun(job, at_once, static_cast<std::uint32_t>(at_once), {}, slow).results()) ==
              io::canonical_bytes(results));
      }
    }
  }
}

TEST_CASE("a proven front is that of the whole sweep") {
  for (const Asked& asked : kPairs) {
    const auto front_of = [&](io::Results results) {
      const auto order = [](const std::string& name) {
        return name + (experiments::ordered_column(name).more_is_better ? " desc" : " asc");
      };
      results.provenance = {{"best", std::int64_t{1}},
                            {"best_analytic", std::int64_t{1}},
                            {"front_objective", order(asked.objective)},
                            {"front_column", order(asked.column)}};
      return io::proven_front(results).value().rows;
    };
    const io::Results whole = whole_results(asked, true);
    const std::vector<std::size_t> found = front_of(SelectedRun(job_of(asked), 3, 1, {}, true).results());
    CAPTURE(asked.objective, asked.column);
    CHECK(found == front_of(whole));
    // Plainly: nothing is better in both, nor in one and equal in the other.
    const Values all(whole, asked.objective), others(whole, asked.column);
    for (const std::size_t row : found)
      for (std::size_t by = 0; by < all.of.size(); ++by)
        CHECK_FALSE((all.of[by] <= all.of[row] && others.of[by] <= others.of[row] &&
                     (all.of[by] < all.of[row] || others.of[by] < others.of[row])));
  }
}

TEST_CASE("with a gap a front is the same in any order, and nothing is better than its own by more than it") {
  for (Asked asked : kPairs) {
    const io::Results whole = whole_results(asked, true);
    const Values all(whole, asked.objective), others(whole, asked.column);
    for (const double gap : {0.02, 0.5}) {
      for (const std::uint32_t best : {1u, 3u}) {
        asked.gap = gap, asked.best = best;
        const SweepJob job = job_of(asked);
        const SelectedRun first(job, 1, 1, {}, true);
        const io::Results results = first.results();
        const std::vector<int> ran = rows_that_ran(results);
        CAPTURE(asked.objective, asked.column, gap, best);
        CHECK(ran == rows_to_run({results, asked.objective}, {results, asked.column}, asked));
        const double proven = first.selected().front_gap.value();
        CHECK(proven <= gap);
        for (std::size_t row = 0; row < ran.size(); ++row) {
          std::size_t dominating = 0;
          for (std::size_t by = 0; by < ran.size(); ++by)
            if (ran[by] == 1 && others.of[by] <= others.of[row] &&
                better_by(all.of[by], proven) <= all.of[row] + kObjectiveRounding * std::abs(all.of[row]))
              ++dominating;
          CHECK((ran[row] == 1 || dominating >= best));
        }
        for (const std::size_t at_once : {2u, 100u}) {
          const SelectedRun more(job, at_once, static_cast<std::uint32_t>(at_once), {}, true);
          CHECK(io::canonical_bytes(more.results()) == io::canonical_bytes(results));
          CHECK(more.selected().front_gap.value() == proven);
          CHECK(more.selected().proven_gap.value() == first.selected().proven_gap.value());
        }
      }
    }
  }
}

TEST_CASE("what a journal knows of a front changes nothing of the answer") {
  for (const double gap : {0.0, 0.1}) {
    const SweepJob job = job_of({"tokens_per_s_per_gpu", "memory_peak_bytes", 1, gap});
    const std::string fresh = io::canonical_bytes(SelectedRun(job, 1, 1, {}, true).results());
    const auto last = static_cast<std::uint32_t>(job.tasks().size() - 1);
    for (const std::vector<std::uint32_t>& known :
         {std::vector<std::uint32_t>{last}, {0, 1, last, last - 1}, {job.plan().task_of_step(0), last - 3}})
      CHECK(io::canonical_bytes(SelectedRun(job, 2, 5, known, true).results()) == fresh);
  }
}

TEST_CASE("a front is against what is known before a step is simulated, or bounded by its time") {
  for (const auto& [objective, column, problem] :
       {std::tuple("step_time_s", "step_time_s",
                   "step_time_s is the objective itself; a front is against one of "
                   "memory_peak_bytes, gpus, strategy.global_batch, tokens_per_s_per_gpu, mfu, "),
        std::tuple("step_time_s", "goodput",
                   "'goodput' is neither known before a step is simulated nor bounded by its"),
        std::tuple("step_time_s", "link_hops", "'link_hops' is neither known"),
        std::tuple("memory_peak_bytes", "gpus", "no lower bound proves the best by memory_peak_bytes; rank by")}) {
    experiments::Sweep sweep = small_sweep(kAxes + "objective: " + objective + "\n");
    CHECK_THROWS_WITH(experiments::ask_for_front(sweep, column, "--front"),
                      Catch::StartsWith("--front: ") && Catch::Contains(problem));
    CHECK_THROWS_WITH(small_sweep(kAxes + "objective: " + objective + "\nfront: " + column + "\n"),
                      Catch::StartsWith("small.yaml:") && Catch::Contains(std::string("'front': ") + problem));
  }
  CHECK_THROWS_WITH(small_sweep(kAxes + "front: strategy.global_batch\n"),
                    Catch::Contains("'front' strategy.global_batch needs it as an axis, as in"));
  CHECK_THROWS_WITH(small_sweep(kAxes + "front: train_usd\n"),
                    Catch::Contains("'front' train_usd needs training.tokens"));
  const experiments::Sweep sweep = small_sweep(kAxes + "front: gpus\ngap: 2%\n");
  CHECK((sweep.best == 1 && sweep.front == "gpus" && sweep.gap == 0.02));
  CHECK(experiments::deserialize(experiments::serialize(sweep)).front == "gpus");
  CHECK(small_sweep(kAxes + "best: 4\nfront: gpus\n").best == 4);
}

TEST_CASE("a skyband has what fewer than k results with lower bounds dominate, also among many") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(1, 2);
  for (const double gap : {0.0, 0.1}) {
    for (const std::size_t k : {1u, 3u}) {
      Skyband skyband(k, gap);
      struct Point {
        double bound;
        TwoValues values;
      };
      std::vector<Point> all;
      for (int i = 0; i < 200; ++i) {
        const double bound = uniform(random);
        all.push_back({bound, {bound * uniform(random), uniform(random)}});
        skyband.add(bound, all.back().values);
        const TwoValues asked{uniform(random) * 1.2, uniform(random)};
        const auto dominating = std::count_if(all.begin(), all.end(), [&](const Point& one) {
          return one.bound < asked.objective && one.values.objective * (1 - gap) < asked.objective &&
                 one.values.other <= asked.other;
        });
        CHECK(skyband.may_have(asked) == (static_cast<std::size_t>(dominating) < k));
      }
      std::size_t left = 0;
      for (int i = 0; i < 100'000; ++i) left += skyband.may_have({uniform(random) * 2, uniform(random)}) ? 0 : 1;
      CHECK(left > 1'000);
    }
  }
}

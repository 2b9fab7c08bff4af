// A user's own measurements: Student's t, the random-effects interval in its limits, and the table that holds them.
#include "experiments/analysis/own_interval.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/base/error.hpp"
#include "experiments/measured/residuals.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/sweep/experiment.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

Interval published(double low, double high) {
  Interval interval;
  interval.low = low;
  interval.high = high;
  interval.chip = "h100_sxm";
  interval.kind = "dense";
  return interval;
}

const char* const kSpec = R"(
name: own
base:
  model: llama3-8b
  cluster: {like: dgx_h100_superpod, nodes: 2}
  strategy: {tp: 4, pp: 2, micro_batch: 2, global_batch: 64, zero: 1, recompute: selective, stack: megatron-bridge}
)";

Experiment experiment_of(const std::string& text) {
  return parse_sweep(text, "own.yaml", {}, Catalog()).experiments.at(0);
}

OwnStep step_of(const Experiment& experiment, const std::string& id, double measured_s, double predicted_s) {
  return {id,
          "train.log",
          experiment_digest(experiment.settings),
          "h100_sxm",
          "dense",
          experiment.settings.text("strategy.stack.name"),
          prediction_mark(),
          measured_s,
          predicted_s};
}

}  // namespace

TEST_CASE("Student's t meets its published quantiles") {
  // Abramowitz and Stegun 1964, table 26.10: one tail of a tenth.
  const std::pair<std::size_t, double> tenths[] = {{1, 3.078}, {2, 1.886},  {3, 1.638},  {4, 1.533},
                                                   {5, 1.476}, {10, 1.372}, {20, 1.325}, {120, 1.289}};
  for (const auto& [degrees, t] : tenths) {
    CHECK(student_t_quantile(0.9, degrees) == Approx(t).margin(6e-4));
    CHECK(student_t_share(t, degrees) == Approx(0.9).margin(1e-4));
    CHECK(student_t_share(-t, degrees) == Approx(0.1).margin(1e-4));
  }
  CHECK(student_t_share(0, 7) == 0.5);
}

TEST_CASE("own runs narrow the interval, the more of them the more, around what they measured") {
  const Interval wide = published(std::exp(-0.2), std::exp(0.4));
  const Uncertainty::Scatter scatter{0.05, 6};
  double width = 0.6;
  for (std::size_t count = 1; count <= 10; ++count) {
    const OwnInterval own = own_interval(wide, scatter, std::vector<double>(count, 0.3));
    CHECK(std::log(own.high / own.low) < width);
    width = std::log(own.high / own.low);
    CHECK((own.center > 0.25 && own.center < 0.3));  // drawn to the published middle, 0.1
    CHECK(own.share_below(std::exp(own.center)) == Approx(0.5));
    CHECK(own.share_below(own.low) == Approx(0.1).margin(1e-9));
    CHECK(own.share_below(own.high) == Approx(0.9).margin(1e-9));
  }
  CHECK(width < 0.2);
  // Many that scatter as they do: Student's t of their own mean and deviation, as if nothing were published.
  std::vector<double> logs;
  for (int i = 0; i < 2'000; ++i) logs.push_back(i % 2 == 0 ? 0.2 : 0.3);
  const OwnInterval many = own_interval(wide, scatter, logs);
  CHECK(many.center == Approx(0.25).margin(1e-3));
  CHECK(many.scale == Approx(0.05).epsilon(0.01));
}

TEST_CASE("the interval of one own run has its closed form") {
  const double z = 1.2815515655446004, prior = 0.3 / z, within = 0.1;
  const OwnInterval own = own_interval(published(std::exp(-0.3), std::exp(0.3)), {within, 4}, {0.2});
  const double between = prior * prior - within * within;
  const double precision = 1 / between + 1 / (within * within);
  CHECK(own.degrees == 2);
  CHECK(own.center == Approx(0.2 / (within * within) / precision));
  CHECK(own.scale == Approx(std::sqrt(within * within + 1 / precision)));
  CHECK(own.high == Approx(std::exp(own.center + student_t_quantile(0.9, 2) * own.scale)));
}

TEST_CASE("four of five further runs lie in the interval of a user whose runs are like those of families") {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  const double between = 0.15, within = 0.06, z = 1.2815515655446004;
  const double reach = z * std::sqrt(between * between + within * within);
  const Interval prior = published(std::exp(-reach), std::exp(reach));
  for (const int own_runs : {1, 3, 8}) {
    int inside = 0;
    for (int user = 0; user < 4'000; ++user) {
      const double offset = between * normal(random);
      std::vector<double> logs;
      for (int i = 0; i < own_runs; ++i) logs.push_back(offset + within * normal(random));
      const OwnInterval own = own_interval(prior, {within, 6}, logs);
      const double next = std::exp(offset + within * normal(random));
      inside += next >= own.low && next <= own.high ? 1 : 0;
    }
    // Of two degrees and more t is wider than the normal distribution that is drawn here.
    CHECK(inside >= 0.785 * 4'000);
    CHECK(inside <= 0.96 * 4'000);
  }
}

TEST_CASE("of published families whose own runs are known, four of five further runs lie in the interval") {
  const auto all = measured::read_residuals(import::parse_csv(measured::compiled_table("residuals"), "residuals.csv"));
  std::mt19937_64 random(5);
  for (const std::size_t own_runs : {1u, 2u, 3u, 5u}) {
    double shares = 0, narrower = 0;
    int families = 0;
    for (const measured::Residuals& user : all) {
      if (user.kind == measured::kNetworkKind || user.steps.size() <= own_runs) continue;
      std::vector<measured::Residuals> others;
      for (const measured::Residuals& one : all)
        if (one.family != user.family) others.push_back(one);
      const auto same = [&](const auto& one) { return one.gpu == user.gpu && one.kind == user.kind; };
      if (std::none_of(others.begin(), others.end(), same)) continue;
      const std::string model = user.kind == "experts" ? "mixtral-8x7b" : "llama3-8b";
      const Experiment experiment =
          experiment_of(fmt::format("{{name: x, base: {{model: {}, cluster: {{gpu: {}, nodes: 1, gpus_per_node: 4, "
                                    "nic_gbps: 400}}, strategy: {{tp: "
                                    "{}, zero: {}, micro_batch: 1, global_batch: 8}}}}}}",
                                    model, user.gpu, user.kind == "sharded" ? 1 : 4, user.kind == "sharded" ? 3 : 0));
      const Uncertainty uncertainty(others, Catalog());
      const Interval prior = uncertainty.of(experiment.settings, experiment.config());
      REQUIRE((prior.kind == user.kind && prior.measured));
      const auto scatter = uncertainty.scatter_within_families(experiment.settings, experiment.config());
      std::vector<double> runs = user.steps;
      int inside = 0;
      constexpr int kDraws = 40;
      for (int draw = 0; draw < kDraws; ++draw) {
        for (std::size_t i = 0; i <= own_runs; ++i)
          std::swap(runs[i], runs[i + testing::below(random, runs.size() - i)]);
        std::vector<double> logs;
        for (std::size_t i = 0; i < own_runs; ++i) logs.push_back(std::log1p(runs[i]));
        const OwnInterval own = own_interval(prior, scatter, logs);
        inside += 1 + runs[own_runs] >= own.low && 1 + runs[own_runs] <= own.high ? 1 : 0;
        narrower += std::log(own.high / own.low) < std::log(prior.high / prior.low) ? 1.0 / kDraws : 0;
      }
      shares += static_cast<double>(inside) / kDraws;
      ++families;
    }
    INFO(own_runs << " own runs, " << families << " families: " << shares / families << " inside, narrower in "
                  << narrower / families);
    CHECK(families >= 20);
    CHECK(shares / families >= 0.77);
    CHECK(narrower / families >= 0.6);
  }
}

TEST_CASE("rows count by experiment, of the same chip, kind, software and program") {
  const Experiment experiment = experiment_of(kSpec);
  std::vector<OwnStep> steps{step_of(experiment, "a", 1.1, 1), step_of(experiment, "b", 1.3, 1)};
  const std::string stack = experiment.settings.text("strategy.stack.name");
  auto evidence = own_evidence(steps, published(0.9, 1.2), stack);
  REQUIRE(evidence.logs.size() == 1);
  CHECK(evidence.logs[0] == Approx((std::log(1.1) + std::log(1.3)) / 2));
  CHECK(evidence.rows == 2);
  CHECK(own_evidence(steps, published(0.9, 1.2), stack, "b").rows == 1);
  CHECK(own_evidence(steps, published(0.9, 1.2), "nemo").logs.empty());
  steps[0].predicted_by = "another build";
  evidence = own_evidence(steps, published(0.9, 1.2), stack);
  CHECK((evidence.rows == 1 && evidence.outdated == 1));
}

TEST_CASE("a row is added once and is the experiment that validate reads") {
  const Experiment experiment = experiment_of(kSpec);
  const ExperimentConfig config = experiment.config();
  std::string table = with_own_step("", "own.csv", step_of(experiment, "first", 2.5, 2), experiment.settings, config);
  table = with_own_step(table, "own.csv", step_of(experiment, "second", 2.6, 2), experiment.settings, config);
  const std::string twice =
      with_own_step(table, "own.csv", step_of(experiment, "second", 2.7, 2), experiment.settings, config);
  const auto rows = read_own_steps(import::parse_csv(twice, "own.csv"));
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].id == "first" && rows[1].measured_s == 2.7 && rows[1].predicted_s == 2));
  CHECK(rows[1].experiment == experiment_digest(experiment.settings));

  const import::CsvTable parsed = import::parse_csv(twice, "own.csv");
  REQUIRE(measured::is_training_steps_table(*parsed.header));
  const auto steps = measured::read_training_steps(parsed, Catalog());
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].unsupported == "");
  CHECK(steps[0].detail == "");
  REQUIRE(steps[0].experiments.size() == 1);
  const Settings& read = steps[0].experiments[0];
  for (const auto& [key, value] : experiment.settings)
    if (key.starts_with("model.") || (key.starts_with("strategy.") && !key.starts_with("strategy.bucket"))) {
      INFO(key);
      CHECK(read.at(key) == value);
    }
  CHECK(read.at("cluster.gpu.name") == experiment.settings.at("cluster.gpu.name"));
  CHECK(steps[0].measured_s == 2.5);
}

TEST_CASE("a table that is none is refused by name, and damage never ends otherwise") {
  CHECK_THROWS_WITH(read_own_steps(import::parse_csv("id,source\na,b\n", "mine.csv")),
                    Catch::Contains("mine.csv:1: has no column 'predicted_step_s'"));
  const Experiment experiment = experiment_of(kSpec);
  const std::string table =
      with_own_step("", "own.csv", step_of(experiment, "first", 2.5, 2), experiment.settings, experiment.config());
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    try {
      for (const OwnStep& one : read_own_steps(import::parse_csv(testing::mutated(table, random), "own.csv")))
        REQUIRE((one.measured_s > 0 && one.predicted_s > 0));
    } catch (const core::InputError&) {
    }
  }
}

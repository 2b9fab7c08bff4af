// Tokens and loss that a budget of a training run leads to, against closed forms and Hoffmann's analytic optimum.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/analysis/costs.hpp"
#include "experiments/costs/budget.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

/// kSingle has 8 A100 in two nodes, and 8 sequences of 32 tokens a step.
constexpr double kGpus = 8, kTokens = 8 * 32, kDay = 86'400;

ExperimentConfig config_with(const std::vector<std::string>& sets, const std::string& spec = kSingle) {
  return read(spec, sets).experiments.at(0).config();
}

/// The costs of a step that takes so long.
Costs costs(const ExperimentConfig& config, double step_s = 2) {
  core::step::StepResult step;
  step.step_ps = static_cast<core::Time>(std::llround(step_s * 1e12));
  step.breakdown[core::workload::StepPart::forward] = step_s;
  GraphCache graphs;
  return costs_of(config, step, graphs.get(config).get());
}
Costs costs(const std::vector<std::string>& sets) {
  return costs(config_with(sets));
}

std::vector<std::string> both(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double parameters_of(const ExperimentConfig& config) {
  return static_cast<double>(core::workload::model_parameters(config.configuration.model));
}

/// Hoffmann et al. 2022, equation 4: the size of least loss for `flops` floating-point operations, 6 N D.
double optimal_parameters(const ScalingLaw& law, double flops) {
  const double g = std::pow(law.alpha * law.a / (law.beta * law.b), 1 / (law.alpha + law.beta));
  return g * std::pow(flops / 6, law.beta / (law.alpha + law.beta));
}

constexpr ScalingLaw kRefitted{1.8172, 482.01, 2085.43, 0.3478, 0.3658};  // Besiroglu et al. 2024

}  // namespace

TEST_CASE("powers are those of libm, on every machine") {
  for (double base = 1e-9; base < 1e16; base *= 1.37)
    for (const double exponent : {-0.5, -0.34, -0.28, 0.1, 0.4516, 0.75}) {
      const double expected = std::pow(base, exponent);
      CHECK(std::abs(power(base, exponent) / expected - 1) < 1e-14);
    }
  CHECK(power(1, -0.34) == 1);
  CHECK(power(std::numeric_limits<double>::infinity(), -0.3) == 0);
}

TEST_CASE("the law gives the losses that its constants do for Chinchilla and Gopher") {
  // 70 G parameters on 1.4 T tokens, and 280 G on 300 G, term by term to three decimals.
  CHECK(predicted_loss({}, 70e9, 1.4e12) == Approx(1.69 + 0.083 + 0.163).margin(1e-3));
  CHECK(predicted_loss({}, 280e9, 300e9) == Approx(1.69 + 0.052 + 0.251).margin(1e-3));
}

TEST_CASE("a budget trains what it pays for of steps, and the tightest of several binds") {
  const double per_day = kDay / 2 * kTokens;
  const Costs days = costs({"training.budget_days=10"});
  CHECK(days.budget_tokens == Approx(10 * per_day).epsilon(1e-12));
  CHECK(days.train_time_s == Approx(10 * kDay).epsilon(1e-12));
  CHECK(costs({"training.budget_gpu_days=10"}).budget_tokens == Approx(10 / kGpus * per_day).epsilon(1e-12));
  const std::vector<std::string> rent{"cluster.usd_per_gpu_hour=3"};
  const Costs money = costs(both(rent, {"training.budget_usd=7200"}));
  CHECK(money.budget_tokens == Approx(7200 / (3 * 24 * kGpus) * per_day).epsilon(1e-12));
  CHECK(money.train_usd == Approx(7200).epsilon(1e-12));
  const std::vector<std::string> all{"training.budget_days=10", "training.budget_gpu_days=100",
                                     "training.budget_usd=7200"};  // 10, 12.5 and 12.5 days
  CHECK(costs(both(rent, all)).budget_tokens == Approx(10 * per_day).epsilon(1e-12));
  CHECK(costs(both(rent, {all[1]})).budget_tokens == Approx(12.5 * per_day).epsilon(1e-12));
  CHECK(std::isnan(costs(rent).budget_tokens));
  CHECK(std::isnan(costs({"training.tokens=1e9"}).budget_loss));
}

TEST_CASE("a budget of money pays for capital and for energy at the building's meter") {
  const std::vector<std::string> bought{"cluster.usd_per_gpu=30000", "cluster.lifetime_years=4",
                                        "cluster.utilisation=0.8",   "cluster.usd_per_kwh=0.1",
                                        "cluster.host_power_w=1000", "cluster.switch_port_power_w=0.001",
                                        "cluster.pue=1.5",           "training.budget_usd=10000"};
  const ExperimentConfig config = config_with(bought);
  const Costs run = costs(config);
  GraphCache graphs;
  const double ports = static_cast<double>(switch_ports(*graphs.get(config)));
  const double capital_a_s = kGpus * 30000 / (4 * 365.25 * 24 * 0.8) / 3600;
  const double energy_a_s = 0.1 * 1.5 * (kGpus * 400 + 2 * 1000 + ports * 0.001) / 3.6e6;
  CHECK(run.budget_tokens == Approx(10000 / (capital_a_s + energy_a_s) / 2 * kTokens).epsilon(1e-12));
  CHECK(run.train_usd == Approx(10000).epsilon(1e-12));
}

TEST_CASE("failures leave a budget its goodput, and without checkpoints what a run can be that is begun again") {
  const std::vector<std::string> fails{"training.node_mtbf_hours=10", "training.restart_s=300",
                                       "training.budget_days=3"};
  const Costs kept = costs(both(fails, {"training.checkpoint=sync", "training.block_s=60"}));
  REQUIRE((kept.goodput > 0.5 && kept.goodput < 1));
  CHECK(kept.budget_tokens == Approx(kept.goodput * 3 * kDay / 2 * kTokens).epsilon(1e-12));
  CHECK(kept.train_time_s == Approx(3 * kDay).epsilon(1e-12));
  // A run of W seconds that fails every M and restarts in R takes M e^(R/M) (e^(W/M) - 1).
  const double m = 10 * 3600 / 2.0;
  const double work = m * std::log1p(3 * kDay / (m * std::exp(300 / m)));
  const Costs begun_again = costs(fails);
  CHECK(begun_again.budget_tokens == Approx(work / 2 * kTokens).epsilon(1e-11));
  CHECK(begun_again.train_time_s == Approx(3 * kDay).epsilon(1e-11));
  // A restart that takes a thousand times as long as the time between failures never ends.
  CHECK(costs({"training.node_mtbf_hours=1", "training.restart_s=1.8e6", "training.budget_days=3"}).budget_tokens == 0);
}

TEST_CASE("of many models at one utilisation the one with the least loss is Hoffmann's analytic optimum") {
  constexpr double kRate = kGpus * 312e12 * 0.5;
  for (const ScalingLaw& law : {ScalingLaw{}, kRefitted})
    for (const double days : {0.01, 0.1, 1.0}) {
      const double flops = kRate * days * kDay, expected = optimal_parameters(law, flops);
      double least = 1e9, best = 0, before = 0, widest = 0;
      for (std::int64_t hidden = 512; hidden <= 8192; hidden += 64) {
        const ExperimentConfig config = config_with(
            {fmt::format("model.hidden={}", hidden), "model.layers=16", "model.vocabulary=50304",
             fmt::format("training.budget_days={}", days), fmt::format("training.loss_e={}", law.e),
             fmt::format("training.loss_a={}", law.a), fmt::format("training.loss_b={}", law.b),
             fmt::format("training.loss_alpha={}", law.alpha), fmt::format("training.loss_beta={}", law.beta)});
        const double parameters = parameters_of(config);
        const Costs run = costs(config, 6 * parameters * kTokens / kRate);
        CHECK(6 * parameters * run.budget_tokens == Approx(flops).epsilon(1e-6));  // a step is whole picoseconds
        if (before > 0) widest = std::max(widest, parameters / before);
        before = parameters;
        if (run.budget_loss < least) least = run.budget_loss, best = parameters;
      }
      CAPTURE(days, law.e, expected);
      CHECK((best > expected / widest && best < expected * widest));
      CHECK(least >= predicted_loss(law, expected, flops / 6 / expected) * (1 - 1e-12));
      CHECK(least == Approx(predicted_loss(law, expected, flops / 6 / expected)).epsilon(1e-3));
    }
  // The same without models: a fine grid of sizes.
  for (const double flops : {1e18, 1e21, 5.88e23}) {
    double least = 1e9, best = 0;
    for (double n = 1e7; n < 1e12; n *= 1.001)
      if (const double loss = predicted_loss({}, n, flops / 6 / n); loss < least) least = loss, best = n;
    CHECK(best == Approx(optimal_parameters({}, flops)).epsilon(0.002));
  }
}

TEST_CASE("a model with experts has a loss only where the user says what the law counts of it") {
  const std::string spec = with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}",
                                "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32, experts: 4, "
                                "experts_per_token: 2}");
  const std::string refused = error_of(spec, {"training.budget_days=1", "strategy.sequence_parallel=true"});
  CHECK(refused.find("violates rule loss_of_dense_models") != std::string::npos);
  CHECK(refused.find("loss_experts all or active") != std::string::npos);
  for (const bool active : {false, true}) {
    const ExperimentConfig config = config_with({"training.budget_days=1", "strategy.sequence_parallel=true",
                                                 std::string("training.loss_experts=") + (active ? "active" : "all")},
                                                spec);
    const core::workload::Model& model = config.configuration.model;
    const double counted = static_cast<double>(active ? core::workload::active_parameters(model)
                                                      : core::workload::model_parameters(model));
    const Costs run = costs(config);
    CHECK(run.budget_loss == predicted_loss({}, counted, run.budget_tokens));
  }
}

TEST_CASE("a sweep by loss needs a budget, and says which") {
  const std::string message = error_of(kSingle + "axes: {strategy.tp: [1, 2]}\nobjective: budget_loss\n");
  CHECK(message.find("needs training.budget_gpu_days, or training.budget_usd, or training.budget_days") !=
        std::string::npos);
}

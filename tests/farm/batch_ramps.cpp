// Batches over a training: critical batches and schedules beside closed forms, published figures and a plain oracle.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.hpp"
#include "farm/ramp/batch_schedule.hpp"
#include "farm/ramp/critical_law.hpp"
#include "farm/ramp/envelope.hpp"
#include "farm/ramp/measured_batches.hpp"

using namespace manyworlds::farm::ramp;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Approx near(double value, double error = 1e-11) {
  return Approx(value).epsilon(error).margin(0);
}

/// A law whose loss falls to nothing: r = B* (S/S_c)^p, E = r S / (p + 1), p = alpha_S / alpha_B.
CriticalLaw power_law(double alpha_s) {
  LawConstants constants;
  constants.alpha_n = 2, constants.n_c = 1, constants.alpha_s = alpha_s;
  return CriticalLaw(constants, 1e200, 1e9);
}

/// Simpson's rule with so many pairs of intervals.
template <class Function>
double integral(double low, double high, int pairs, Function&& function) {
  const double width = (high - low) / (2 * pairs);
  double sum = function(low) + function(high);
  for (int i = 1; i < 2 * pairs; ++i) sum += (i % 2 == 1 ? 4 : 2) * function(low + i * width);
  return sum * width / 3;
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  double from(double low, double high) { return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 random_;
};

/// Batches of 1, 2, 4, … thousand tokens in layouts with steps of a + b B seconds, of equal a b.
std::vector<Candidate> drawn_candidates(Draws& draws, std::uint32_t layouts, int batches) {
  std::vector<Candidate> all;
  for (std::uint32_t layout = 0; layout < layouts; ++layout) {
    const double fixed_s = draws.from(0.2, 3), per_token_s = 3e-5 / fixed_s;
    for (int i = 0; i < batches; ++i) {
      const auto batch = std::int64_t{1} << i;
      const double tokens = 1e3 * static_cast<double>(batch);
      all.push_back({static_cast<std::int64_t>(all.size()), batch, tokens,
                     (fixed_s + per_token_s * tokens) * draws.from(0.95, 1.05), layout});
    }
  }
  return all;
}

MeasuredBatches growing() {
  return MeasuredBatches({{1e6, 500}, {2e7, 2e4}, {3e7, 2e4}, {9e7, 2e5}});
}

/// The least time on a grid of moments: at each of them any experiment may follow any other.
double oracle_s(const CriticalBatch& critical, const std::vector<Candidate>& candidates, double end, double restart_s,
                int moments) {
  std::vector<double> time_s(candidates.size(), 0);
  for (int moment = 0; moment < moments; ++moment) {
    const double from = end * moment / moments, to = end * (moment + 1) / moments;
    const double tokens = critical.tokens(to) - critical.tokens(from);
    std::vector<double> next(candidates.size(), kInfinity);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      for (std::size_t before = 0; before < candidates.size(); ++before) {
        const bool changes = moment > 0 && candidates[before].layout != candidates[i].layout;
        next[i] = std::min(next[i], time_s[before] + (changes ? restart_s : 0));
      }
      next[i] += candidates[i].step_s * (to - from + tokens / candidates[i].tokens);
    }
    time_s = next;
  }
  return *std::min_element(time_s.begin(), time_s.end());
}

}  // namespace

TEST_CASE("critical batches by a law without a least loss meet their closed forms") {
  for (const double alpha_s : {0.02, 0.21, 0.76, 4.2}) {
    const CriticalLaw law = power_law(alpha_s);
    const double power = alpha_s / 0.21;
    for (const double steps : {1e-3, 1.0, 777.0, 2.1e3, 5e6, 1e9}) {
      const double critical = 2.1e8 * std::pow(steps / 2.1e3, power);
      CAPTURE(alpha_s, steps);
      CHECK(law.at(steps) == near(critical));
      CHECK(law.tokens(steps) == near(critical * steps / (power + 1)));
      CHECK(law.steps_at(critical) == near(steps));
    }
    CHECK((law.at(0) == 0 && law.tokens(0) == 0 && law.steps_at(0) == 0));
  }
}

TEST_CASE("Kaplan's law of critical batches has the constants and the growth that the paper tells") {
  const CriticalLaw law({}, 1.5e9, 1e6);
  // Figure 10: the critical batch doubles for every 13 % by which the loss falls.
  const double twice = law.steps_at(2 * law.at(1e3));
  CHECK(1 - law.loss(twice) / law.loss(1e3) == Approx(0.13).margin(0.01));
  // Table 3 and equation 5.6, by hand: (6.5e13/1.5e9)^0.077 + (2.1e3/1e4)^0.76 nats.
  CHECK(law.loss(1e4) == near(std::exp(0.077 * std::log(6.5e13 / 1.5e9)) + std::exp(0.76 * std::log(0.21))));
  CHECK(law.at(1e4) == near(2.1e8 / std::pow(law.loss(1e4), 1 / 0.21)));
  for (const double steps : {30.0, 1e3, 2e4, 1e6}) {
    CHECK(law.steps_at(law.at(steps)) == near(steps, 1e-9));
    // Plainly, in the cube of the fraction, where the integrand is smooth.
    const double plain = integral(
        0, 1, 200'000, [&](double part) { return law.at(steps * part * part * part) * steps * 3 * part * part; });
    CHECK(law.tokens(steps) == near(plain));
  }
  CHECK(law.steps_at(1e12) == kInfinity);
}

TEST_CASE(
    "measured critical batches meet their closed forms: logarithms where they grow, proportions where they do not") {
  const MeasuredBatches constant({{5e6, 4e3}});
  CHECK(constant.tokens(10) == near(4e4));
  CHECK((constant.at(1e9) == 4e3 && constant.steps_at(4e3) == 0 && constant.steps_at(4'001) == kInfinity));
  const MeasuredBatches linear({{0, 1e3}, {1e6, 3e3}});  // r = 1e3 + E / 500
  const double steps = 500 * std::log(3.0);              // at r = 3e3, E = 1e6
  CHECK(linear.tokens(steps) == near(1e6));
  CHECK(linear.at(steps) == near(3e3));
  CHECK(linear.steps_at(2e3) == near(500 * std::log(2.0)));
  CHECK(linear.tokens(steps + 100) == near(1e6 + 3e5));
  // The same numbers from a training with batches of 7e3 tokens: t = E + 7e3 S, dS = dt / (r + 7e3).
  const MeasuredBatches trained({{0, 1e3}, {1e6, 3e3}}, 7e3);
  const double trained_steps = 500 * std::log(10.0 / 8.0);
  CHECK(trained.at(trained_steps) == near(3e3));
  CHECK(trained.tokens(trained_steps) == near(1e6 - 7e3 * trained_steps));
  CHECK(trained.steps_at(2e3) == near(500 * std::log(9.0 / 8.0)));
  for (const double at : {1.0, 50.0, 100.0, 300.0})
    CHECK(trained.tokens(at) == near(integral(0, at, 100'000, [&](double step) { return trained.at(step); }), 1e-8));
}

TEST_CASE("so many tokens bring a training as far as steps and tokens say") {
  const CriticalLaw law({}, 1e8, 1e7);
  const MeasuredBatches measured = growing();
  for (const CriticalBatch* critical :
       {static_cast<const CriticalBatch*>(&law), static_cast<const CriticalBatch*>(&measured)})
    for (const double from : {0.0, 10.0, 4e3})
      for (const double batch : {1.0, 1e4, 1e9})
        for (const double more : {1e5, 1e8, 1e12}) {
          const double to = critical->steps_after(from, batch, more);
          CAPTURE(from, batch, more);
          // What is near the beginning is lost in the rounding of where it begins.
          const double rounding = 1e-13 * (critical->tokens(from) + batch * from);
          CHECK(critical->tokens(to) - critical->tokens(from) + batch * (to - from) ==
                Approx(more).epsilon(1e-9).margin(rounding));
        }
}

TEST_CASE("with steps of a + b B seconds the best batch is sqrt(a r / b), and changes at the geometric means") {
  constexpr double kFixed_s = 0.5, kPerToken_s = 2e-5;
  std::vector<Candidate> candidates;
  for (int i = 0; i < 40; ++i) {
    const double tokens = 100 * std::pow(1.3, i);
    candidates.push_back({i, 100 + i, tokens, kFixed_s + kPerToken_s * tokens, 0});
  }
  const CriticalLaw law({}, 1e8, 1e5);
  const double end = 5e4;
  const BatchSchedule schedule = best_schedule(law, candidates, end, 0, "r.h5");
  REQUIRE(schedule.phases.size() > 10);
  for (std::size_t i = 1; i < schedule.phases.size(); ++i) {
    const double before = candidates[schedule.phases[i - 1].candidate].tokens;
    const double after = candidates[schedule.phases[i].candidate].tokens;
    CHECK(after == near(1.3 * before));
    // b B1 B2 / a: there the best of all batches is the geometric mean of the two.
    CHECK(schedule.phases[i].critical == near(kPerToken_s * before * after / kFixed_s, 1e-9));
    CHECK(std::sqrt(kFixed_s * schedule.phases[i].critical / kPerToken_s) == near(std::sqrt(before * after), 1e-9));
  }
  // All batches at once would take (sqrt(a) + sqrt(b r))^2 for each step of an infinite batch.
  const double least_s = integral(0, 1, 20'000, [&](double part) {
    const double critical = law.at(end * part * part * part);
    return std::pow(std::sqrt(kFixed_s) + std::sqrt(kPerToken_s * critical), 2) * end * 3 * part * part;
  });
  CHECK((schedule.time_s > least_s && schedule.time_s < 1.01 * least_s));
}

TEST_CASE("two batches change where their lines cross, and the time is the sum of both parts") {
  // Critical batches of 1,000 + E/500 tokens; T1/B1 = 1e-3, T2/B2 = 5e-4: they cross at r = 1 s / 5e-4 s.
  const MeasuredBatches critical({{0, 1e3}, {1e7, 1e3 + 2e4}});
  const std::vector<Candidate> candidates{{0, 1, 1e3, 1, 0}, {1, 4, 4e3, 2, 1}};
  CHECK(crossing(candidates[0], candidates[1]) == near(2e3));
  const double change = 500 * std::log(2.0), end = 500 * std::log(8.0);
  const BatchSchedule schedule = best_schedule(critical, candidates, end, 0, "r.h5");
  REQUIRE(schedule.phases.size() == 2);
  // E = 500 (r - 1,000): 5e5 at the change, 3.5e6 at the end.
  CHECK(schedule.phases[0].steps == near(change + 5e5 / 1e3));
  CHECK(schedule.phases[1].steps == near(end - change + 3e6 / 4e3));
  CHECK(schedule.phases[1].from_tokens == near(5e5 + 1e3 * change));
  CHECK(schedule.tokens() == near(5e5 + 1e3 * change + 3e6 + 4e3 * (end - change)));
  CHECK(schedule.time_s == near(schedule.phases[0].steps + 2 * schedule.phases[1].steps));
  CHECK(schedule.restarts == 1);
  // A restart is worth it up to what the second batch alone, or the first, would lose.
  const Leg fixed = best_fixed(critical, candidates, end);
  const double alone_s = follow(critical, candidates, std::span(&fixed, 1), 0).time_s;
  const double worth_s = alone_s - schedule.time_s;
  CHECK(worth_s > 0);
  CHECK(best_schedule(critical, candidates, end, 0.999 * worth_s, "r.h5").restarts == 1);
  CHECK(best_schedule(critical, candidates, end, 1.001 * worth_s, "r.h5").restarts == 0);
  CHECK(best_schedule(critical, candidates, end, 1e9, "r.h5").time_s == near(alone_s));
}

TEST_CASE("no schedule on a fine grid of moments is faster, whatever a change of the layout loses") {
  const MeasuredBatches measured = growing();
  const CriticalLaw law({}, 1e5, 1e7);
  int with_restarts = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Draws draws(seed);
    const std::vector<Candidate> candidates = drawn_candidates(draws, 4, 7);
    const CriticalBatch& critical = seed % 2 == 0 ? static_cast<const CriticalBatch&>(measured) : law;
    const double end = seed % 2 == 0 ? 4e3 : critical.steps_at(3e4);
    const double most_s =
        follow(critical, candidates, std::vector<Leg>{best_fixed(critical, candidates, end)}, 0).time_s;
    for (const double restart_s : {0.0, 1e-6 * most_s, 1e-5 * most_s, 1e-4 * most_s, 1e-3 * most_s, most_s}) {
      const BatchSchedule best = best_schedule(critical, candidates, end, restart_s, "r.h5");
      const double plain_s = oracle_s(critical, candidates, end, restart_s, 4'000);
      CAPTURE(seed, restart_s, best.phases.size(), best.restarts);
      CHECK(best.time_s <= plain_s * (1 + 1e-9));
      CHECK(best.time_s >= plain_s * (1 - 1e-5));
      double time_s = best.restarts * restart_s;
      for (std::size_t i = 0; i < best.phases.size(); ++i) {
        const Phase& phase = best.phases[i];
        time_s += phase.time_s;
        if (i > 0) CHECK(candidates[phase.candidate].batch >= candidates[best.phases[i - 1].candidate].batch);
      }
      CHECK(best.time_s == near(time_s));
      if (restart_s > 0 && best.restarts > 0) ++with_restarts;
    }
  }
  CHECK(with_restarts > 20);
}

TEST_CASE("where a restart costs more than it gains, a layout is kept that is not the fastest with the larger batch") {
  const MeasuredBatches critical({{0, 1e3}, {1e7, 2.1e4}});
  const std::vector<Candidate> candidates{{0, 1, 1e3, 1, 0}, {1, 4, 4e3, 2.02, 0}, {2, 4, 4e3, 2, 1}};
  const double end = critical.steps_at(8e3);
  const auto layouts = [&](double restart_s) {
    std::vector<std::size_t> all;
    for (const Phase& phase : best_schedule(critical, candidates, end, restart_s, "r.h5").phases)
      all.push_back(phase.candidate);
    return all;
  };
  CHECK(layouts(0) == std::vector<std::size_t>{0, 2});
  CHECK(layouts(1e3) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("hundreds of layouts that are all fastest somewhere are weighed, and more than can be are refused") {
  // Lines that touch the parabola of sqrt(r): each two of them cross.
  const MeasuredBatches critical({{0, 1e3}, {1e9, 1e6}});
  const auto tangents = [](int count) {
    std::vector<Candidate> all;
    for (int i = 0; i < count; ++i) {
      const double at = 1e3 + 1e6 * i / count;  // T + (T/B) r = (sqrt(at) + r / sqrt(at)) / 2
      all.push_back({i, i + 1, at, std::sqrt(at) / 2, static_cast<std::uint32_t>(i)});
    }
    return all;
  };
  const double end = critical.steps_at(9e5);
  const std::vector<Candidate> many = tangents(300);
  const double free_s = best_schedule(critical, many, end, 0, "r.h5").time_s;
  const BatchSchedule cheap = best_schedule(critical, many, end, 1e-9 * free_s, "r.h5");
  CHECK((cheap.restarts > 50 && cheap.time_s > free_s && cheap.time_s < free_s * (1 + 301e-9)));
  const BatchSchedule dear = best_schedule(critical, many, end, 0.01 * free_s, "r.h5");
  CHECK((dear.restarts > 0 && dear.restarts < 10 && dear.time_s > cheap.time_s));
  CHECK_THROWS_WITH(
      best_schedule(critical, tangents(500), end, 1, "r.h5"),
      Catch::StartsWith("r.h5: ") && Catch::Contains(" layouts may be changed at ") && Catch::Contains("--where"));
}

TEST_CASE("a batch that is behind another one in both tokens/s and size is in no best schedule") {
  const CriticalLaw law({}, 1e7, 1e6);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Draws draws(seed);
    std::vector<Candidate> candidates = drawn_candidates(draws, 3, 6);
    const BatchSchedule best = best_schedule(law, candidates, 1e5, 0, "r.h5");
    for (const Phase& phase : best.phases) {
      const Candidate& one = candidates[phase.candidate];
      for (const Candidate& by : candidates)
        CHECK_FALSE((by.tokens <= one.tokens && by.tokens / by.step_s > one.tokens / one.step_s));
    }
  }
}

TEST_CASE("the steps that OLMo 1B's batch warmup saved are those of its published schedule") {
  // Merrill et al. 2025, section 4.2 and table 1: 1,024 sequences of 4,096 tokens, 2,048 from 168 G tokens on, 4,096
  // from 503 G on, 608 G tokens and 50 G of annealing: 43 % fewer steps; batches of 4,096 throughout, 75 % fewer.
  const MeasuredBatches hardly_any_loss({{0, 1e18}});
  std::vector<Candidate> candidates;
  for (const std::int64_t batch : {1'024, 2'048, 4'096})
    candidates.push_back({batch, batch, 4'096.0 * static_cast<double>(batch), 1, 0});
  const auto steps = [&](const std::vector<std::pair<std::size_t, double>>& parts) {
    std::vector<Leg> legs;
    double from = 0;
    for (const auto& [candidate, tokens] : parts) {
      from = hardly_any_loss.steps_after(from, candidates[candidate].tokens, tokens);
      legs.push_back({candidate, from});
    }
    return follow(hardly_any_loss, candidates, legs, 0).steps();
  };
  const double fixed = steps({{0, 658e9}});
  CHECK(fixed == near(658e9 / (1'024 * 4'096), 1e-9));
  CHECK(std::round(100 * (1 - steps({{0, 168e9}, {1, 335e9}, {2, 155e9}}) / fixed)) == 43);
  CHECK(std::round(100 * (1 - steps({{2, 658e9}}) / fixed)) == 75);
}

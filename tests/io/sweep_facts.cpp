// What a sweep tells of its axes and of what is best for what it takes, beside plain loops over all pairs of rows.
#include "io/ranking/sweep_analysis.hpp"

#include "tests/io/sample_results.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

/// Three axes, one of which has leaves; a figure with ties and holes.
Results drawn(unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<std::int64_t> ids, tp, memory;
  std::vector<double> leaf, objective;
  std::vector<std::string> fabric, mode, status;
  for (std::int64_t row = 0; row < 150; ++row) {
    ids.push_back(row);
    tp.push_back(std::int64_t{1} << (draw() % 5));
    leaf.push_back(draw() % 2 == 0 ? 1 : 4);
    fabric.push_back(leaf.back() == 1 ? "rail(1)" : "rail(4)");
    mode.push_back(std::string(1, static_cast<char>('a' + draw() % 3)));
    status.push_back(draw() % 4 == 0 ? "out_of_memory" : draw() % 10 == 0 ? "failed" : "ran");
    objective.push_back(status.back() == "ran" && draw() % 20 != 0 ? static_cast<double>(1 + draw() % 12) : kNone);
    memory.push_back(static_cast<std::int64_t>(1 + draw() % 30));
  }
  Results results;
  results.axis_names = {"strategy.tp", "topology", "topology.over", "mode"};
  results.experiments.columns = {{"id", "", "", ids},
                                 {"strategy.tp", "", "", tp},
                                 {"topology", "", "", fabric},
                                 {"topology.over", "", "", leaf},
                                 {"mode", "", "", mode},
                                 {"status", "", "", status},
                                 {"tokens_per_s_per_gpu", "tokens/s", "", objective},
                                 {"memory_peak_bytes", "bytes", "", memory},
                                 {"gpu_memory_bytes", "bytes", "", std::vector<std::int64_t>(150, 20)}};
  return results;
}

bool counts(const Results& results, const RankingObjective& objective, std::size_t row) {
  return results.experiments.text_at("status", row) == "ran" && !std::isnan(objective.column->number_at(row));
}

/// Rows that ran and differ from `row` in that axis alone, itself among them.
std::vector<std::size_t> likes(const Results& results, const RankingObjective& objective, const std::string& but,
                               std::size_t row) {
  std::vector<std::size_t> rows;
  for (std::size_t other = 0; other < results.experiments.rows(); ++other) {
    bool alike = counts(results, objective, other);
    for (const std::string axis : {"strategy.tp", "topology", "mode"})
      alike &= axis == but || results.experiments.text_at(axis, row) == results.experiments.text_at(axis, other);
    if (alike) rows.push_back(other);
  }
  return rows;
}

void check_value(const Results& results, const RankingObjective& objective, const std::string& axis,
                 const AxisValue& value) {
  std::size_t experiments = 0, out_of_memory = 0, sets = 0, wins = 0;
  std::vector<double> ran;
  double product = 1;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
    if (results.experiments.text_at(axis, row) != value.value) continue;
    ++experiments;
    out_of_memory += results.experiments.text_at("status", row) == "out_of_memory";
    if (!counts(results, objective, row)) continue;
    const double own = objective.column->number_at(row);
    ran.push_back(own);
    const auto others = likes(results, objective, axis, row);
    if (others.size() < 2) continue;
    ++sets;
    double best = own;
    for (const std::size_t other : others)
      best = objective.descending ? std::max(best, objective.column->number_at(other))
                                  : std::min(best, objective.column->number_at(other));
    wins += own == best;
    product *= objective.descending ? own / best : best / own;
  }
  CHECK(value.experiments == experiments);
  CHECK(value.out_of_memory == out_of_memory);
  CHECK(value.ran == ran.size());
  CHECK(value.sets == sets);
  CHECK(value.wins == wins);
  if (sets > 0) CHECK(value.relative_to_best == Approx(std::pow(product, 1.0 / static_cast<double>(sets))));
  if (ran.empty()) return;
  std::sort(ran.begin(), ran.end());
  CHECK(value.best == (objective.descending ? ran.back() : ran.front()));
  // A quartile has at least a quarter of them on each side of it.
  for (const auto& [quartile, share] : {std::pair(value.lower, 0.25), {value.median, 0.5}, {value.upper, 0.75}}) {
    const auto below = std::count_if(ran.begin(), ran.end(), [q = quartile](double one) { return one <= q; });
    const auto above = std::count_if(ran.begin(), ran.end(), [q = quartile](double one) { return one >= q; });
    CHECK(static_cast<double>(below) >= std::floor(share * static_cast<double>(ran.size() - 1)));
    CHECK(static_cast<double>(above) >= std::floor((1 - share) * static_cast<double>(ran.size() - 1)));
  }
}

}  // namespace

TEST_CASE("what an axis does is what counting by hand gives, whichever way is better") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Results results = drawn(seed);
    for (const bool descending : {true, false}) {
      const RankingObjective objective{results.experiments.find("tokens_per_s_per_gpu"), descending};
      const auto effects = axis_effects(results, objective);
      REQUIRE(effects.size() == 3);  // not the leaf of the topology
      for (const AxisEffect& effect : effects) {
        double best = kNone, worst = kNone;
        for (const AxisValue& value : effect.values) {
          check_value(results, objective, effect.axis, value);
          if (value.ran == 0) continue;
          if (std::isnan(best) || objective.better(value.best, best)) best = value.best;
          if (std::isnan(worst) || objective.better(worst, value.best)) worst = value.best;
        }
        CHECK(effect.worst_value_loss == Approx(1 - (descending ? worst / best : best / worst)));
      }
      CHECK(std::is_sorted(effects.begin(), effects.end(),
                           [](const auto& a, const auto& b) { return a.worst_value_loss > b.worst_value_loss; }));
    }
  }
}

TEST_CASE("values of an axis stand in order: numbers by size, text as the sweep has it") {
  const Results results = sample_results();
  const auto effects = axis_effects(results, {results.experiments.find("tokens_per_s_per_gpu"), true});
  for (const AxisEffect& effect : effects) {
    std::vector<std::string> values;
    for (const AxisValue& value : effect.values) values.push_back(value.value);
    if (effect.name == "tp")
      CHECK(values == std::vector<std::string>{"1", "2", "4", "8"});
    else
      CHECK(values == std::vector<std::string>{"rail_optimized", "fat_tree 1:4 – überbucht"});
  }
}

TEST_CASE("the front is what no other row beats") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Results results = drawn(seed);
    const Column &cost = *results.experiments.find("memory_peak_bytes"),
                 &gain = *results.experiments.find("tokens_per_s_per_gpu");
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
      if (!counts(results, {&gain, true}, row)) continue;
      bool beaten = false;
      for (std::size_t other = 0; other < results.experiments.rows(); ++other) {
        if (other == row || !counts(results, {&gain, true}, other)) continue;
        const double c = cost.number_at(other) - cost.number_at(row), g = gain.number_at(other) - gain.number_at(row);
        beaten |= (c <= 0 && g >= 0) && (c < 0 || g > 0 || other < row);
      }
      if (!beaten) expected.push_back(row);
    }
    std::sort(expected.begin(), expected.end(),
              [&](std::size_t a, std::size_t b) { return cost.number_at(a) < cost.number_at(b); });
    CHECK(pareto_front(results, cost, gain) == expected);
  }
}

TEST_CASE("of what does not fit, what lacks least comes first, and failures are gathered by their reasons") {
  Results results = drawn(1);
  const auto nearly = nearly_fitting(results, 1'000);
  CHECK(nearly.size() == results.experiments.counts_of("status").at("out_of_memory"));
  CHECK(std::is_sorted(nearly.begin(), nearly.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
  for (const auto& [row, need] : nearly)
    CHECK(need == results.experiments.find("memory_peak_bytes")->number_at(row) / 20);
  CHECK(nearly_fitting(results, 3).size() == 3);

  std::vector<std::string> reasons;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    reasons.push_back(row % 3 == 0 ? "crash" : "memory");
  results.experiments.columns.push_back({"reason", "", "", reasons});
  std::size_t all = 0;
  const auto failures = group_failures(results);
  for (const FailureGroup& one : failures) {
    all += one.count;
    CHECK(one.status == "failed");
    for (const std::size_t row : one.first) CHECK(results.experiments.text_at("reason", row) == one.reason);
  }
  CHECK(failures.size() == 2);
  CHECK(failures[0].count >= failures[1].count);
  CHECK(all == results.experiments.counts_of("status").at("failed"));
}

// The proof of a sweep's best from its results, against what is plain: numbers by hand, and one rank that simulates the
// best bound first.
#include "io/ranking/best_proof.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "io/report/report.hpp"
#include "tests/io/sample_results.hpp"

using namespace manyworlds::io;
using namespace manyworlds::io::testing;
using Catch::Contains;

namespace {

struct Row {
  std::int64_t tp = 1;
  std::string status;  // ran, bounded, out_of_memory
  double step = kNone, bound = kNone;
  std::string by;  // sums, analytic
};

/// Results of a sweep that ranks by step time, or by tokens of which every step has 1,000.
Results results_of(const std::vector<Row>& rows, std::int64_t best, bool by_tokens) {
  std::vector<std::int64_t> ids, tp;
  std::vector<std::string> status, by;
  std::vector<double> step, bound, tokens, tokens_bound;
  for (const Row& row : rows) {
    ids.push_back(static_cast<std::int64_t>(ids.size()));
    tp.push_back(row.tp);
    status.push_back(row.status);
    by.push_back(row.by);
    step.push_back(row.status == "ran" ? row.step : kNone);
    tokens.push_back(1000 / step.back());
    bound.push_back(row.bound);
    tokens_bound.push_back(1000 / row.bound);
  }
  Results results;
  results.spec = "name: proven\n";
  results.axis_names = {"strategy.tp"};
  results.experiments.columns = {{"id", "", "", ids},
                                 {"strategy.tp", "", "", tp},
                                 {"status", "", "", status},
                                 {"step_time_s", "s", "", step},
                                 {"tokens_per_s_per_gpu", "tokens/s", "", tokens},
                                 {"step_time_bound_s", "s", "", bound}};
  if (by_tokens) results.experiments.columns.push_back({"tokens_per_s_per_gpu_bound", "tokens/s", "", tokens_bound});
  results.experiments.columns.push_back({"bounded_by", "", "", by});
  results.provenance = {{"best", best}, {"best_analytic", std::int64_t{1}}, {"best_gap", 0.0}};
  return results;
}

const std::vector<Row> kRows{
    {1, "bounded", kNone, 30, "sums"},   {1, "bounded", kNone, 15, "sums"},     {1, "out_of_memory", kNone, kNone, ""},
    {2, "ran", 10, 8, "analytic"},       {2, "ran", 12, 9, "analytic"},         {2, "bounded", kNone, 11, "analytic"},
    {4, "bounded", kNone, 12.5, "sums"}, {4, "bounded", kNone, 14, "analytic"}, {4, "ran", 13, 9.5, "analytic"},
};

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// One rank that looks for the lowest bound each time.
struct OneRank {
  OneRank(const std::vector<double>& steps, const std::vector<double>& bounds, std::size_t best, double gap) {
    std::vector<double> results;
    simulated.resize(steps.size());
    for (;;) {
      std::sort(results.begin(), results.end());
      const double known = results.size() < best ? kNone : results[best - 1];
      std::size_t next = steps.size();
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (!simulated[i] && (next == steps.size() || bounds[i] < bounds[next])) next = i;
      log.push_back({results.size(), known, next == steps.size() ? kNone : bounds[next]});
      if (next == steps.size() || bounds[next] > known * (1 - gap)) return;
      simulated[next] = true;
      results.push_back(steps[next]);
    }
  }
  std::vector<ClosingStep> log;
  std::vector<bool> simulated;
};

}  // namespace

TEST_CASE("the ladder of a proof says what each rung left behind, and by how much") {
  const Results results = results_of(kRows, 1, false);
  const BestProof proof = best_proof(results).value();
  CHECK(proof.rows == std::vector<std::size_t>{3});
  CHECK(proof.last == 10);
  REQUIRE(proof.rungs.size() == 3);
  CHECK((proof.rungs[0].looked_at == 8 && proof.rungs[1].looked_at == 5 && proof.rungs[2].looked_at == 3));
  CHECK((proof.rungs[0].left_behind == 3 && proof.rungs[1].left_behind == 2 && proof.rungs[2].left_behind == 2));
  // By sums 12.5, 15 and 30 are behind 10; by analytic steps 11 and 14; of the simulated 12 and 13.
  const auto is = [](const Margins& margins, double least, double median, double largest) {
    return std::abs(margins.least - least) < 1e-12 && std::abs(margins.median - median) < 1e-12 &&
           std::abs(margins.largest - largest) < 1e-12;
  };
  CHECK(is(proof.rungs[0].margins, 0.25, 0.5, 2));
  CHECK(is(proof.rungs[1].margins, 0.1, 0.25, 0.4));
  CHECK(is(proof.rungs[2].margins, 0.2, 0.25, 0.3));
  // No experiment with tp=1 takes less than 15, with tp=2 less than 8, with tp=4 less than 9.5.
  REQUIRE(proof.values.size() == 3);
  CHECK((proof.values[0].value == "1" && proof.values[0].fitting == 2 && proof.values[0].simulated == 0));
  CHECK((proof.values[0].bound == 15 && proof.values[0].margin == 0.5));
  CHECK((proof.values[1].bound == 8 && proof.values[2].bound == 9.5 && proof.values[2].simulated == 1));
}

TEST_CASE("of an objective of which more is better, margins are shares of it") {
  const Results results = results_of(kRows, 2, true);
  const BestProof proof = best_proof(results).value();
  CHECK(proof.objective.column->name == "tokens_per_s_per_gpu");
  CHECK(proof.objective.descending);
  CHECK(proof.rows == std::vector<std::size_t>{3, 4});
  CHECK(proof.last == Approx(1000.0 / 12));
  CHECK(proof.rungs[0].margins.least == Approx(1 - 12 / 12.5));
  CHECK(proof.rungs[0].margins.largest == Approx(1 - 12.0 / 30));
  CHECK(proof.rungs[1].margins.least == Approx(1 - 12.0 / 11));  // within the gap
  CHECK(proof.values[0].bound == Approx(1000.0 / 15));
  CHECK(proof.values[0].margin == Approx(1 - 12.0 / 15));
}

TEST_CASE("a gap closes as it does for one rank that simulates the best bound first") {
  std::mt19937 random(7);
  const auto draw = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() % 1000) / 1000;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<double> steps, bounds;
    for (std::size_t i = 0; i < 30; ++i) bounds.push_back(draw(1, 3)), steps.push_back(bounds.back() * draw(1, 1.5));
    const std::size_t best = 1 + random() % 4;
    const OneRank plain(steps, bounds, best, round % 2 == 0 ? 0 : 0.05);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < steps.size(); ++i)
      rows.push_back({1, plain.simulated[i] ? "ran" : "bounded", steps[i], bounds[i], "analytic"});
    const Results results = results_of(rows, static_cast<std::int64_t>(best), false);
    const BestProof proof = best_proof(results).value();
    REQUIRE(proof.closing.size() == plain.log.size());
    for (std::size_t i = 0; i < plain.log.size(); ++i) {
      CAPTURE(round, best, i);
      CHECK(proof.closing[i].simulated == plain.log[i].simulated);
      CHECK(same(proof.closing[i].known, plain.log[i].known));
      CHECK(same(proof.closing[i].open, plain.log[i].open));
    }
    for (std::size_t i = 1; i < proof.closing.size(); ++i) {
      CHECK_FALSE(proof.closing[i].open < proof.closing[i - 1].open);
      CHECK_FALSE(proof.closing[i].known > proof.closing[i - 1].known);
    }
  }
}

TEST_CASE("points that a sweep does not list limit what is open") {
  Results results = results_of(kRows, 1, false);
  results.provenance.push_back({"space_bound", 10.5});
  CHECK(best_proof(results).value().closing.back().open == 10.5);
  CHECK(best_proof(results_of(kRows, 1, false)).value().closing.back().open == 11);
  // They may have any value, so that nothing is told of values that is better than these.
  const BestProof proof = best_proof(results).value();
  CHECK((proof.values[0].bound == 10.5 && proof.values[0].margin == Approx(0.05)));
  CHECK((proof.values[1].bound == 8 && proof.values[2].bound == 9.5));
}

TEST_CASE("of values that nothing simulated has the worst of each axis are told, and how many more there are") {
  std::vector<Row> rows{{100, "ran", 10, 8, "analytic"}};
  for (std::int64_t tp = 1; tp <= 9; ++tp)
    rows.push_back({tp, "bounded", kNone, 20.0 + static_cast<double>(tp * 7 % 10), "sums"});
  const Results results = results_of(rows, 1, false);
  const ValuesLeftBehind behind = values_left_behind(best_proof(results).value());
  REQUIRE(behind.values.size() == 6);
  CHECK(behind.more == 3);
  for (std::size_t i = 0; i < 6; ++i) CHECK(behind.values[i].bound == 29.0 - static_cast<double>(i));
}

TEST_CASE("results without a proof, and those of versions that do not tell what bounds an experiment, have none") {
  CHECK_FALSE(best_proof(sample_results()));
  CHECK_FALSE(best_proof(empty_results()));
  Results older = results_of(kRows, 1, false);
  older.experiments.columns.pop_back();
  CHECK_FALSE(best_proof(older));
  Results running = results_of(kRows, 1, false);
  running.provenance.erase(running.provenance.begin() + 1);
  CHECK_FALSE(best_proof(running));
  Results none = results_of({{1, "bounded", kNone, 3, "sums"}, {1, "failed", kNone, 2, "analytic"}}, 1, false);
  CHECK_FALSE(best_proof(none));
  // The report of an older file still has its numbers.
  const TopOptions top{5, "step_time_s", ""};
  CHECK_THAT(report_markdown(older, top, "").text, Contains("| sums over a micro-batch | 8 | 7 | - | - | - |") &&
                                                       Contains("| simulated | 3 | 2 | - |") && !Contains("proof-gap"));
}

TEST_CASE("the report of a proof has its ladder, its closing gap and the values that nothing simulated has") {
  const Results results = results_of(kRows, 1, false);
  const TopOptions top{5, "step_time_s", ""};
  const MarkdownReport report = report_markdown(results, top, "x-");
  CHECK_THAT(report.text, Contains("| sums over a micro-batch | 8 | 3 | +25.0 % | +50.0 % | +200.0 % |"));
  CHECK_THAT(report.text, Contains("| analytic steps | 5 | 2 | +10.0 % | +25.0 % | +40.0 % |"));
  CHECK_THAT(report.text, Contains("| simulated | 3 | 2 | +20.0 % | +25.0 % | +30.0 % |"));
  CHECK_THAT(report.text, Contains("| tp | 1 | 2 | 15.00 s | +50.0 % |") && !Contains("| tp | 2 |"));
  CHECK_THAT(report.text, Contains("(x-proof-gap.svg)"));
  std::string picture;
  for (const auto& [name, svg] : report.pictures)
    if (name == "x-proof-gap.svg") picture = svg;
  // After one simulation 10 is known, and stays; open are 8, 9, 9.5, and 11 at last. Ticks go from 8 to 11.
  CHECK_THAT(picture,
             Contains("step_time_s, s; red: the last of the best 1 known; blue: the best bound of all others"));
  CHECK_THAT(picture,
             Contains("<polyline points=\"80.00,296.00 346.67,296.00 346.67,208.67 613.33,208.67 613.33,165.00 "
                      "880.00,165.00 880.00,34.00\" class=\"accent\"/>"));
  CHECK_THAT(picture, Contains("<polyline points=\"346.67,121.33 613.33,121.33 880.00,121.33\" class=\"bad\"/>"));
  CHECK_THAT(report_page(results, top),
             Contains("<canvas id=\"proof-gap\"") &&
                 Contains(R"("proof":{"by":"step_time_s","best":1,"known":[null,10.0,10.0,10.0],)"
                          R"("open":[8.0,9.0,9.5,11.0]})"));
}

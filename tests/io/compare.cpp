// Two experiments side by side: what differs, parts that add up to the whole, and what is told of those that did not
// run.
#include "io/ranking/compare.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "tests/io/sample_results.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

constexpr std::int64_t kSecond = core::kSecond;

template <typename Value>
void add(Results& results, const char* name, const char* unit, std::vector<Value> values) {
  results.experiments.columns.push_back({name, unit, "", std::move(values)});
}

std::int64_t sum(const ExperimentComparison::Decomposition& whole, std::size_t side) {
  std::int64_t all = 0;
  for (const ExperimentComparison::Part& part : whole.parts) all += part.values[side];
  return all;
}

}  // namespace

TEST_CASE("two experiments differ where their axes do, and their step times part by part") {
  // 0: tp 1 on rails, 1 s, a quarter, a half and a quarter of it; 8: tp 1 on a fat tree, 3 s, 0.75, 0.75 and 1.5 s.
  const ExperimentComparison comparison = compare_experiments(sample_results(), 0, 8);
  REQUIRE(comparison.differing.size() == 1);
  CHECK(comparison.differing[0].name == "topology");
  CHECK(comparison.differing[0].values == Pair<std::string>{"rail_optimized", "fat_tree 1:4 – überbucht"});
  REQUIRE(comparison.common.size() == 1);
  CHECK((comparison.common[0].name == "strategy.tp" && comparison.common[0].values[0] == "1"));
  REQUIRE(comparison.time);
  CHECK(comparison.time->total == Pair<std::int64_t>{kSecond, 3 * kSecond});
  REQUIRE(comparison.time->parts.size() == 3);
  const std::vector<std::tuple<std::string, std::int64_t, std::int64_t, double>> expected{
      {"exposed_dp", kSecond / 4, kSecond * 3 / 2, 0.625},
      {"forward", kSecond / 4, kSecond * 3 / 4, 0.25},
      {"backward", kSecond / 2, kSecond * 3 / 4, 0.125}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, a, b, share] = expected[i];
    const ExperimentComparison::Part& part = comparison.time->parts[i];
    CHECK(part.name == name);
    CHECK(part.values == Pair<std::int64_t>{a, b});
    CHECK(comparison.time->share_of(part).value() == share);
  }
  CHECK((comparison.faster == 0 && comparison.distinction == Distinction::unknown));
  CHECK((comparison.largest_loss == Pair<std::string>{"exposed_dp", "exposed_dp"} &&
         comparison.largest_loss_share[1] == 0.5));
  const ExperimentComparison turned = compare_experiments(sample_results(), 8, 0);
  CHECK(turned.faster == 1);
  CHECK(turned.time->parts[0].difference() == -comparison.time->parts[0].difference());
  CHECK(turned.time->share_of(turned.time->parts[0]).value() == 0.625);
}

TEST_CASE("parts add up to the picosecond whatever their rounding, and what is missing of them is told") {
  std::mt19937_64 random(7);
  Results results = sample_results();
  std::vector<double> bubble(12), stall(12), step(12);
  std::vector<std::int64_t> exact(12);
  const auto column = [&](std::string_view name) -> std::vector<double>& {
    for (Column& each : results.experiments.columns)
      if (each.name == name) return std::get<std::vector<double>>(each.values);
    throw core::InternalError("no such column");
  };
  for (std::size_t row = 0; row < 12; ++row) {
    // As a step tells it: the parts are means over ranks, which no picosecond need hold, of a whole that is one.
    exact[row] = static_cast<std::int64_t>(random() % 40'000'000'000'000);
    std::vector<double> cuts{0, 1};
    for (int cut = 0; cut < 4; ++cut) cuts.push_back(static_cast<double>(random() % 1'000'003) / 1'000'003);
    std::sort(cuts.begin(), cuts.end());
    const auto part = [&](std::size_t i) { return (cuts[i + 1] - cuts[i]) * static_cast<double>(exact[row]) * 1e-12; };
    column("forward_s")[row] = part(0), column("backward_s")[row] = part(1), column("exposed_dp_s")[row] = part(2);
    bubble[row] = part(3), stall[row] = part(4), column("step_time_s")[row] = static_cast<double>(exact[row]) * 1e-12;
  }
  add(results, "bubble_s", "s", bubble);
  add(results, "stall_s", "s", stall);
  add(results, "step_time_ps", "ps", exact);
  for (std::int64_t a = 0; a < 12; ++a)
    for (std::int64_t b = 0; b < 12; ++b) {
      if (a == b) continue;
      const ExperimentComparison::Decomposition whole = compare_experiments(results, a, b).time.value();
      REQUIRE(whole.parts.size() == 5);
      REQUIRE(sum(whole, 0) == exact[static_cast<std::size_t>(a)]);
      REQUIRE(sum(whole, 1) == exact[static_cast<std::size_t>(b)]);
      std::int64_t before = INT64_MAX;
      for (const ExperimentComparison::Part& part : whole.parts) {
        REQUIRE(std::abs(part.difference()) <= before);
        before = std::abs(part.difference());
        REQUIRE(std::abs(static_cast<double>(part.values[0]) -
                         1e12 * results.experiments.find(part.name + "_s")->number_at(static_cast<std::size_t>(a))) <=
                1);
      }
    }

  Results older = sample_results();  // of a version that booked less
  std::erase_if(older.experiments.columns, [](const Column& each) { return each.name == "forward_s"; });
  const ExperimentComparison::Decomposition whole = compare_experiments(older, 0, 8).time.value();
  CHECK(sum(whole, 1) == 3 * kSecond);
  CHECK(whole.parts[1].name == "not accounted for");
  CHECK(whole.parts[1].values == Pair<std::int64_t>{kSecond / 4, kSecond * 3 / 4});
}

TEST_CASE("an experiment that did not run is compared by its memory and its reason") {
  Results results = sample_results();
  std::vector<std::int64_t> weights(12, std::int64_t{10} << 30), activations, hops(12, 5);
  for (std::size_t row = 0; row < 12; ++row)
    activations.push_back((row % 4 == 3 ? 90 : 30 + static_cast<std::int64_t>(row)) << 30);
  hops[3] = -1;
  std::vector<std::string> reasons(12);
  reasons[3] = "needs 107374182400 bytes of 80000000000";
  add(results, "memory_weights_bytes", "bytes", weights);
  add(results, "memory_activations_bytes", "bytes", activations);
  add(results, "link_hops", "", hops);
  add(results, "reason", "", reasons);
  const ExperimentComparison comparison = compare_experiments(results, 3, 4);
  CHECK(comparison.status == Pair<std::string>{"out_of_memory", "ran"});
  CHECK(comparison.reason[0] == reasons[3]);
  CHECK(!comparison.time);
  CHECK((!comparison.metrics[0].values[0] && comparison.metrics[0].values[1] == 2.0));
  CHECK((!comparison.network[0].values[0] && comparison.network[0].values[1] == 5.0));
  REQUIRE(comparison.memory);
  REQUIRE(comparison.memory->parts.size() == 2);  // all of it is accounted for
  CHECK((comparison.memory->parts[0].name == "activations" &&
         comparison.memory->parts[0].difference() == -(std::int64_t{56} << 30)));
  CHECK((comparison.memory->parts[1].name == "weights" && comparison.memory->parts[1].difference() == 0));
  CHECK(
      (sum(*comparison.memory, 0) == std::int64_t{100} << 30 && sum(*comparison.memory, 1) == std::int64_t{44} << 30));
  const std::string text = render_text(comparison);
  CHECK_THAT(text, Catch::Contains("A: needs 107374182400 bytes") && Catch::Contains("out_of_memory") &&
                       !Catch::Contains("where the time went") && !Catch::Contains("faster"));
  const auto json = nlohmann::json::parse(render_json(comparison));
  CHECK((json["time"].is_null() && json["faster"].is_null() && json["metrics"]["mfu"]["a"].is_null()));
  CHECK(json["memory"]["difference"] == -(std::int64_t{56} << 30));
}

TEST_CASE("what can be said of two step times is what the ranking says of them") {
  Results results = sample_results();
  const auto& step = std::get<std::vector<double>>(results.experiments.find("step_time_s")->values);
  std::vector<double> low, high;
  for (const double s : step) low.push_back(0.9 * s), high.push_back(1.4 * s);
  add(results, "step_time_low_s", "s", low);
  add(results, "step_time_high_s", "s", high);
  add(results, "distinguishable_ratio", "", std::vector<double>(12, 1.1));
  CHECK(compare_experiments(results, 0, 2).distinction == Distinction::distinguishable);    // 1 and 3 s
  CHECK(compare_experiments(results, 0, 9).distinction == Distinction::indistinguishable);  // 1 s both
  CHECK(compare_experiments(results, 1, 2).distinction == Distinction::overlapping);  // 2 and 3 s: 2.8 reaches 2.7
  CHECK_THAT(render_text(compare_experiments(results, 0, 2)),
             Catch::Contains("A is faster: the other takes 200.0 % longer; beyond model error"));
  CHECK_THAT(render_text(compare_experiments(results, 2, 1)), Catch::Contains("B is faster"));
  CHECK_THAT(render_text(compare_experiments(results, 0, 9)), Catch::Contains("both are equally fast"));
}

TEST_CASE("parts have no share of a difference that is a tie or less than a hundredth of the total") {
  Results results = sample_results();
  auto& step = std::get<std::vector<double>>(
      std::find_if(results.experiments.columns.begin(), results.experiments.columns.end(), [](const Column& each) {
        return each.name == "step_time_s";
      })->values);
  const auto shares_of_parts = [&](std::int64_t a, std::int64_t b) {
    const std::string text = render_text(compare_experiments(results, a, b));
    const std::string from_there = text.substr(text.find("where the time went"));
    const std::string table = from_there.substr(0, from_there.find("\n\n"));
    return std::count(table.begin(), table.end(), '%');
  };
  CHECK(shares_of_parts(0, 8) == 4);  // of three parts and their total: 1 and 3 s
  step[8] = 1.009 * step[0];
  CHECK(shares_of_parts(0, 8) == 0);
  step[8] = 1.02 * step[0];
  CHECK(shares_of_parts(0, 8) > 0);
  std::vector<double> low, high;
  for (const double s : step) low.push_back(0.9 * s), high.push_back(1.4 * s);
  add(results, "step_time_low_s", "s", low);
  add(results, "step_time_high_s", "s", high);
  add(results, "distinguishable_ratio", "", std::vector<double>(12, 1.1));
  CHECK_THAT(render_text(compare_experiments(results, 0, 8)), Catch::Contains("a tie"));
  CHECK(shares_of_parts(0, 8) == 0);
}

TEST_CASE("ids that a run does not have, and one id twice, are refused with what would be right") {
  CHECK_THROWS_WITH(compare_experiments(sample_results(), 0, 12),
                    Catch::Contains("no experiment 12") && Catch::Contains("ids from 0 to 11"));
  CHECK_THROWS_WITH(compare_experiments(sample_results(), -1, 0), Catch::Contains("no experiment -1"));
  CHECK_THROWS_WITH(compare_experiments(sample_results(), 5, 5), Catch::Contains("named twice"));
  CHECK_THROWS_AS(compare_experiments(sample_results(), 5, 5), core::InputError);
}

TEST_CASE("leaves of an axis over mappings are told by its label alone, and costs where there are some") {
  Results results = sample_results();
  add(results, "topology.oversubscription", "", std::vector<double>(12, kNone));
  results.axis_names.emplace_back("topology.oversubscription");
  std::vector<double> price(12, kNone);
  price[0] = 0.5, price[1] = 0.75;
  add(results, "usd_per_million_tokens", "USD", price);
  const ExperimentComparison comparison = compare_experiments(results, 0, 1);
  CHECK((comparison.differing.size() == 1 && comparison.differing[0].name == "strategy.tp"));
  CHECK((comparison.common.size() == 1 && comparison.common[0].name == "topology"));
  const auto priced = std::find_if(comparison.metrics.begin(), comparison.metrics.end(),
                                   [](const auto& figure) { return figure.name == "usd_per_million_tokens"; });
  REQUIRE(priced != comparison.metrics.end());
  CHECK(priced->values == Pair<std::optional<double>>{0.5, 0.75});
  CHECK_THAT(render_text(comparison), Catch::Contains("USD/million tokens") && !Catch::Contains("GPU energy/token"));
}

TEST_CASE("training runs are told in days and dollars, and one that never ends as such") {
  Results results = sample_results();
  std::vector<double> time(12, 864'000), usd(12, 17'395'935);
  time[1] = usd[1] = std::numeric_limits<double>::infinity();
  add(results, "train_time_s", "s", time);
  add(results, "train_usd", "USD", usd);
  const std::string text = render_text(compare_experiments(results, 0, 1));
  CHECK_THAT(text, Catch::Matches("(.|\n)*time to train +10.0 days +infinite +-\\n(.|\n)*"));
  CHECK_THAT(text, Catch::Matches("(.|\n)*USD to train +17,395,935 +infinite +-\\n(.|\n)*"));
}

TEST_CASE("analytic step times are told as bounds") {
  Results results = sample_results();
  std::vector<std::string> fidelity(12, "packet");
  fidelity[1] = "analytic";
  add(results, "fidelity", "", fidelity);
  CHECK_THAT(render_text(compare_experiments(results, 0, 1)), Catch::Contains("B is of analytic fidelity"));
  CHECK_THAT(render_text(compare_experiments(results, 0, 2)), !Catch::Contains("analytic"));
}

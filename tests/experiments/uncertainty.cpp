// How sure predictions are: intervals from residuals by hand, what makes them wider, and whether they hold for families
// that they were not made from.
#include "experiments/analysis/uncertainty.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "experiments/measured/tables.hpp"
#include "experiments/settings/settings.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using measured::Residuals;

namespace {

/// An experiment on two nodes of this GPU; `document` says more of it.
Settings experiment(const std::string& gpu, const std::string& document = "") {
  const Catalog catalog;
  Settings settings;
  Assigner assigner(catalog, settings, nullptr);
  assigner.defaults();
  assigner.assign_base(import::parse_yaml("model: gpt3-1.3b\ncluster: {gpu: " + gpu +
                                              ", nodes: 2, nic_gbps: 200}\ncollectives: {protocol: calibrated}\n" +
                                              document,
                                          "s.yaml"));
  derive(settings);
  return settings;
}

Interval interval(const Settings& settings, std::vector<Residuals> residuals) {
  return Uncertainty(std::move(residuals), Catalog()).of(settings, config_of(settings));
}

Residuals family(const std::string& gpu, const std::string& kind, std::vector<double> steps,
                 std::vector<double> pairs = {}) {
  Residuals result{gpu, kind, "f", static_cast<std::int64_t>(steps.size()), static_cast<std::int64_t>(pairs.size()),
                   {},  {}};
  result.steps = std::move(steps), result.pair_errors = std::move(pairs);
  return result;
}

/// -0.475, -0.425, … 0.475: a twentieth of them each.
std::vector<double> twenty() {
  std::vector<double> result;
  for (int i = 0; i < 20; ++i) result.push_back(-0.475 + 0.05 * i);
  return result;
}

std::vector<Residuals> parsed(const std::string& text) {
  return measured::read_residuals(import::parse_csv(text, "r.csv"));
}

}  // namespace

TEST_CASE("an interval leaves a tenth on either side of what one more family is expected to measure") {
  // Of n families alike and an unknown one, half of which is below all others, a tenth of n + 1 is to be below: 0.5 of
  // the unknown one, and of each other family 0.05 for each value. With four families the lowest value is already
  // above that; with ten it is the second of twenty.
  const auto of_families = [](int n) {
    return interval(
        experiment("a100_80"),
        std::vector(static_cast<std::size_t>(n), family("a100_80", "dense", twenty(), {0.01, 0.02, 0.03, 0.04, 0.05})));
  };
  CHECK(of_families(4).low == Approx(0.525));
  CHECK(of_families(4).high == Approx(1.475));
  CHECK(of_families(10).low == Approx(0.575));
  CHECK(of_families(10).high == Approx(1.425));
  CHECK(of_families(1).low == Approx(0.525));  // not beyond what was measured
  CHECK(of_families(1).distinguishable_ratio == Approx(1.04));
  CHECK(of_families(1).basis == "dense on a100_80: 1 family");
}

TEST_CASE("families count alike, whatever their rows, and those of other GPUs half") {
  // Nineteen families of one row each and one of twenty, of which none is to drown the others.
  std::vector<Residuals> all{family("a100_80", "dense", std::vector<double>(20, 0.5))};
  for (int i = 1; i < 20; ++i) all.push_back(family("a100_80", "dense", {0.01 * i}));
  CHECK(interval(experiment("a100_80"), all).high == Approx(1.19));
  // One family of the GPU and twenty of others: of 12 with the unknown one, 1.2 are to be below the interval, 0.5 of it
  // unknown, so that of the halves the second is the first inside.
  std::vector<Residuals> mixed{family("a100_80", "dense", {0.5})};
  for (int i = 1; i <= 20; ++i) mixed.push_back(family("h100_sxm", "dense", {-0.01 * i}));
  CHECK(interval(experiment("a100_80"), mixed).low == Approx(0.81));
  CHECK(interval(experiment("a100_80"), mixed).basis == "dense on a100_80: 1 family, 20 of other GPUs at half weight");
}

TEST_CASE("a prediction lies in its own interval, also where all residuals have one sign") {
  const Interval late = interval(experiment("a100_80"), {family("a100_80", "dense", {0.1, 0.2})});
  CHECK((late.low == 1 && late.high == Approx(1.2)));
  const Interval early = interval(experiment("a100_80"), {family("a100_80", "dense", {-0.2, -0.1})});
  CHECK((early.low == Approx(0.8) && early.high == 1));
}

TEST_CASE("what was not measured makes an interval wider, and says so") {
  const std::vector<Residuals> all{family("a100_80", "dense", {-0.2, 0.2}, {0.1})};
  const auto widened = [&](const Settings& settings, const std::string& because) {
    const Interval one = interval(settings, all);
    CAPTURE(one.basis);
    CHECK(one.low == Approx(1 / (1 + 1.5 * 0.25)));
    CHECK(one.high == Approx(1.3));
    CHECK(one.distinguishable_ratio == Approx(1.15));
    CHECK_THAT(one.basis, Catch::Contains("1.5 times as wide") && Catch::EndsWith(because));
  };
  widened(experiment("mi300x"), "no such step of mi300x");
  widened(experiment("h100_sxm"), "no such step of h100_sxm");
  widened(experiment("{like: a100_80, gemm_efficiency: 0.9}"), "constants of its own");
  widened(experiment("a100_80", "strategy: {zero: 3}"), "none that is sharded");
  Settings mixers = experiment("a100_80");
  mixers["model.architecture"] =
      std::string("{blocks: {a: {mamba2: {heads: 64}}, b: mlp}, layers: [{repeat: 12, of: [a, b]}]}");
  widened(mixers, "no published step has mamba2");
  Settings none = experiment("a100_80");
  none["collectives.protocol"] = std::string("none");
  widened(none, "collectives without a measured library");
  // The same chip, a link of another speed and no collective at all are none of these.
  CHECK(interval(experiment("a100_40"), all).high == Approx(1.2));
  CHECK(interval(experiment("{like: a100_80, scale_up_gb_per_s: 200}"), all).high == Approx(1.2));
  none["cluster.nodes"] = std::int64_t{1};
  none["cluster.gpus_per_node"] = std::int64_t{1};
  CHECK(interval(none, all).high == Approx(1.2));
}

TEST_CASE("kinds are experts, sharded parameters, or neither") {
  const auto kind = [](const std::string& model, const std::string& more) {
    Settings settings = experiment("a100_80", "strategy: {" + more + "}");
    if (model == "experts") settings["model.experts"] = std::int64_t{8};
    return layout_kind(config_of(settings).configuration);
  };
  CHECK(kind("", "zero: 1") == "dense");
  CHECK(kind("", "zero: 3") == "sharded");
  CHECK(kind("experts", "zero: 3") == "experts");
}

TEST_CASE("values are spread as they came, or as their quantiles where they are many or weigh differently") {
  CHECK(measured::quantile_sample({{0.3, 1}, {0.1, 1}, {0.2, 1}}) == std::vector<double>{0.1, 0.2, 0.3});
  CHECK(measured::quantile_sample({}).empty());
  CHECK(measured::quantile_sample({{1, 3}, {2, 1}}) == std::vector<double>{1, 1});
  std::vector<std::pair<double, double>> many;
  for (int i = 0; i < 1000; ++i) many.emplace_back((i + 0.5) / 1000, 2);
  const auto twenty = measured::quantile_sample(many);
  REQUIRE(twenty.size() == measured::kMaxValues);
  for (std::size_t i = 0; i < twenty.size(); ++i)
    CHECK(twenty[i] == Approx((static_cast<double>(i) + 0.5) / 20).margin(0.001));
}

TEST_CASE("a table of residuals is read as it was written, and its faults name file, line and what is right") {
  const std::vector<Residuals> some{family("a100_80", "dense", {-0.05, 0.125}, {0.01}),
                                    family("h100_sxm", "experts", {0.5})};
  const auto again = parsed(measured::residuals_table(some));
  REQUIRE(again.size() == 2);
  CHECK((again[0].gpu == "a100_80" && again[1].kind == "experts" && again[0].family == "f"));
  CHECK((again[0].steps == some[0].steps && again[0].pair_errors == some[0].pair_errors && again[1].pairs == 0));
  const std::string header = "gpu,kind,family,rows,steps_percent,pairs,pairs_percent\n";
  CHECK_THROWS_WITH(parsed("gpu,kind\n"), Catch::StartsWith("r.csv:1: has no column 'family'"));
  CHECK_THROWS_WITH(parsed(header + "a,dense,f,1,x,0,\n"),
                    Catch::StartsWith("r.csv:2: steps_percent must be per cents"));
  CHECK_THROWS_WITH(parsed(header + "a,dense,f,2,3 1,0,\n"), Catch::Contains("ascending"));
  CHECK_THROWS_WITH(parsed(header + "a,dense,f,1,-100,0,\n"), Catch::Contains("from -99.9"));
  CHECK_THROWS_WITH(parsed(header + "a,dense,f,1,1,1,-1\n"), Catch::Contains("pairs_percent"));
  CHECK_THROWS_WITH(parsed(header + "a,dense,f,1,1 2,0,\n"), Catch::Contains("rows must say"));
  CHECK_THROWS_WITH(parsed(header + "a,dense,f,0,,0,\n"), Catch::Contains("holds no value"));
}

TEST_CASE("mutated tables of residuals are read or refused") {
  const std::string text = measured::residuals_table(
      {family("a100_80", "dense", {-0.05, 0.125}, {0.01}), family("h100_sxm", "experts", {0.5, 0.75})});
  std::mt19937_64 random(11);
  std::size_t refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string bent = experiments::testing::mutated(text, random);
    CAPTURE(bent);
    try {
      for (const Residuals& one : parsed(bent)) {
        REQUIRE_FALSE(one.steps.empty());
        REQUIRE(one.steps.front() > -1);
      }
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("r.csv", 0) == 0);
    }
  }
  CHECK(refused > 100);
  CHECK(refused < 1000);
}

TEST_CASE("networks are compared by collectives over nodes, which the intervals of steps leave out") {
  const std::string network(measured::kNetworkKind);
  const std::vector<Residuals> steps{family("a100_80", "dense", {-0.2, 0.3}, {0.1})};
  std::vector<Residuals> all = steps;
  all.push_back(family("a100_80", network, {0.5}, {0.1, 0.2, 0.3, 0.4, 0.5}));
  const Interval one = interval(experiment("a100_80"), all), without = interval(experiment("a100_80"), steps);
  CHECK(one.network_ratio == Approx(1.4));  // four of five
  CHECK(std::isnan(without.network_ratio));
  CHECK((one.low == without.low && one.high == without.high && one.basis == without.basis));
  CHECK(one.distinguishable_ratio == without.distinguishable_ratio);
  CHECK(interval(experiment("mi300x"), all).network_ratio == Approx(1.6));  // of another chip: half as much again
  // Another chip's family has half the weight: of 1.5 all up to 0.4 of both are 1.2.
  all.push_back(family("h100_sxm", network, {0.5}, {0.1, 0.2, 0.3, 0.4, 0.9}));
  CHECK(interval(experiment("a100_80"), all).network_ratio == Approx(1.4));
}

TEST_CASE("intervals made without a family hold most of what was measured in it") {
  auto all = parsed(measured::compiled_table("residuals"));
  std::erase_if(all, [](const Residuals& one) { return one.kind == measured::kNetworkKind; });
  REQUIRE(all.size() >= 10);
  const Catalog catalog;
  double held = 0;
  for (std::size_t out = 0; out < all.size(); ++out) {
    std::vector<Residuals> others;
    for (const Residuals& one : all)
      if (one.family != all[out].family) others.push_back(one);
    Settings settings = experiment(all[out].gpu, all[out].kind == "sharded" ? "strategy: {zero: 3}" : "");
    if (all[out].kind == "experts") settings["model.experts"] = std::int64_t{8};
    const Interval result = interval(settings, others);
    const auto inside = std::count_if(all[out].steps.begin(), all[out].steps.end(),
                                      [&](double off) { return result.low <= 1 + off && 1 + off <= result.high; });
    held += static_cast<double>(inside) / static_cast<double>(all[out].steps.size());
  }
  // Promised are four of five rows of the next family.
  CHECK(held / static_cast<double>(all.size()) > 0.75);
  CHECK(held / static_cast<double>(all.size()) < 0.9);
}

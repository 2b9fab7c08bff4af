// Guesses of the catalog: their ranges, what these are worth in the time of a step, and on which of them answers rest.
#include "experiments/analysis/guesses.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/step/layout/memory_requirement.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using testing::kSingle;
using testing::with;

namespace {

/// An entry with all that a GPU needs, whose rate of memory has a certainty and perhaps a range.
std::string entry(const std::string& memory) {
  return "source: bench\ncertainty: read\nvalues:\n  matrix_tflops: 300\n  memory_gib: 80\n  precisions: bf16\n"
         "  compute_units: 100\n  clock_ghz: 1.5\n  communicator_mib: {value: 256, certainty: guess}\n"
         "  scale_up_gb_per_s: {value: 100, certainty: guess}\n  memory_gb_per_s: " +
         memory + "\n";
}

/// The catalog with such a GPU as "mine".
Catalog catalog_with(const std::string& memory) {
  TemporaryFolder folder;
  folder.put("gpus/mine.yaml", entry(memory));
  return Catalog(folder.path.string());
}

Experiment experiment(const Catalog& catalog, const std::string& gpu, std::vector<std::string> overrides = {}) {
  for (const char* size : {"hidden=4096", "heads=32", "vocabulary=32768", "sequence=2048"})
    overrides.push_back(std::string("model.") + size);
  return parse_sweep(with(kSingle, "a100_40", gpu), "s.yaml", overrides, catalog, {.practice = Practice::of_2021})
      .experiments.front();
}

std::vector<std::string> keys_of(const std::vector<Guess>& guesses) {
  std::vector<std::string> keys;
  for (const Guess& one : guesses) keys.push_back(one.key);
  return keys;
}

bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// The time of a step by closed forms with another rate of memory.
double seconds_at(Experiment one, double gb_per_s) {
  one.settings["cluster.gpu.memory_gb_per_s"] = gb_per_s;
  return fitting::closed_form_s(one.config());
}

}  // namespace

TEST_CASE("a guess may have a range around its value, and a faulty range is named with its line") {
  const auto range = catalog_with("{value: 1000, range: [500, 2000], certainty: guess}")
                         .entries("gpus")
                         .at("mine")
                         .values.at("memory_gb_per_s")
                         .range;
  REQUIRE(range);
  CHECK(range->low == 500);
  CHECK(range->high == 2000);
  const auto fails = [](const std::string& memory, const std::string& says) {
    CAPTURE(memory);
    CHECK_THROWS_WITH(read_catalog_entry("gpus", entry(memory), "x.yaml"),
                      Catch::StartsWith("x.yaml:11: the range of 'memory_gb_per_s' ") && Catch::Contains(says));
  };
  fails("{value: 1000, range: [2000, 500], certainty: guess}", "must rise, not go from 2000 to 500");
  fails("{value: 1000, range: [1000, 1000], certainty: guess}", "must rise");
  fails("{value: 3000, range: [500, 2000], certainty: guess}", "must hold its value, 3000, and goes from 500 to 2000");
  fails("{value: 1000, range: [500, 2000], certainty: known}", "is for guesses, and its value is known");
  fails("{value: 1000, range: [500], certainty: guess}", "must be a list of two numbers");
  fails("{value: 1000, range: 500, certainty: guess}", "must be a list of two numbers");
  CHECK_THROWS_WITH(read_catalog_entry("gpus", entry("{value: 1000, range: [500, fast], certainty: guess}"), "x.yaml"),
                    Catch::Contains("x.yaml:11: 'memory_gb_per_s' must be"));
  CHECK_THROWS_WITH(
      read_catalog_entry("gpus", "source: s\ncertainty: guess\nvalues:\n  scale_up: {value: pcie, range: [1, 2]}\n",
                         "x.yaml"),
      Catch::Contains("the range of 'scale_up' must go; its value is no number"));
}

TEST_CASE("a constant carried over to another chip has the range that it spans where it was measured") {
  const Catalog catalog;
  double low = 1, high = 0;
  for (const auto& [name, gpu] : catalog.entries("gpus"))
    if (const auto found = gpu.values.find("gemm_efficiency");
        found != gpu.values.end() && found->second.certainty == "fitted") {
      low = std::min(low, std::get<double>(found->second.value));
      high = std::max(high, std::get<double>(found->second.value));
    }
  REQUIRE(low < high);
  const auto& copied = catalog.entries("gpus").at("metax_c500").values.at("gemm_efficiency");
  CHECK(copied.certainty == "guess");
  REQUIRE(copied.range);
  CHECK(copied.range->low <= low);  // those that were read count as well
  CHECK(copied.range->high >= high);
  const double value = std::get<double>(copied.value);
  CHECK((copied.range->low <= value && value <= copied.range->high));
  CHECK(catalog.entries("gpus").at("h200_sxm").values.at("gemm_efficiency").certainty == "fitted");  // the same chip
}

TEST_CASE("guesses are worth what closed forms say at the ends of their ranges") {
  const Catalog catalog = catalog_with("{value: 1000, range: [500, 2000], certainty: guess}");
  const Experiment one = experiment(catalog, "mine");
  const GuessedTime time = guessed_time(one.settings, one.config(), catalog);
  const double base = seconds_at(one, 1000);
  CHECK(time.low == Approx(seconds_at(one, 2000) / base));
  CHECK(time.high == Approx(seconds_at(one, 500) / base));
  CHECK(time.low < 0.99);
  CHECK(time.high > 1.01);
  CHECK_THAT(time.figures, Catch::StartsWith("memory_gb_per_s 1000 (500 to 2000); without a range: "));
  CHECK_THAT(time.figures, Catch::Contains("scale_up_gb_per_s 100"));
  CHECK(time.figures.find("communicator_mib") == std::string::npos);
}

TEST_CASE("without a range nothing is worth anything, and a figure of the user's own is no guess") {
  const Catalog plain = catalog_with("{value: 1000, certainty: guess}");
  const Experiment one = experiment(plain, "mine");
  CHECK(guessed_time(one.settings, one.config(), plain).low == 1);
  CHECK(guessed_time(one.settings, one.config(), plain).figures.empty());
  const Catalog ranged = catalog_with("{value: 1000, range: [500, 2000], certainty: guess}");
  const Experiment own = experiment(ranged, "mine", {"cluster.gpu.memory_gb_per_s=900"});
  CHECK(guessed_time(own.settings, own.config(), ranged).high == 1);
  CHECK_FALSE(has(keys_of(guesses_of(own.settings, ranged)), "cluster.gpu.memory_gb_per_s"));
}

TEST_CASE("an answer rests on the guesses that change its time, or whether it fits") {
  const Catalog catalog = catalog_with("{value: 1000, certainty: guess}");
  const auto used = [&](const std::vector<std::string>& overrides) {
    const Experiment one = experiment(catalog, "mine", overrides);
    return keys_of(guesses_in_use(one.settings, one.config(), catalog));
  };
  const auto two = used({});
  CHECK(has(two, "cluster.gpu.memory_gb_per_s"));
  CHECK(has(two, "cluster.gpu.scale_up_gb_per_s"));
  CHECK_FALSE(has(two, "cluster.gpu.communicator_mib"));  // it fits with any
  const auto alone = used({"cluster.nodes=1", "cluster.gpus_per_node=1", "strategy.tp=1", "strategy.pp=1"});
  CHECK(has(alone, "cluster.gpu.memory_gb_per_s"));
  CHECK_FALSE(has(alone, "cluster.gpu.scale_up_gb_per_s"));
  const Experiment one = experiment(catalog, "mine");
  const double needed =
      core::gib(static_cast<double>(core::step::memory_requirement_of(one.config().configuration).required.total()));
  CHECK(has(used({fmt::format("cluster.gpu.memory_gib={}", needed + 0.01)}), "cluster.gpu.communicator_mib"));
}

TEST_CASE("guesses widen the interval of a GPU that nobody measured, and no other") {
  const Uncertainty uncertainty = Uncertainty::compiled();
  const auto interval = [&](const std::string& gpu, const std::vector<std::string>& overrides) {
    const Experiment one = experiment(uncertainty.catalog(), gpu, overrides);
    return uncertainty.with_guesses(one.settings, one.config());
  };
  const Interval metax = interval("metax_c550", {});
  CHECK(metax.guesses.low < 1);
  CHECK(metax.guesses.high > 1);
  CHECK_FALSE(metax.guesses.figures.empty());
  const Interval known = interval("a100_40", {});
  CHECK(known.guesses.low == 1);
  CHECK(known.guesses.high == 1);
  CHECK(known.guesses.figures.empty());
}

TEST_CASE("guessed rates of scans are named only where a mixer runs") {
  const Catalog catalog;
  const auto used = [&](std::vector<std::string> overrides) {
    const Experiment one = experiment(catalog, "a100_80", std::move(overrides));
    return keys_of(guesses_in_use(one.settings, one.config(), catalog));
  };
  const std::string state_space = "cluster.gpu.state_space_efficiency";
  CHECK_FALSE(has(used({}), state_space));
  CHECK(has(used({"model.architecture={blocks: {a: {mamba2: {heads: 64, groups: 8}}, b: mlp}, layers: abab}"}),
            state_space));
  // That of the delta rule is fitted there.
  CHECK_FALSE(has(used({"model.architecture={blocks: {a: {gated_delta: {key_heads: 16, value_heads: 32}}, b: mlp}, "
                        "layers: abab}"}),
                  "cluster.gpu.delta_rule_efficiency"));
}

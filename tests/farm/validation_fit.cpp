// Constants fitted to measured rows, kept as a table and used in the place of the catalog's.
#include "farm/validation/validation_fit.hpp"

#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "experiments/text/csv.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using experiments::Catalog;
using experiments::measured::TrainingStep;

namespace {

/// Two families of rows on one GPU to four, of made-up times.
std::vector<TrainingStep> steps(const Catalog& catalog) {
  std::string text =
      "id,source,family,model,layers,hidden,heads,vocab,seq_len,gpu,num_gpus,gpus_per_node,tp,pp,dp,cp,ep,micro_batch,"
      "global_batch,recompute,schedule,dtype,measured_step_s\n";
  int row = 0;
  for (const char* family : {"one", "two"})
    for (const int hidden : {1'024, 4'096})
      for (const int tp : {1, 4})
        text += fmt::format("r{},{},{},GPT,4,{},16,50257,1024,A100,{},8,{},1,1,1,1,4,16,full,1F1B,fp16,1.0\n", row++,
                            family, family, hidden, tp, tp);
  return experiments::measured::read_training_steps(experiments::import::parse_csv(text, "rows.csv"), catalog);
}

/// Every row as if it had been predicted right.
std::vector<ComparedRow> as_measured(const std::vector<TrainingStep>& rows) {
  std::vector<ComparedRow> compared;
  for (const TrainingStep& step : rows) {
    ComparedRow one;
    one.id = step.id;
    one.family = step.family;
    one.measured = one.predicted = 1;
    compared.push_back(one);
  }
  return compared;
}

double value_of(const FamilyConstants& constants, const std::string& key) {
  for (const auto& one : constants.constants)
    if (one.key == key) return one.value;
  FAIL("no " << key);
  return 0;
}

}  // namespace

TEST_CASE("rows that took longer than predicted lower what a GPU reaches, and a family left out has no say") {
  const Catalog catalog;
  const auto rows = steps(catalog);
  REQUIRE(rows.size() == 8);
  for (const TrainingStep& step : rows) REQUIRE(step.unsupported + step.detail == "");
  std::vector<ComparedRow> compared = as_measured(rows);
  for (ComparedRow& one : compared)
    if (one.family == "two") one.predicted = 0.8;  // it took a quarter longer than predicted
  const double both = value_of(fit_constants(rows, compared, catalog), "sustained_rate");
  const double one = value_of(fit_constants(rows, compared, catalog, "two"), "sustained_rate");
  const double two = value_of(fit_constants(rows, compared, catalog, "one"), "sustained_rate");
  CHECK(two < both);
  CHECK(both < one);
  const auto each = fit_leaving_one_out(rows, compared, catalog);
  REQUIRE(each.size() == 2);
  CHECK(each[0].family == "one");
  CHECK(value_of(each[0], "sustained_rate") == two);
}

TEST_CASE("rows that were predicted right with given constants are a reason to keep those, not the catalog's") {
  const Catalog catalog;
  auto rows = steps(catalog);
  const double catalogs = std::get<double>(catalog.entries("gpus").at("a100_40").values.at("sustained_rate").value);
  const double given = catalogs / 2;
  rows = with_constants(rows, {{"", {{"a100_80", "sustained_rate", given}}}}, catalog);
  std::vector<ComparedRow> compared = as_measured(rows);
  const double kept = value_of(fit_constants(rows, compared, catalog), "sustained_rate");
  CHECK(std::abs(kept - given) < std::abs(kept - catalogs));
}

TEST_CASE("rows of models with experts have no say in the constants of kernels") {
  const Catalog catalog;
  auto rows = steps(catalog);
  std::vector<ComparedRow> compared = as_measured(rows);
  const double without = value_of(fit_constants(rows, compared, catalog), "sustained_rate");
  rows.push_back(rows.back());
  rows.back().id = "with experts";
  auto& settings = rows.back().experiments.front();
  settings["model.experts"] = std::int64_t{8};
  settings["model.experts_per_token"] = std::int64_t{2};
  ComparedRow slow = compared.back();
  slow.id = "with experts";
  slow.predicted = 0.1;  // it took ten times longer
  compared.push_back(slow);
  CHECK(value_of(fit_constants(rows, compared, catalog), "sustained_rate") == without);
}

TEST_CASE("constants survive being a table, and the rows of their family take them") {
  const Catalog catalog;
  const std::vector<FamilyConstants> constants{{"two", {{"a100_80", "sustained_rate", 0.5}}}};
  const auto read = read_constants(constants_table(constants), "c.csv", catalog);
  REQUIRE(read.size() == 1);
  CHECK(read[0].family == "two");
  const auto changed = with_constants(steps(catalog), read, catalog);
  REQUIRE(changed.size() == 4);  // those of the other family have none
  for (const TrainingStep& step : changed) {
    CHECK(step.family == "two");
    CHECK(std::get<double>(step.experiments.front().at("cluster.gpu.sustained_rate")) == 0.5);
  }
  CHECK(with_constants(steps(catalog), {{"", read[0].constants}}, catalog).size() == 8);
}

TEST_CASE("a table of constants that names none is bad input") {
  const Catalog catalog;
  const auto error_of = [&](const std::string& text) {
    try {
      read_constants(text, "c.csv", catalog);
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string header = "family,owner,constant,value\n";
  CHECK_THAT(error_of("owner,constant,value\n"), Catch::Contains("c.csv:1: has no column 'family'"));
  CHECK_THAT(error_of(header + ",a1000,gemm_efficiency,0.5\n"),
             Catch::Contains("c.csv:2: 'a1000' is no GPU and no stack of the catalog"));
  CHECK_THAT(error_of(header + ",a100_80,gemm,0.5\n"), Catch::Contains("c.csv:2: unknown constant 'gemm'"));
  CHECK_THAT(error_of(header + ",nanotron,gemm_efficiency,0.5\n"), Catch::Contains("unknown constant"));
  CHECK_THAT(error_of(header + ",nanotron,host_kernel_us,5\n"), Catch::Equals(""));
  CHECK_THAT(error_of(header + ",a100_80,gemm_efficiency,5\n"), Catch::Contains("must be from 0.001 to 1"));
}

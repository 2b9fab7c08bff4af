// Steps that differ in one thing: which of them make pairs, and their ratios by hand.
#include "farm/validation/compared_switches.hpp"

#include <catch2/catch.hpp>

using namespace manyworlds;
using namespace manyworlds::farm;
using experiments::measured::TrainingStep;

namespace {

/// A measured step and its prediction.
struct Row {
  std::string id, precision, recompute;
  std::int64_t tp;
  double measured, predicted;
  std::string exclusion_reason = {};
};

Comparison switches_of(const std::vector<Row>& rows) {
  std::vector<TrainingStep> steps;
  Comparison compared;
  for (const Row& row : rows) {
    TrainingStep step;
    step.id = row.id, step.measured_s = row.measured, step.exclusion_reason = row.exclusion_reason;
    step.experiments.push_back({{"cluster.gpu.memory_gib", row.predicted},  // as for rows that would not fit
                                {"strategy.recompute", row.recompute},
                                {"strategy.stack.precision", row.precision},
                                {"strategy.tp", row.tp}});
    steps.push_back(step);
    compared.rows.push_back({row.id, "f", "c", "", row.measured, row.predicted});
  }
  return compare_switches(steps, compared);
}

}  // namespace

TEST_CASE("two steps that differ in one switch alone are compared by the ratio of their times") {
  const Comparison found = switches_of({{"a", "bf16", "none", 2, 30, 24},
                                        {"b", "fp8", "none", 2, 20, 20},
                                        {"c", "fp8", "none", 4, 10, 10},    // another layout
                                        {"d", "fp8", "full", 2, 25, 24}});  // the same as b, but for recomputation
  REQUIRE(found.rows.size() == 2);
  CHECK(found.rows[0].family == "bf16 to fp8");
  CHECK(found.rows[0].id == "a / b");
  CHECK(found.rows[0].measured == Approx(1.5));
  CHECK(found.rows[0].predicted == Approx(1.2));
  CHECK(found.rows[1].family == "no recomputation to full");
  CHECK(found.rows[1].id == "b / d");
  CHECK(found.rows[1].measured == Approx(0.8));
}

TEST_CASE("several steps of one side count as their mean, and excluded ones stay among themselves") {
  const Comparison found = switches_of({{"a", "bf16", "none", 2, 30, 30},
                                        {"b", "bf16", "none", 2, 50, 50},
                                        {"c", "fp8", "none", 2, 20, 16},
                                        {"d", "fp8", "none", 2, 5, 5, "another clock"}});
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].measured == Approx(2));
  CHECK(found.rows[0].predicted == Approx(2.5));
  CHECK(switches_of({{"a", "bf16", "none", 2, 30, 30, "x"}, {"b", "fp8", "none", 2, 20, 16, "x"}}).rows.size() == 1);
  CHECK(switches_of({{"a", "bf16", "none", 2, 30, 30}, {"b", "fp8", "none", 4, 20, 16}}).rows.empty());
}

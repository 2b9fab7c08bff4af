// Errors, pairs and regret of predictions against closed forms on a few rows, and the picture of them.
#include "farm/validation/validation.hpp"

#include <catch2/catch.hpp>

#include "experiments/measured/tables.hpp"
#include "farm/validation/validation_picture.hpp"
#include "farm/validation/validation_residuals.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

namespace {

ComparedRow row(const std::string& layout, double measured, double predicted, double weight = 1) {
  return {layout, "f", "c", layout, measured, predicted, "s", weight, false};
}

}  // namespace

TEST_CASE("errors are shares of the measured time, in means by weight") {
  // +10 %, -20 %, +40 %: magnitudes 0.1, 0.2, 0.4.
  const Errors even = errors_of({row("a", 10, 11), row("b", 10, 8), row("c", 10, 14)});
  CHECK(even.rows == 3);
  CHECK(even.mean == Approx(0.7 / 3));
  CHECK(even.median == Approx(0.2));
  CHECK(even.max == Approx(0.4));
  CHECK(even.bias == Approx(0.1));
  const Errors weighted = errors_of({row("a", 10, 11, 6), row("b", 10, 8, 1), row("c", 10, 14, 1)});
  CHECK(weighted.mean == Approx((6 * 0.1 + 0.2 + 0.4) / 8));
  CHECK(weighted.median == Approx(0.1));
  CHECK(weighted.bias == Approx((6 * 0.1 - 0.2 + 0.4) / 8));
  CHECK(errors_of({row("a", 10, 11), row("b", 10, 8)}).median == Approx(0.15));
  CHECK(errors_of({}).mean == 0);
}

TEST_CASE("pairs more than 5 % apart are counted, and right when the faster is predicted faster") {
  // Measured 100, 104, 120, 150: all pairs but (100, 104) are more than 5 % apart. Predicted 90, 80, 85, 70.
  const RankingAccuracy ranking =
      ranking_accuracy_of({row("a", 100, 90), row("b", 104, 80), row("c", 120, 85), row("d", 150, 70)});
  CHECK(ranking.pairs == 5);
  CHECK(ranking.correct == 1);  // b before c
  CHECK(ranking.groups == 1);
  CHECK(ranking.mean_regret == Approx(0.5));  // d is picked
  CHECK(ranking.max_regret == Approx(0.5));
}

TEST_CASE("only rows among which somebody would choose make pairs, and rows of one layout count once") {
  ComparedRow other_model = row("b", 200, 100), other_family = row("b", 200, 100);
  other_model.comparison_group = "d";
  other_family.family = "g";
  CHECK(ranking_accuracy_of({row("a", 100, 150), other_model, other_family}).pairs == 0);
  CHECK(ranking_accuracy_of({row("a", 100, 150), other_model, other_family}).groups == 0);
  // The layout a in two releases, 90 and 110, is one of 100.
  const RankingAccuracy releases = ranking_accuracy_of({row("a", 90, 100), row("a", 110, 100), row("b", 103, 90)});
  CHECK(releases.pairs == 0);
  CHECK(releases.max_regret == Approx(0.03));
  // Two choices, of which one is made well.
  ComparedRow x = row("x", 1, 1), y = row("y", 2, 2);
  x.comparison_group = y.comparison_group = "other";
  const RankingAccuracy both = ranking_accuracy_of({row("a", 100, 2), row("b", 120, 1), x, y});
  CHECK(both.groups == 2);
  CHECK(both.mean_regret == Approx(0.1));
  CHECK(both.share() == Approx(0.5));
}

TEST_CASE("rows kept apart are out of their family's figures and have their own") {
  ComparedRow odd = row("odd", 10, 30);
  odd.excluded_from_family = true;
  ComparedRow other = row("z", 10, 10);
  other.family = "g";
  const auto accuracies = accuracy_by_family({row("a", 10, 11), odd, other});
  REQUIRE(accuracies.size() == 2);
  CHECK(accuracies[0].family == "f");
  CHECK(accuracies[0].errors.rows == 1);
  CHECK(accuracies[0].errors.mean == Approx(0.1));
  CHECK(accuracies[0].ranking.pairs == 0);
  CHECK(accuracies[0].excluded_from_family.rows == 1);
  CHECK(accuracies[0].excluded_from_family.mean == Approx(2));
  CHECK(accuracies[1].family == "g");
}

TEST_CASE("residuals are of families, chips and kinds, and of pairs of layouts among which somebody would choose") {
  const experiments::Catalog catalog;
  const auto steps = experiments::measured::read_training_steps(
      experiments::import::parse_csv(experiments::measured::compiled_table("training_steps"), "t.csv"), catalog);
  // Three layouts of one choice, measured 10, 12, 15 s, predicted 8, 12, 20 s.
  std::vector<experiments::measured::TrainingStep> three;
  for (const auto& step : steps)
    if (step.unsupported.empty() && step.gpu == "a100_40" && three.size() < 3) three.push_back(step);
  REQUIRE(three.size() == 3);
  Comparison compared;
  const double measured[] = {10, 12, 15}, predicted[] = {8, 12, 20};
  for (std::size_t i = 0; i < 3; ++i)
    compared.rows.push_back({three[i].id, "f", "c", std::to_string(i), measured[i], predicted[i], "s", 1, false});
  const auto result = residuals_of(three, compared, catalog);
  REQUIRE(result.size() == 1);
  CHECK((result[0].gpu == "a100_80" && result[0].kind == "dense" && result[0].family == "f"));
  CHECK((result[0].rows == 3 && result[0].pairs == 3));
  REQUIRE(result[0].steps.size() == 3);
  CHECK(result[0].steps[0] == Approx(-0.25));
  CHECK(result[0].steps[1] == Approx(0).margin(1e-12));
  CHECK(result[0].steps[2] == Approx(0.25));
  // Ratios 10/12, 10/15, 12/15 against 8/12, 8/20, 12/20: off by 1.25, 5/3 and 4/3.
  REQUIRE(result[0].pair_errors.size() == 3);
  CHECK(result[0].pair_errors[0] == Approx(0.25));
  CHECK(result[0].pair_errors[1] == Approx(1.0 / 3));
  CHECK(result[0].pair_errors[2] == Approx(2.0 / 3));
  for (ComparedRow& row : compared.rows) row.excluded_from_family = true;
  CHECK(residuals_of(three, compared, catalog).empty());
}

TEST_CASE("the picture puts a right prediction on the diagonal") {
  // One decade, 640 wide from (70, 30): ten seconds are its upper right corner, one its lower left.
  const std::string picture = validation_picture({row("a", 1, 1), row("b", 10, 10), row("c", 10, 1)});
  CHECK(picture.rfind("<svg ", 0) == 0);
  CHECK(picture.find("cx=\"70.0\" cy=\"670.0\"") != std::string::npos);
  CHECK(picture.find("cx=\"710.0\" cy=\"30.0\"") != std::string::npos);
  CHECK(picture.find("cx=\"710.0\" cy=\"670.0\"") != std::string::npos);
  CHECK(validation_picture({}).find("</svg>") != std::string::npos);
  ComparedRow odd = row("a", 1, 1);
  odd.family = "<b> & c";
  CHECK(validation_picture({odd}).find("&lt;b&gt; &amp; c") != std::string::npos);
}

// What a search says of its rankings.
#include "farm/search_report.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "experiments/experiment.hpp"
#include "farm/search_space.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

TEST_CASE("rank correlation meets its closed form") {
  CHECK(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 40}) == Approx(1));
  CHECK(rank_correlation({1, 2, 3, 4}, {9, 7, 5, -3}) == Approx(-1));
  CHECK(rank_correlation({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}) == Approx(1 - 6.0 * 4 / (5 * 24)));  // 1 - 6 d^2 / n(n^2-1)
  // Ties share their mean rank: ranks 0.5 0.5 2 against 0 1 2, whose covariance is 1.5, variances 1.5 and 2.
  CHECK(rank_correlation({7, 7, 8}, {1, 2, 3}) == Approx(1.5 / std::sqrt(1.5 * 2)));
  CHECK(std::isnan(rank_correlation({1}, {2})));
}

TEST_CASE("the space of a search is a sweep of which every part can be") {
  const experiments::Catalog catalog;
  for (const char* model : {"gpt3-1.3b", "llama2-7b", "mixtral-8x7b", "deepseek-v3"}) {
    CAPTURE(model);
    SearchWords words;
    words.model = model;
    words.cluster = "dgx_h100_superpod";
    words.sequence = 4'096;
    const SearchSpace space = search_space(words, catalog);
    const auto sweep =
        experiments::parse_sweep(with_sample(space.yaml, 40, 1), "search.yaml", {"fidelity=analytic"}, catalog);
    CHECK(sweep.experiments.size() == 40);
    CHECK(sweep.name == space.name);
  }
}

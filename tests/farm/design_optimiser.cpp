// The optimiser of designs on objectives whose optimum is known in closed form, its limits, and its rivals.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "farm/design/designed_step.hpp"
#include "farm/design/optimiser.hpp"

using namespace manyworlds::farm::design;

namespace {

/// Shares x of a budget of sum(c x) <= B that make the product of x^a largest: by Lagrange c_i x_i = a_i / sum(a) B.
struct CobbDouglas {
  std::vector<double> exponents, prices;
  double budget;

  double spent(const Point& point) const {
    double sum = 0;
    for (std::size_t i = 0; i < point.size(); ++i) sum += prices[i] * point[i];
    return sum;
  }
  double cost(const Point& point) const {
    double logs = 0;
    for (std::size_t i = 0; i < point.size(); ++i) logs -= exponents[i] * std::log(point[i]);
    return logs;
  }
  double best_cost() const {
    double sum = 0, logs = 0;
    for (const double one : exponents) sum += one;
    for (std::size_t i = 0; i < exponents.size(); ++i)
      logs -= exponents[i] * std::log(exponents[i] / sum * budget / prices[i]);
    return logs;
  }
  Problem problem(std::size_t threads = 1, std::size_t* outside = nullptr) const {
    Problem result;
    for (std::size_t i = 0; i < exponents.size(); ++i) result.dimensions.push_back({"x", 1, 1'000, 1});
    result.fits = [this](const Point& point) { return spent(point) <= budget; };
    result.costs = [this, threads, outside](const std::vector<Point>& points) {
      std::vector<double> costs(points.size());
      for (const Point& point : points)
        if (outside != nullptr && spent(point) > budget) ++*outside;
      for_each_in_threads(points.size(), threads, [&](std::size_t i) { costs[i] = cost(points[i]); });
      return costs;
    };
    return result;
  }
};

const CobbDouglas kProduction{{0.5, 0.2, 0.2, 0.1}, {1, 2, 0.5, 4}, 800};

}  // namespace

TEST_CASE("a budget is split as Lagrange's multipliers split it") {
  const double best = kProduction.best_cost();
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const Found found = optimise(kProduction.problem(), seed, 600);
    INFO(seed);
    CHECK(found.cost >= best - 1e-9);
    CHECK(found.cost < best + 0.01);  // 1 % of the product; integers alone cost some of it
    CHECK(found.evaluated <= 600);
  }
}

TEST_CASE("a search is better than as many draws, and than an even split, and no point exceeds the budget") {
  const Point even = even_split(
      kProduction.problem(), [](const Point& p) { return kProduction.spent(p); }, 800);
  CHECK(kProduction.spent(even) <= 800);
  for (std::size_t i = 0; i < even.size(); ++i)  // (800 - 7.5) / 4 each above the lowest corner, in whole units
    CHECK(even[i] == std::floor(1 + (800 - 7.5) / 4 / kProduction.prices[i]));
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    std::size_t outside = 0;
    const Problem problem = kProduction.problem(1, &outside);
    const Found found = optimise(problem, seed, 200), drawn = draw(problem, seed, 200);
    CHECK(found.cost < drawn.cost);
    CHECK(found.cost < kProduction.cost(even));
    CHECK(drawn.evaluated == 200);
    CHECK(outside == 0);
  }
}

TEST_CASE("the same seed finds the same on one thread and on four") {
  for (const std::uint64_t seed : {1, 7}) {
    const Found one = optimise(kProduction.problem(1), seed, 150), four = optimise(kProduction.problem(4), seed, 150);
    CHECK(one.best == four.best);
    CHECK(one.cost == four.cost);
    CHECK(draw(kProduction.problem(1), seed, 50).best == draw(kProduction.problem(4), seed, 50).best);
  }
  CHECK(draw(kProduction.problem(), 1, 50).best != draw(kProduction.problem(), 2, 50).best);
}

TEST_CASE("values are on their steps and between their ends, also where nothing can be used") {
  Problem problem;
  problem.dimensions = {{"a", 0.5, 2.25, 0.25}, {"b", 3, 10, 3}};
  problem.fits = [](const Point& p) { return p[0] + p[1] <= 8; };
  std::size_t asked = 0;
  problem.costs = [&](const std::vector<Point>& points) {
    for (const Point& p : points) {
      ++asked;
      CHECK((std::fmod(p[0], 0.25) == 0 && p[0] >= 0.5 && p[0] <= 2.25));
      CHECK((p[1] == 3 || p[1] == 6 || p[1] == 9));
      CHECK(p[0] + p[1] <= 8);
    }
    return std::vector<double>(points.size(), std::numeric_limits<double>::infinity());
  };
  const Found found = optimise(problem, 3, 64);
  CHECK(std::isinf(found.cost));
  CHECK(found.best.size() == 2);
  CHECK(asked <= 8 * 3);  // none is asked for twice
  CHECK(fitting_point(problem, {0.999, 0.999}) == Point{1.75, 6});
}

TEST_CASE("one dimension with a hole in it is searched to its end") {
  Problem problem;
  problem.dimensions = {{"a", 0, 1'000, 1}};
  problem.fits = [](const Point&) { return true; };
  problem.costs = [](const std::vector<Point>& points) {
    std::vector<double> costs;
    for (const Point& p : points)
      costs.push_back(p[0] > 300 && p[0] < 400 ? std::numeric_limits<double>::infinity() : std::abs(p[0] - 617));
    return costs;
  };
  CHECK(optimise(problem, 1, 120).best == Point{617});
}

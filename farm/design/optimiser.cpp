#include "farm/design/optimiser.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::farm::design {
namespace {

using Shares = std::vector<double>;  // of the way from the lowest value to the highest, from 0 to 1, by dimension

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Differential evolution: the weight of differences and the share of dimensions that a trial takes from them.
constexpr double kWeight = 0.6, kCrossover = 0.9;
constexpr std::size_t kSmallestPopulation = 8, kLargestPopulation = 48, kPerDimension = 4, kGenerations = 6;
constexpr double kShareOfEvolution = 0.7;
constexpr double kFirstCompass = 0.125;  // first step of the compass, as a share of a dimension

/// Random numbers as hashes of their place in the sequence.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  double share() { return core::unit_interval(next()); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t next() { return core::decision_hash(seed_, 0, drawn_++); }
  std::uint64_t seed_, drawn_ = 0;
};

Point point_of(const Problem& problem, const Shares& shares, double scale) {
  Point point;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Dimension& dimension = problem.dimensions[i];
    const double values = static_cast<double>(dimension.steps() + 1);
    const auto index = static_cast<std::int64_t>(shares[i] * scale * values);
    point.push_back(dimension.value(std::min(index, dimension.steps())));
  }
  return point;
}

/// Returns shares in the middle of those that have this point.
Shares shares_of(const Problem& problem, const Point& point) {
  Shares shares;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Dimension& dimension = problem.dimensions[i];
    const double index = std::round((point[i] - dimension.low) / dimension.step);
    shares.push_back((index + 0.5) / static_cast<double>(dimension.steps() + 1));
  }
  return shares;
}

/// Asks for costs in batches, remembers them, and keeps the best.
class Evaluations {
 public:
  Evaluations(const Problem& problem, std::size_t limit) : problem_(problem), limit_(limit) { found_.cost = kInfinity; }

  std::size_t left() const { return limit_ - found_.evaluated; }
  bool knows(const Point& point) const { return known_.contains(point); }
  const Found& found() const { return found_; }

  /// Returns the costs of as many of the points as are left.
  std::vector<double> of(std::vector<Point> points) {
    points.resize(std::min(points.size(), left()));
    std::vector<Point> unknown;
    for (const Point& point : points) {
      MANYWORLDS_CHECK(problem_.fits(point), "a point that does not fit is evaluated");
      if (known_.emplace(point, kInfinity).second) unknown.push_back(point);
    }
    const std::vector<double> costs = unknown.empty() ? std::vector<double>{} : problem_.costs(unknown);
    for (std::size_t i = 0; i < unknown.size(); ++i) known_[unknown[i]] = costs.at(i);
    std::vector<double> result;
    for (const Point& point : points) {
      result.push_back(known_.at(point));
      if (found_.best.empty() || result.back() < found_.cost) found_.best = point, found_.cost = result.back();
    }
    found_.evaluated += points.size();
    return result;
  }

 private:
  const Problem& problem_;
  std::size_t limit_;
  std::map<Point, double> known_;
  Found found_;
};

struct Member {
  Shares shares;
  double cost = kInfinity;
};

std::vector<Point> points_of(const Problem& problem, const std::vector<Shares>& all) {
  std::vector<Point> points;
  for (const Shares& shares : all) points.push_back(fitting_point(problem, shares));
  return points;
}

Shares drawn_shares(const Problem& problem, Draws& draws) {
  Shares shares;
  for (std::size_t i = 0; i < problem.dimensions.size(); ++i) shares.push_back(draws.share());
  return shares;
}

/// Returns a trial for a member, "current to best/1/bin": drawn to the best and by the difference of two others.
Shares trial_of(const std::vector<Member>& population, std::size_t member, std::size_t best, Draws& draws) {
  std::size_t first = draws.below(population.size()), second = draws.below(population.size());
  while (first == member) first = draws.below(population.size());
  while (second == member || second == first) second = draws.below(population.size());
  Shares trial = population[member].shares;
  const std::size_t always = draws.below(trial.size());
  for (std::size_t i = 0; i < trial.size(); ++i) {
    const bool taken = draws.share() < kCrossover;
    if (!taken && i != always) continue;
    const double own = trial[i];
    trial[i] += kWeight * (population[best].shares[i] - own) +
                kWeight * (population[first].shares[i] - population[second].shares[i]);
    if (trial[i] < 0 || trial[i] > 1) trial[i] = (own + (trial[i] < 0 ? 0.0 : 1.0)) / 2;
  }
  return trial;
}

void evolve(const Problem& problem, Draws& draws, Evaluations& evaluations, std::size_t until_left) {
  const std::size_t size =
      std::clamp(std::min(kPerDimension * problem.dimensions.size(), (evaluations.left() - until_left) / kGenerations),
                 kSmallestPopulation, kLargestPopulation);
  std::vector<Member> population(size);
  std::vector<Shares> shares;
  for (std::size_t i = 0; i < size; ++i) shares.push_back(drawn_shares(problem, draws));
  std::vector<Point> points = points_of(problem, shares);
  for (std::size_t i = 0; i < size; ++i) population[i].shares = shares_of(problem, points[i]);
  std::vector<double> costs = evaluations.of(points);
  for (std::size_t i = 0; i < costs.size(); ++i) population[i].cost = costs[i];
  while (evaluations.left() > until_left) {
    const auto cheaper = [](const Member& a, const Member& b) { return a.cost < b.cost; };
    const auto best =
        static_cast<std::size_t>(std::min_element(population.begin(), population.end(), cheaper) - population.begin());
    std::vector<Shares> trials;
    for (std::size_t i = 0; i < size && trials.size() < evaluations.left() - until_left; ++i)
      trials.push_back(trial_of(population, i, best, draws));
    points = points_of(problem, trials);
    costs = evaluations.of(points);
    for (std::size_t i = 0; i < costs.size(); ++i)
      if (costs[i] <= population[i].cost) population[i] = {shares_of(problem, points[i]), costs[i]};
  }
}

/// Returns the points around `point`: each dimension some steps up or down, drawn to the lowest corner where that
/// exceeds a limit; for single steps also each pair of one up and another down.
std::vector<Point> compass(const Problem& problem, const Point& point, double share) {
  bool single = true;
  const auto moved = [&](const Point& from, std::size_t i, int direction) {
    const Dimension& dimension = problem.dimensions[i];
    const auto strides = static_cast<std::int64_t>(share * static_cast<double>(dimension.steps()));
    single &= strides <= 1;
    const auto index = static_cast<std::int64_t>(std::llround((from[i] - dimension.low) / dimension.step));
    Point to = from;
    to[i] = dimension.value(
        std::clamp<std::int64_t>(index + direction * std::max<std::int64_t>(1, strides), 0, dimension.steps()));
    return to;
  };
  const auto fitting = [&](const Point& to) { return fitting_point(problem, shares_of(problem, to)); };
  std::vector<Point> points;
  for (std::size_t i = 0; i < point.size(); ++i)
    for (const int direction : {1, -1}) points.push_back(fitting(moved(point, i, direction)));
  for (std::size_t i = 0; single && i < point.size(); ++i)
    for (std::size_t j = 0; j < point.size(); ++j)
      if (i != j) points.push_back(fitting(moved(moved(point, i, 1), j, -1)));
  return points;
}

bool is_single(const Problem& problem, double share) {
  return std::all_of(problem.dimensions.begin(), problem.dimensions.end(),
                     [&](const Dimension& d) { return share * static_cast<double>(d.steps()) < 2; });
}

/// Moves from the best point to better ones around it, by steps that are halved where there are none.
void refine(const Problem& problem, Evaluations& evaluations) {
  double share = kFirstCompass;
  while (evaluations.left() > 0) {
    const double before = evaluations.found().cost;
    std::vector<Point> points;
    for (Point& point : compass(problem, evaluations.found().best, share))
      if (!evaluations.knows(point) && std::find(points.begin(), points.end(), point) == points.end())
        points.push_back(std::move(point));
    evaluations.of(points);
    if (evaluations.found().cost < before) continue;
    if (is_single(problem, share)) return;
    share /= 2;
  }
}

}  // namespace

std::int64_t Dimension::steps() const {
  constexpr double kRounding = 1e-9;
  return static_cast<std::int64_t>((high - low) / step + kRounding);
}

double Dimension::value(std::int64_t index) const {
  return std::min(high, low + static_cast<double>(index) * step);
}

Point lowest_corner(const Problem& problem) {
  return point_of(problem, Shares(problem.dimensions.size(), 0), 0);
}

Point fitting_point(const Problem& problem, const std::vector<double>& shares) {
  Point point = point_of(problem, shares, 1);
  if (problem.fits(point)) return point;
  constexpr int kHalvings = 24;
  double fits = 0, exceeds = 1;
  Point best = lowest_corner(problem);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (fits + exceeds) / 2;
    point = point_of(problem, shares, middle);
    if (problem.fits(point))
      fits = middle, best = std::move(point);
    else
      exceeds = middle;
  }
  return best;
}

Found optimise(const Problem& problem, std::uint64_t seed, std::size_t evaluations) {
  Draws draws(core::splitmix64(seed));
  Evaluations counted(problem, evaluations);
  const auto around = static_cast<std::size_t>(static_cast<double>(evaluations) * (1 - kShareOfEvolution));
  evolve(problem, draws, counted, around);
  refine(problem, counted);
  if (counted.left() > 0) evolve(problem, draws, counted, 0);
  return counted.found();
}

Found draw(const Problem& problem, std::uint64_t seed, std::size_t evaluations) {
  Draws draws(core::splitmix64(seed ^ core::kSplitMixIncrement));
  Evaluations counted(problem, evaluations);
  std::vector<Shares> shares;
  for (std::size_t i = 0; i < evaluations; ++i) shares.push_back(drawn_shares(problem, draws));
  counted.of(points_of(problem, shares));
  return counted.found();
}

Point even_split(const Problem& problem, const std::function<double(const Point&)>& use, double limit) {
  const Point lowest = lowest_corner(problem);
  const double base = use(lowest);
  const double part = std::max(0.0, limit - base) / static_cast<double>(problem.dimensions.size());
  Shares shares;
  for (std::size_t i = 0; i < problem.dimensions.size(); ++i) {
    const Dimension& dimension = problem.dimensions[i];
    Point point = lowest;
    std::int64_t low = 0, high = dimension.steps();
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      point[i] = dimension.value(middle);
      if (use(point) - base <= part)
        low = middle;
      else
        high = middle - 1;
    }
    shares.push_back((static_cast<double>(low) + 0.5) / static_cast<double>(dimension.steps() + 1));
  }
  return fitting_point(problem, shares);
}

}  // namespace manyworlds::farm::design

#include "farm/search/space_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <queue>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/step/run/simulation_context.hpp"
#include "farm/plan/plan.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/sweep/minimised_objective.hpp"
#include "farm/system/slices.hpp"

namespace manyworlds::farm {
namespace {

using core::step::Configuration;
using core::step::StepResult;
using experiments::Experiment;
using experiments::OpenKeys;
using experiments::Space;
using Point = Space::Point;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMaxRoots = 5e6;  // points with all open keys left out
constexpr std::size_t kRootsAtOnce = 4096;
constexpr std::size_t kNodesAtOnce = 64;  // opened together, whatever the number of threads
constexpr double kRounding = 1e-9;        // of objectives, which are computed in floating point

/// Returns whether any point that differs from the configuration in open keys may fit into memory: states that are
/// sharded over all replicas, and all layers recomputed, without the buffers that either needs. What is recomputed of
/// the configuration is neutral.
bool may_fit(Configuration configuration, const OpenKeys& open) {
  core::workload::Strategy& strategy = configuration.strategy;
  const auto recomputes = [&] {
    return strategy.recompute != core::workload::Recompute::none || strategy.recompute_modules != 0;
  };
  if (open.zero_stage) {
    strategy.zero = strategy.replicas() > 1 ? 3 : 0;
    strategy.stack.reduce_in_16bit = false;
  }
  if (open.recompute_kind) strategy.recompute = core::workload::Recompute::full, strategy.recompute_modules = 0;
  if (open.recompute_kind || open.recompute_layers) strategy.recompute_layers = 0;
  if (open.recompute_kind || open.recompute_stages) strategy.recompute_stages = 0;
  const bool recomputes_more = recomputes() && (open.recompute_kind || open.recompute_layers || open.recompute_stages);
  const auto fits = [&] {
    const core::step::MemoryRequirement memory = memory_requirement_of(configuration);
    std::int64_t least = memory.required.total();
    if (open.zero_stage) least -= memory.required.gathered;
    if (recomputes_more) least -= memory.required.recomputed;
    if (open.zero_stage || recomputes_more) least -= memory.required.rounding;
    return least <= memory.memory_bytes();
  };
  if (fits()) return true;
  if (open.zero_stage || !open.gradient_bits) return false;
  strategy.stack.reduce_in_16bit = !strategy.stack.reduce_in_16bit;
  return fits();
}

/// Computes bounds of points, for one thread.
class BoundingWorker {
 public:
  explicit BoundingWorker(const Space& space) : space_(space), viewer_(space) {
    rows_.name = space.sweep().name;
    rows_.objective = space.sweep().objective;
  }

  /// Returns the best objective, minimised, that anything that the points stand for can have; infinity where nothing
  /// is valid and fits.
  std::vector<double> bounds_of(const std::vector<Point>& points, std::size_t begin, std::size_t end) {
    std::vector<std::size_t> fitting;
    std::vector<StepResult> steps;
    rows_.experiments.clear();
    for (std::size_t i = begin; i < end; ++i) {
      std::optional<Experiment> experiment = viewer_.experiment_of(points[i]);
      if (!experiment) continue;
      const Configuration configuration = viewer_.configuration_of(*experiment);
      const OpenKeys open = space_.open_keys_of(points[i]);
      if (!may_fit(configuration, open)) continue;
      StepResult at_best;
      at_best.step_ps =
          lower_bounds_.of(configuration, open.replicas ? core::step::Replicas::open : core::step::Replicas::counted);
      steps.push_back(std::move(at_best));
      add_row(std::move(*experiment));
      fitting.push_back(i - begin);
    }
    std::vector<double> result(end - begin, kInfinity);
    const std::vector<double> values = values_of(steps);
    for (std::size_t i = 0; i < fitting.size(); ++i) result[fitting[i]] = values[i];
    return result;
  }

  /// Returns the minimised objective of a point's analytic step.
  double analytic_value_of(const Point& point) {
    Experiment experiment = viewer_.experiment_of(point).value();
    const StepResult step = analytic_step(viewer_.configuration_of(experiment), context_, known_);
    rows_.experiments.clear();
    add_row(std::move(experiment));
    return values_of({step}).front();
  }

 private:
  void add_row(Experiment experiment) {
    experiment.id = static_cast<std::uint32_t>(rows_.experiments.size());
    rows_.experiments.push_back(std::move(experiment));
  }

  std::vector<double> values_of(const std::vector<StepResult>& steps) const {
    Plan plan;
    std::vector<Outcome> outcomes;
    std::vector<std::uint32_t> ids;
    for (std::uint32_t id = 0; id < steps.size(); ++id) {
      ids.push_back(id);
      plan.experiments.emplace_back().step = id;
      plan.steps.emplace_back().experiment = id;
      outcomes.push_back({Status::ok, core::step::encode(steps[id]), 0});
    }
    if (ids.empty()) return {};
    const io::Results rows = make_rows(
        rows_, plan, [&](std::uint32_t task) -> const Outcome& { return outcomes[task]; }, uncertainty_, ids);
    return minimised_objective(rows, rows_.objective);
  }

  const Space& space_;
  Space::Viewer viewer_;
  experiments::Sweep rows_;
  experiments::Uncertainty uncertainty_ = experiments::Uncertainty::compiled();
  core::step::LowerBounds lower_bounds_;
  core::step::SimulationContext context_;
  core::step::IsolatedResults known_;
};

/// Workers that threads take turns with, so that each keeps its caches.
class WorkerPool {
 public:
  explicit WorkerPool(const Space& space) : space_(space) {}

  /// Calls work(worker) with one that nobody else has.
  template <class Work>
  void with_worker(const Work& work) {
    std::unique_ptr<BoundingWorker> worker = take();
    work(*worker);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }

 private:
  std::unique_ptr<BoundingWorker> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<BoundingWorker>(space_);
    std::unique_ptr<BoundingWorker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }

  const Space& space_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<BoundingWorker>> idle_;
};

/// A point, of which factors may be open, and the best objective of what it stands for.
struct Node {
  double bound = 0;
  Point point;
  bool operator>(const Node& other) const { return std::tie(bound, point) > std::tie(other.bound, other.point); }
};
using BestFirst = std::priority_queue<Node, std::vector<Node>, std::greater<>>;

class Listing {
 public:
  Listing(const Space& space, const ListingLimits& limits, ListingProgress& progress)
      : space_(space), limits_(limits), progress_(progress), pool_(space) {
    for (std::size_t factor = 0; factor < space.factors(); ++factor)
      (space.can_stay_open(factor) ? open_factors_ : chosen_factors_).push_back(factor);
    // What is recomputed decides most of whether a layout fits. Where the network alone is open, all that a node stands
    // for has its bound.
    std::stable_sort(open_factors_.begin(), open_factors_.end(),
                     [&](std::size_t a, std::size_t b) { return rank_of(a) < rank_of(b); });
  }

  void run() {
    add_roots();
    while (!is_over()) {
      if (is_leaf_next())
        list_next();
      else
        open_nodes();
    }
  }

  std::vector<Point> take_points() { return std::move(listed_); }
  /// Returns the best bound of all points that are not listed; infinity if there are none.
  double bound_of_others() const { return std::min(next_of(nodes_), next_of(leaves_)); }

 private:
  int rank_of(std::size_t factor) const {
    Point point(space_.factors(), 0);
    point[factor] = Space::kOpen;
    const OpenKeys open = space_.open_keys_of(point);
    if (open.recompute) return open.recompute_kind ? 0 : 1;
    return open.replicas ? 2 : 3;
  }

  static double next_of(const BestFirst& nodes) { return nodes.empty() ? kInfinity : nodes.top().bound; }

  bool is_over() const {
    const double next = bound_of_others();
    return next == kInfinity || next > cutoff_ || listed_.size() >= limits_.points;
  }
  bool is_leaf_next() const { return next_of(leaves_) <= next_of(nodes_); }

  /// Returns the first factor that is open in the order of opening; nullopt for a single point.
  std::optional<std::size_t> next_factor(const Point& point) const {
    for (const std::size_t factor : open_factors_)
      if (point[factor] == Space::kOpen) return factor;
    return std::nullopt;
  }

  void add_roots() {
    double roots = 1;
    for (const std::size_t factor : chosen_factors_) roots *= static_cast<double>(space_.size_of(factor));
    if (roots > kMaxRoots)
      throw core::InputError(
          fmt::format("the axes make {:.3g} points even with the keys left out that bounds may leave open; at most "
                      "{:.0f} can be looked at: give fewer values, or draw from it with 'sample: {{experiments: N}}'",
                      roots, kMaxRoots),
          space_.sweep().name);
    Point point(space_.factors(), 0);
    for (const std::size_t factor : open_factors_) point[factor] = Space::kOpen;
    std::vector<Point> some;
    for (double i = 0; i < roots; ++i) {
      some.push_back(point);
      if (some.size() == kRootsAtOnce) add(std::exchange(some, {}), {});
      for (std::size_t f = chosen_factors_.size(); f-- > 0;) {
        std::uint16_t& value = point[chosen_factors_[f]];
        if (++value < space_.size_of(chosen_factors_[f])) break;
        value = 0;
      }
    }
    add(some, {});
  }

  /// Replaces the best nodes by what they stand for, one factor further.
  void open_nodes() {
    std::vector<Point> children;
    std::vector<double> parents;
    for (std::size_t i = 0; i < kNodesAtOnce && !nodes_.empty() && nodes_.top().bound <= cutoff_; ++i) {
      const Node node = nodes_.top();
      nodes_.pop();
      const std::size_t factor = next_factor(node.point).value();
      for (std::size_t value = 0; value < space_.size_of(factor); ++value) {
        children.push_back(node.point);
        children.back()[factor] = static_cast<std::uint16_t>(value);
        parents.push_back(node.bound);
      }
    }
    add(children, parents);
  }

  /// Adds points by their bounds, which `parents`, if it is not empty, has the bounds of what stood for them.
  void add(const std::vector<Point>& points, const std::vector<double>& parents) {
    std::vector<double> bounds(points.size());
    for_each_slice(points.size(), [&](std::size_t begin, std::size_t end) {
      pool_.with_worker([&](BoundingWorker& worker) {
        const std::vector<double> some = worker.bounds_of(points, begin, end);
        std::copy(some.begin(), some.end(), bounds.begin() + static_cast<std::ptrdiff_t>(begin));
      });
    });
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (bounds[i] == kInfinity) continue;
      if (!parents.empty()) {
        MANYWORLDS_CHECK(bounds[i] >= better_by(parents[i], kRounding), "a part of a space is better than all of it");
        bounds[i] = std::max(bounds[i], parents[i]);
      }
      (next_factor(points[i]) ? nodes_ : leaves_).push({bounds[i], points[i]});
    }
    progress_.looked_at += points.size();
  }

  void list_next() {
    listed_.push_back(leaves_.top().point);
    leaves_.pop();
    progress_.listed = listed_.size();
    if (listed_.size() == limits_.pilots) set_cutoff();
  }

  void set_cutoff() {
    std::vector<double> values(listed_.size());
    for_each_slice(
        listed_.size(),
        [&](std::size_t begin, std::size_t end) {
          pool_.with_worker([&](BoundingWorker& worker) {
            for (std::size_t i = begin; i < end; ++i) values[i] = worker.analytic_value_of(listed_[i]);
          });
        },
        1);
    const double best = *std::min_element(values.begin(), values.end());
    cutoff_ = better_by(best, space_.sweep().gap - limits_.margin);
  }

  const Space& space_;
  const ListingLimits limits_;
  ListingProgress& progress_;
  WorkerPool pool_;
  std::vector<std::size_t> chosen_factors_, open_factors_;  // the latter in the order of opening
  BestFirst nodes_, leaves_;                                // of which some factor is open, and of which none is
  std::vector<Point> listed_;
  double cutoff_ = kInfinity;  // nothing with a worse bound is listed
};

}  // namespace

experiments::Sweep list_best(Space space, const ListingLimits& limits, ListingProgress* progress) {
  ListingProgress own;
  ListingProgress& told = progress != nullptr ? *progress : own;
  experiments::ListedSpace about{space.points(), 0, std::nullopt};
  std::vector<Point> points;
  space.prepare();
  {
    Listing listing(space, limits, told);
    listing.run();
    about.looked_at = static_cast<double>(told.looked_at);
    const double bound = listing.bound_of_others();
    if (bound != kInfinity) about.bound = minimised(bound, space.sweep().objective);
    points = listing.take_points();
  }
  if (points.empty())
    throw core::InputError(fmt::format("none of its {:.3g} points is valid and fits into memory", about.points),
                           space.sweep().name);
  experiments::Sweep result = std::move(space).list(std::move(points));
  result.space = about;
  return result;
}

}  // namespace manyworlds::farm

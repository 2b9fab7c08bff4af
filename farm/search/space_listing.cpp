#include "farm/search/space_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "farm/best/minimised_objective.hpp"
#include "farm/search/bound_workers.hpp"
#include "farm/system/slices.hpp"

namespace manyworlds::farm {
namespace {

using experiments::OpenKeys;
using experiments::Space;
using Point = Space::Point;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMaxRoots = 5e6;  // points with all open keys left out
constexpr std::size_t kRootsAtOnce = 4096;
constexpr std::size_t kNodesAtOnce = 64;  // opened together, whatever the number of threads
constexpr double kRounding = 1e-9;        // of objectives, which are computed in floating point

/// A point, of which factors may be open, and the best objective of what it stands for.
struct Node {
  double bound = 0;
  Point point;
  bool operator>(const Node& other) const { return std::tie(bound, point) > std::tie(other.bound, other.point); }
};
using BestFirst = std::priority_queue<Node, std::vector<Node>, std::greater<>>;

class Listing {
 public:
  Listing(Space& space, const ListingLimits& limits, ListingProgress& progress)
      : space_(space), limits_(limits), progress_(progress), pool_(space) {
    const bool recompute_by_stages = has_any_recompute();
    for (std::size_t factor = 0; factor < space.factors(); ++factor) {
      // What stages recompute follows from memory only where it is known how.
      const bool may_stay_open =
          space.can_stay_open(factor) && !(recompute_by_stages && open_keys_of(factor).recompute);
      (space.is_any(factor) ? any_factors_ : may_stay_open ? open_factors_ : chosen_factors_).push_back(factor);
    }
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

  /// Returns what excludes the first of all points, for people; empty if it is valid.
  std::string why_first_is_excluded() {
    std::string why;
    pool_.with_worker([&](PointBounds& worker) { why = worker.why_excluded(first_root()); });
    return why;
  }
  std::vector<Point> take_points() { return std::move(listed_); }
  double points() const { return points_; }
  /// Returns the best bound of all points that are not listed; infinity if there are none.
  double bound_of_others() const { return std::min(next_bound(), other_stages_); }

 private:
  OpenKeys open_keys_of(std::size_t factor) const {
    Point point(space_.factors(), 0);
    point[factor] = Space::kOpen;
    return space_.open_keys_of(point);
  }

  bool has_any_recompute() const {
    for (std::size_t factor = 0; factor < space_.factors(); ++factor)
      if (space_.is_any(factor) && open_keys_of(factor).stage_recompute) return true;
    return false;
  }

  int rank_of(std::size_t factor) const {
    const OpenKeys open = open_keys_of(factor);
    if (open.recompute) return open.recompute_kind ? 0 : 1;
    return open.replicas ? 2 : 3;
  }

  static double next_of(const BestFirst& nodes) { return nodes.empty() ? kInfinity : nodes.top().bound; }

  double next_bound() const { return std::min(next_of(nodes_), next_of(leaves_)); }
  bool is_over() const {
    const double next = next_bound();
    return next == kInfinity || next > cutoff_ || listed_.size() >= limits_.points;
  }
  bool is_leaf_next() const { return next_of(leaves_) <= next_of(nodes_); }

  /// Returns the first factor that is open in the order of opening; nullopt for a single point.
  std::optional<std::size_t> next_factor(const Point& point) const {
    for (const std::size_t factor : open_factors_)
      if (point[factor] == Space::kOpen) return factor;
    return std::nullopt;
  }

  Point first_root() const {
    Point point(space_.factors(), 0);
    for (const auto& factors : {open_factors_, any_factors_})
      for (const std::size_t factor : factors) point[factor] = Space::kOpen;
    return point;
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
    Point point = first_root();
    std::vector<Point> some;
    for (double i = 0; i < roots; ++i) {
      some.push_back(point);
      if (some.size() == kRootsAtOnce) add(std::exchange(some, {}), {});
      for (std::size_t f = chosen_factors_.size(); f-- > 0;) {
        std::uint32_t& value = point[chosen_factors_[f]];
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
        children.back()[factor] = static_cast<std::uint32_t>(value);
        parents.push_back(node.bound);
      }
    }
    add(children, parents);
  }

  /// Adds points by their bounds, which `parents`, if it is not empty, has the bounds of what stood for them.
  void add(const std::vector<Point>& points, const std::vector<double>& parents) {
    std::vector<PointBound> bounds(points.size());
    for_each_slice(points.size(), [&](std::size_t begin, std::size_t end) {
      pool_.with_worker([&](PointBounds& worker) {
        const std::vector<PointBound> some = worker.of(points, begin, end);
        std::copy(some.begin(), some.end(), bounds.begin() + static_cast<std::ptrdiff_t>(begin));
        progress_.looked_at += end - begin;
      });
    });
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (parents.empty()) points_ += bounds[i].points;
      double bound = bounds[i].objective;
      if (bound == kInfinity) continue;
      if (!parents.empty()) {
        MANYWORLDS_CHECK(bound >= better_by(parents[i], kRounding), "a part of a space is better than all of it");
        bound = std::max(bound, parents[i]);
      }
      (next_factor(points[i]) ? nodes_ : leaves_).push({bound, points[i]});
    }
  }

  void list_next() {
    Node leaf = leaves_.top();
    leaves_.pop();
    if (!any_factors_.empty()) choose_stages(leaf);
    listed_.push_back(std::move(leaf.point));
    bounds_of_listed_.push_back(leaf.bound);
    progress_.listed = listed_.size();
    if (listed_.size() == limits_.pilots) set_cutoff();
  }

  /// Gives a leaf the layers of its stages that are best by its bound. Others are no better than this bound.
  void choose_stages(Node& leaf) {
    core::step::BestStages best;
    pool_.with_worker([&](PointBounds& worker) { best = worker.best_stages_of(leaf.point); });
    other_stages_ = std::min(other_stages_, leaf.bound);
    for (const std::size_t factor : any_factors_) {
      const bool layers = open_keys_of(factor).stage_layers;
      space_.choose(leaf.point, factor,
                    experiments::list_text(layers ? best.stage_layers : best.stage_recompute_layers));
    }
  }

  void set_cutoff() {
    std::vector<double> values(listed_.size());
    for_each_slice(
        listed_.size(),
        [&](std::size_t begin, std::size_t end) {
          pool_.with_worker([&](PointBounds& worker) {
            for (std::size_t i = begin; i < end; ++i)
              values[i] = std::max(bounds_of_listed_[i], worker.analytic_value_of(listed_[i]));
          });
        },
        1);
    const double best = *std::min_element(values.begin(), values.end());
    cutoff_ = better_by(best, space_.sweep().gap - limits_.margin);
  }

  Space& space_;
  const ListingLimits limits_;
  ListingProgress& progress_;
  BoundWorkers pool_;
  std::vector<std::size_t> chosen_factors_, open_factors_;  // the latter in the order of opening
  std::vector<std::size_t> any_factors_;                    // whose values are chosen when a point is listed
  BestFirst nodes_, leaves_;                                // of which some factor is open, and of which none is
  std::vector<Point> listed_;
  std::vector<double> bounds_of_listed_;
  double points_ = 0;                // of all roots
  double other_stages_ = kInfinity;  // the best bound of points that differ from listed ones in their stages alone
  double cutoff_ = kInfinity;        // nothing with a worse bound is listed
};

}  // namespace

experiments::Sweep list_best(Space space, const ListingLimits& limits, ListingProgress* progress,
                             std::vector<Point>* listed) {
  MANYWORLDS_CHECK(space.sweep().front.empty(), "points are listed by one objective, not for a front");
  ListingProgress own;
  ListingProgress& told = progress != nullptr ? *progress : own;
  experiments::ListedSpace about;
  std::vector<Point> points;
  std::string why;  // the first point is none
  space.prepare();
  {
    Listing listing(space, limits, told);
    listing.run();
    about.points = listing.points();
    about.looked_at = static_cast<double>(told.looked_at);
    const double bound = listing.bound_of_others();
    if (bound != kInfinity) about.bound = minimised(bound, space.sweep().objective);
    points = listing.take_points();
    if (points.empty()) why = listing.why_first_is_excluded();
  }
  if (points.empty())
    throw core::InputError(fmt::format("none of its {:.3g} points is valid and fits into memory{}", about.points,
                                       why.empty() ? "" : "; the first violates " + why),
                           space.sweep().name);
  if (listed != nullptr) {
    *listed = points;
    std::sort(listed->begin(), listed->end());  // as the sweep has them
  }
  experiments::Sweep result = std::move(space).list(std::move(points));
  result.space = about;
  MANYWORLDS_CHECK(listed == nullptr || listed->size() == result.experiments.size(), "{} points are {} experiments",
                   listed->size(), result.experiments.size());
  return result;
}

}  // namespace manyworlds::farm

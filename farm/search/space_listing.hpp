// Branch and bound over a space that is too large to be listed: what is left of it is a sweep of the points with the
// best lower bounds, and one bound of all others.
//
// A node of the tree is a point of which some factors are open, and has the sums over a micro-batch of everything that
// it stands for as its bound (core/step/estimate/lower_bound.hpp). The node with the best bound is opened first, one
// factor at a time, so that points appear in the order of their bounds, whatever computes these.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "experiments/sweep/space.hpp"

namespace manyworlds::farm {

struct ListingLimits {
  std::size_t points = 100'000;  // listed, at most
  std::size_t pilots = 64;       // first points whose analytic steps tell how good the best are at least
  /// Points are listed whose bounds are worse than the best of these by up to this share, since packets take longer.
  double margin = 0.1;
};

/// How far a listing is, for another thread that shows it.
struct ListingProgress {
  std::atomic<std::size_t> looked_at = 0, listed = 0;  // bounds, and points
};

/// Returns the sweep of the points with the best bounds (Sweep::space tells about the others), which asks for its best
/// as the document does. Uses one thread per available CPU. Throws InputError for a
/// document that has a sample, or whose axes make too many points even with all open keys left out, and, naming the
/// experiment, for a point that cannot be simulated at all. `points`, if it is not null, receives the points of its
/// experiments; the values of factors that may be any are in the experiments' settings alone.
experiments::Sweep list_best(experiments::Space space, const ListingLimits& limits = {},
                             ListingProgress* progress = nullptr,
                             std::vector<experiments::Space::Point>* points = nullptr);

}  // namespace manyworlds::farm

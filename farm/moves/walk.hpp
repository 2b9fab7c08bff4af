// A walk through a space by threshold accepting (Dueck and Scheuer, Journal of Computational Physics 90, 1990): from
// the current point a round of neighbours is drawn, and the best of these is the next one if it is not worse by more
// than a threshold, which falls to nothing. No point is met twice; where no neighbour is left, and after some rounds
// without a better best, the walk goes back to the best point that has any. Simulated annealing accepts by chance what
// threshold accepting accepts by rule: so a neighbour whose lower bound is behind the threshold need not be simulated,
// and a walk has no logarithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "experiments/sweep/space.hpp"
#include "farm/moves/neighbourhood.hpp"
#include "farm/search/bound_workers.hpp"

namespace manyworlds::farm {

struct WalkLimits {
  std::uint64_t moves = 512;  // neighbours drawn, whether or not they are simulated
  std::uint64_t seed = 1;
  std::size_t at_once = 16;  // neighbours of a round, whatever the number of ranks
  double threshold = 0.02;   // share by which the first rounds may be worse; it falls with the moves that are left
  std::size_t patience = 4;  // rounds without a better best after which the walk goes back
  std::uint64_t round_moves = 128;  // drawn for one round at most
};

/// What became of the neighbours that were drawn.
struct MoveCounts {
  std::uint64_t drawn = 0;
  std::uint64_t excluded = 0;         // by a rule or by `where`
  std::uint64_t too_large = 0;        // do not fit into memory
  std::uint64_t met = 0;              // before, by the walk or by what it began with
  std::uint64_t behind_sums = 0;      // the sums over a micro-batch are behind the threshold
  std::uint64_t behind_analytic = 0;  // the analytic step is
  std::uint64_t simulated = 0;
  std::uint64_t failed = 0;    // of these, without a result
  std::uint64_t accepted = 0;  // of these, where the walk went on
  std::uint64_t returns = 0;   // to the best point that has neighbours left
};

class Walk {
 public:
  /// Positions that have been simulated, by their minimised objectives.
  using Simulated = std::map<Position, double>;

  /// Begins at the best of what was simulated in a prepared space, which outlives the walk; there is at least one.
  Walk(experiments::Space& space, const Simulated& simulated, const WalkLimits& limits);

  /// Whether no move is left, or no neighbour.
  bool over() const { return counts_.drawn >= limits_.moves || stuck_; }
  /// Draws the neighbours that are to be simulated, which may be none, in the order of drawing.
  std::vector<Position> draw();
  /// Goes on with the minimised objectives of these; infinity for one without a result.
  void settle(const std::vector<Position>& drawn, const std::vector<double>& values);

  const Position& best() const { return best_.second; }
  double best_value() const { return best_.first; }
  const MoveCounts& counts() const { return counts_; }
  /// Returns the share by which the point that the round leads to may be worse than the current one.
  double threshold() const { return threshold_; }
  /// Returns the points at positions, of which `space` gets the values that it does not have.
  std::vector<experiments::Space::Point> points_of(const std::vector<Position>& positions, experiments::Space& space);

 private:
  using Valued = std::pair<double, Position>;

  double falling_threshold() const;
  std::vector<Position> draw_new(std::uint64_t moves);
  std::vector<Position> within_limit(std::vector<Position> positions);
  bool is_behind(double bound) const;
  void go_back();

  experiments::Space& space_;
  const WalkLimits limits_;
  Neighbourhood neighbourhood_;
  BoundWorkers workers_;
  Draws draws_;
  std::set<Valued> open_;  // simulated, and not known to have no neighbour left
  Valued current_, best_;
  /// A lower bound of a point that was not simulated.
  struct Bound {
    double value = 0;
    bool by_sums = false;  // over a micro-batch; otherwise it is the analytic step
  };

  void count_behind(const Bound& bound) { ++(bound.by_sums ? counts_.behind_sums : counts_.behind_analytic); }

  std::set<Position> met_;            // simulated, or never to be
  std::map<Position, Bound> behind_;  // behind the limit of some round
  MoveCounts counts_;
  double threshold_ = 0;          // of this round
  double limit_ = 0;              // what a point of this round may be to be accepted
  std::size_t rounds_since_ = 0;  // the last better best
  bool stuck_ = false;
};

}  // namespace manyworlds::farm

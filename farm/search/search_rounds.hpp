// When enough of a ranking by bounds was simulated: the analytic rate of a layout is one that its packets cannot beat,
// so that a layout is out once another's packets are faster than that.
#pragma once

#include <cstddef>
#include <vector>

namespace manyworlds::farm {

/// What simulating the first layouts of a ranking says of the rest.
struct Settlement {
  std::size_t simulated = 0;
  std::size_t open = 0;  // layouts that were not simulated and may be faster than the fastest that was
  double at_most = 0;    // how much faster such a one may be: 0.02 is 2 %
  bool settled() const { return open == 0; }
};

/// `bounds`: rates that layouts cannot exceed, highest first; `simulated`: rates of the first of them, NaN where one
/// did not run.
Settlement settlement(const std::vector<double>& bounds, const std::vector<double>& simulated);

/// How many layouts of the ranking to simulate after `so_far`, at most `most`: those still open, and not more than
/// twice as many as before, since each round closes some. The first round takes kFirstRound.
inline constexpr std::size_t kFirstRound = 8;
std::size_t next_round(const Settlement& so_far, std::size_t layouts, std::size_t most);

}  // namespace manyworlds::farm

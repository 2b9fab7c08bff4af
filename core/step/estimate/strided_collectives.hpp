// The collectives of closed forms, which know no graph: among GPUs at equal distances, which fill one node after the
// other, and joined by kernels in the order of the program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/step/layout/configuration.hpp"
#include "core/workload/layer/operators.hpp"

namespace manyworlds::core::step {

/// The paths between two GPUs of one node and between two nodes, as used by a ring.
struct Links {
  collective::Path intra_node, inter_node;
  bool node_mesh = false;  // GPUs of a node have links of their own to one another
};

/// What the library chooses for a collective, and its members.
struct StridedCollective {
  collective::Shape shape;
  collective::Communicator communicator;
};

/// Returns the collective of `members` GPUs at distance `stride`.
StridedCollective strided_collective(const Configuration& configuration, const Links& links, std::int64_t members,
                                     std::int64_t stride, workload::Role role, collective::Kind kind,
                                     std::int64_t bytes, const collective::Split& split);

/// Returns `now`, or when the last of the collectives that the join waits for has ended, and drops these from
/// `started`, which has the ends of those not yet joined.
template <class Instant>
Instant after_join(Instant now, const workload::Join& join, std::vector<std::pair<workload::Role, Instant>>& started) {
  const auto last = started.end() - std::min<std::int64_t>(join.except_last, std::ssize(started));
  const auto end = std::remove_if(started.begin(), last, [&](const auto& one) {
    if (join.role && *join.role != one.first) return false;
    now = std::max(now, one.second);
    return true;
  });
  started.erase(end, last);
  return now;
}

}  // namespace manyworlds::core::step

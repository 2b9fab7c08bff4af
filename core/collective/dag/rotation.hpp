// Rotational symmetry of collectives: rings and pairwise exchanges over equal nodes are invariant under certain
// rotations of their members. Members that a rotation maps onto each other are equivalent if their entry times are
// equal, so one of them can represent all.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// Returns the rotation period: the least k > 0 that divides dag.members and for which mapping every member i to i + k
/// (modulo dag.members), with its connections and transfers, leaves the DAG unchanged; dag.members if no smaller k
/// does. Connections on which transfers take different times must have different values in `paths` (by pair). DAGs with
/// switches or join nodes are not analysed: the result is dag.members.
std::uint32_t rotation_period(const Dag& dag, const std::vector<std::uint32_t>& paths);

/// A DAG in which members i, i + rotation, i + 2 rotation, … are merged into one, for `rotation` a multiple of
/// rotation_period(). If the merged members enter at the same times, their exits in the full DAG are those of the
/// merged member.
struct QuotientDag {
  Dag dag;                                    // with `rotation` members
  std::vector<std::uint32_t> pairs;           // by pair of `dag`: the pair of the full DAG with the same source
  std::vector<std::uint32_t> representative;  // by pair of the full DAG: its representative in `dag`
};
/// Returns the quotient. Throws InternalError if `rotation` does not leave the DAG unchanged.
QuotientDag quotient_dag(const Dag& dag, std::uint32_t rotation);

}  // namespace manyworlds::core::collective

// Collectives that a rotation of their members leaves as they are: rings and pairwise exchanges over nodes that are
// alike. Members that a rotation moves onto each other go alike where they enter alike, so one of them stands for all.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// The least k > 0, a divisor of dag.members, so that member i + k for member i (around the end), with its connections
/// and transfers, gives the same DAG; dag.members if no less does. `paths` (by pair) tells connections apart that
/// transfers take differently long on. DAGs with switches or joints are not looked at: dag.members.
std::uint32_t least_turn(const Dag& dag, const std::vector<std::uint32_t>& paths);

/// A DAG in which members i, i + turn, i + 2 turn ... are one, for `turn` a multiple of least_turn(): what happens to
/// it when they enter together happens to each of them in the whole one.
struct Turned {
  Dag dag;                              // of `turn` members
  std::vector<std::uint32_t> pairs;     // of its pairs: their numbers in the whole one, where their source is the same
  std::vector<std::uint32_t> stand_in;  // of the whole one's pairs: those of `dag` which they are
};
Turned turned(const Dag& dag, std::uint32_t turn);

}  // namespace manyworlds::core::collective

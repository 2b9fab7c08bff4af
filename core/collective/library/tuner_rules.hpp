// Rules by which what a user gives chooses algorithms and protocols before the library itself does: a table, as NCCL's
// example tuner plugin reads one (ext-tuner/example of NCCL 2.29), or algorithms that are data, as MSCCL's.
#pragma once

#include <cstdint>
#include <string>

#include "core/collective/algorithms/communicator.hpp"
#include "core/collective/dag/algorithm.hpp"
#include "core/collective/dag/given_algorithm.hpp"
#include "core/collective/dag/kind.hpp"

namespace manyworlds::core::collective {

/// A line of such a table, or a given algorithm. `protocol` is ll, ll128 or simple; what it is called in a shape is the
/// library's matter.
struct TunerRule {
  int line = 0;  // of a table
  Kind kind = Kind::all_reduce;
  std::int64_t min_bytes = 0, max_bytes = 0;  // both included; see Kind
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int64_t channels = 0;            // 0: the library's; a calibrated one has those that were measured
  std::int64_t nodes = 0, members = 0;  // of the communicator; 0: any
  SharedAlgorithm given = {};           // of Algorithm::given
  std::string file = {};                // of a given algorithm: its path

  /// Returns whether the rule is for an operation of `bytes` in a communicator, whose nodes are those of its members:
  /// one for each where nodes hold unequal numbers of them.
  bool matches(const Communicator& communicator, Kind operation, std::int64_t bytes) const {
    return operation == kind && bytes >= min_bytes && bytes <= max_bytes &&
           (members == 0 || members == communicator.members) &&
           (nodes == 0 || nodes == communicator.members / communicator.per_node) && (!given || given->divides(bytes));
  }
  bool operator==(const TunerRule&) const = default;
};

}  // namespace manyworlds::core::collective

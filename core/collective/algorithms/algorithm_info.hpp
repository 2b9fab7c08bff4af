// What the rest of the program knows of a collective algorithm. Its file defines `AlgorithmInfo NAME_algorithm()`, and
// nothing else names it but its line in core/collective/dag/algorithm.hpp: libraries, options and listings loop over
// algorithms().
#pragma once

#include <memory>
#include <vector>

#include "core/collective/algorithms/communicator.hpp"
#include "core/collective/algorithms/cost_terms.hpp"
#include "core/collective/dag/dag_builder.hpp"
#include "core/collective/dag/transfer_generator.hpp"

namespace manyworlds::core::collective {

/// Returns whether an automatic library considers an algorithm for an operation among such members.
using Consideration = bool (*)(Kind kind, const Communicator& communicator);

bool everywhere(Kind kind, const Communicator& communicator);
bool nowhere(Kind kind, const Communicator& communicator);
/// All members are in one node, where all can send to each other at once.
bool inside_a_node(Kind kind, const Communicator& communicator);
/// There are several nodes.
bool across_nodes(Kind kind, const Communicator& communicator);
/// There are several nodes with several members each.
bool on_two_levels(Kind kind, const Communicator& communicator);

/// Fields without a default must be given; a compiler warns of one that is not.
struct AlgorithmInfo {
  Algorithm algorithm = Algorithm::ring;  // this and the name come from the list of algorithms
  const char* name = "";
  const char* help;         // a line of `manyworlds list collectives`
  std::vector<Kind> kinds;  // the kinds that it implements

  /// Adds the transfers of an operation of two or more members; any number of members, of members per node that divides
  /// it, and of bytes must do. Members beyond a power of two can fold (recursive_exchange.hpp).
  void (*add)(DagBuilder& dag, const Shape& shape);
  /// Returns its terms in the alpha-beta model. `sizes` follow from `shape`.
  CostTerms (*cost)(const Shape& shape, const CollectiveSizes& sizes);

  /// Returns a generator of its transfers for two or more members, or null for a shape whose transfers have to be
  /// written out. null: they always have to.
  std::shared_ptr<const TransferGenerator> (*generator)(const Shape& shape, std::uint32_t width) = nullptr;

  bool pipelined = false;      // divides transfers into chunks of Shape::chunk_bytes
  bool multi_channel = false;  // uses Shape::channels connections in parallel

  /// The measured latencies that it has: those of the most similar algorithm that was measured. An algorithm of the
  /// group in_switch needs switches that reduce: where neither the members of a node nor, with one member per node,
  /// those of a rail share one, a ring takes its place; a calibrated library considers it only if it is calibrated.
  LatencyGroup latency_group = LatencyGroup::ring;

  /// Whether `auto` considers it, and whether a calibrated library's `auto` does, which has the algorithms of NCCL.
  Consideration considered = everywhere;
  Consideration considered_if_calibrated = nowhere;

  /// Returns the algorithm that carries the operation out: itself, or a simpler one where its own structure is missing
  /// (levels, say). null: always itself.
  Algorithm (*simplified)(const Shape& shape) = nullptr;
  /// Returns whether its DAG, apart from the costs of a protocol, is the same for every number of members per node.
  /// null: never.
  bool (*ignores_nodes)(const Shape& shape) = nullptr;

  /// Returns whether its DAG is another one on a full mesh (Shape::node_mesh). null: never.
  bool (*uses_mesh)(const Shape& shape) = nullptr;

  /// Changes the shape so that every NIC of a node, or every link of a full mesh, is used (`channels: 0`). null: it
  /// stays as it is.
  void (*use_every_nic)(Shape& shape) = nullptr;
  /// Sets channels and chunks as a calibrated library does, where they are not set yet. null: they stay as they are.
  void (*calibrate)(Shape& shape) = nullptr;
};

/// For AlgorithmInfo::ignores_nodes.
bool always(const Shape& shape);

/// Returns whether the members have one level only: all are in one node, or each is in a node of its own.
bool has_one_level(const Shape& shape);

}  // namespace manyworlds::core::collective

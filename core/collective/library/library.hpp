// Selection of a collective's algorithm, protocol and chunk size by a communication library: configured values, or
// those that are fastest by the cost model. A calibrated library chooses as NCCL's tuner does (tuner.hpp).
#pragma once

#include <optional>
#include <vector>

#include "core/base/options.hpp"
#include "core/collective/algorithms/communicator.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/collective/library/calibration.hpp"
#include "core/collective/library/tuner_rules.hpp"

namespace manyworlds::core::collective {

struct Library {
  Algorithm all_reduce = Algorithm::ring;
  Algorithm all_gather = Algorithm::as_all_reduce;
  Algorithm reduce_scatter = Algorithm::as_all_reduce;
  Algorithm all_to_all = Algorithm::pairwise;
  Algorithm broadcast = Algorithm::chain;
  Algorithm reduce = Algorithm::chain;
  Protocol protocol = Protocol::none;
  std::int64_t channels = 1;     // 0: as many as a node has members with NICs, or as use every link of a full mesh
  std::int64_t chunk_bytes = 0;  // see Shape
  /// Of every connection between nodes, each with a five-tuple and so, where paths are hashed, a path of its own:
  /// NCCL_IB_QPS_PER_CONNECTION. Every message is divided evenly over them (NCCL_IB_SPLIT_DATA_ON_QPS=1, the default
  /// until NCCL 2.19), or they take whole messages in turn, each collective beginning with the first queue pair. A
  /// message is as much of a transfer as fits into `message_bytes`: NCCL sends slices of two eighths of its buffer
  /// (NCCL_BUFFSIZE). Connections of token exchanges (DeepEP, HybridEP) and of switches that reduce have one.
  std::int64_t qps_per_connection = 1;
  bool split_data_on_qps = false;
  std::int64_t message_bytes = 1 << 20;
  LibraryVersion version = LibraryVersion::v2_29;
  bool ll128_between_nodes = true;  // NCCL leaves it out where NICs are not behind the switches of their GPUs
  Calibration calibration = {};     // if `protocol` is calibrated
  /// What decides before the library does, the first that can (rule_for()); `protocol` is automatic or calibrated then.
  std::vector<TunerRule> tuner_rules = {};
  bool operator==(const Library&) const = default;

  /// Returns whether the selection depends on the network: on its speeds, or on which members share a switch or links.
  bool depends_on_network() const;
  /// Returns the algorithms that may be selected for a kind of operation.
  std::vector<Algorithm> candidates(Kind kind) const;
};

const OptionTable<Library>& library_options();

/// Algorithms of collectives in some groups, where they are not those of the library.
struct GroupAlgorithms {
  std::optional<Algorithm> all_reduce = {}, all_gather = {}, reduce_scatter = {};
  std::optional<Algorithm> all_to_all = {}, broadcast = {}, reduce = {};
};

const OptionTable<GroupAlgorithms>& group_algorithm_options();

/// Returns a library that has these algorithms, and otherwise its own.
Library with_algorithms(Library library, const GroupAlgorithms& algorithms);

/// Returns the first of the library's rules that matches an operation and names what the library has for it; null if
/// there is none. It has no reduction in switches but inside a node, with `simple`, where the tuner of a calibrated one
/// considers it; and a calibrated one no protocol that its tuner does not consider.
const TunerRule* rule_for(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes);

/// Returns the shape that the library selects for an operation of `bytes` (see Kind). Parameters that do not affect the
/// DAG have their defaults, so that equal DAGs have equal shapes in most cases.
Shape choose_shape(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes,
                   const Split& split = {});

/// Returns the predicted time of a collective by the library's alpha-beta cost model.
Time predicted_ps(const Shape& shape, const Communicator& communicator);

/// Returns a time that every member of a collective spends in it at least, if `communicator` has the fastest paths.
/// Algorithms whose formula is no lower bound, and uneven splits, count as their launch.
Time least_ps(const Shape& shape, const Communicator& communicator);

}  // namespace manyworlds::core::collective

// What a communication library does with an operation: the algorithm, protocol and chunks it was told to use, or those
// its cost model takes to be fastest, as NCCL's tuner does. A calibrated library does what NCCL does by default.
#pragma once

#include "core/base/options.hpp"
#include "core/collective/library/calibration.hpp"

namespace manyworlds::core::collective {

struct Library {
  Algorithm all_reduce = Algorithm::ring;
  Algorithm all_gather = Algorithm::as_all_reduce;
  Algorithm reduce_scatter = Algorithm::as_all_reduce;
  Algorithm all_to_all = Algorithm::pairwise;
  Algorithm broadcast = Algorithm::chain;
  Algorithm reduce = Algorithm::chain;
  Protocol protocol = Protocol::none;
  std::int64_t channels = 1;     // 0: as many as the members have NICs in a node
  std::int64_t chunk_bytes = 0;  // see Shape
  Calibration calibration = {};  // of protocol `calibrated`
  bool operator==(const Library&) const = default;

  /// Whether what it does depends on the network: on its speeds, or on who hangs on one switch.
  bool looks_at_network() const;
  /// The algorithms it may use for a kind of operation.
  std::vector<Algorithm> candidates(Kind kind) const;
};

const OptionTable<Library>& library_options();

/// The path between two members, in one direction: the rate of its slowest link, and the latencies of all.
struct Path {
  std::int64_t bits_per_second = 0;
  Time latency_ps = 0;
  auto operator<=>(const Path&) const = default;
};

/// Who communicates. All but the first two matter only to a library that looks at the network.
struct Communicator {
  std::uint32_t members = 0;
  std::uint32_t per_node = 1;  // see Shape
  Path inside, between;        // in a node; from node to node
  bool node_switches = false;  // the members of each node hang on one switch
  bool rail_switches = false;  // those of equal local index do
  auto operator<=>(const Communicator&) const = default;
};

/// The shape of an operation of `bytes` (see Kind). What it does not depend on is left at its default, so that equal
/// DAGs have equal shapes where that is easily seen.
Shape choose(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes,
             const Split& split = {});

/// Alpha and beta: how long the library's model takes an operation of this shape to last.
Time predicted_ps(const Shape& shape, const Communicator& communicator);

}  // namespace manyworlds::core::collective

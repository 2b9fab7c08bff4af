// A collective as a DAG of transfers between its members. A transfer starts when both its members have entered and all
// its predecessors have finished, after a delay; a member exits when all transfers from and to it have finished.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/collective/dag/algorithm.hpp"
#include "core/collective/dag/given_algorithm.hpp"
#include "core/collective/dag/protocol.hpp"
#include "core/collective/dag/split.hpp"

namespace manyworlds::core::collective {

struct Transfer {
  std::uint32_t pair = 0;      // its connection: index into Dag::pairs
  std::uint32_t delay_ps = 0;  // from the moment at which its dependencies are met until its first packet is sent
  std::int64_t bytes = 0;      // on the wire, without packet headers
};

/// Nodes [0, transfers.size()) are transfers. The nodes after them are join nodes, which finish as soon as all their
/// predecessors have finished, without time or network traffic.
struct Dag {
  std::uint32_t members = 0;
  Time launch_ps = 0;  // from a member's entry until its first transfer may begin
  /// Switches that reduce or replicate have numbers from `members` on. Each is identified by two members connected to
  /// it.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> switches;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // connections as (source, destination), by first use
  std::vector<Transfer> transfers;
  /// By transfer, if connections have several queue pairs: the first part of the message that it is a part of. The
  /// parts of a message have consecutive numbers, and whatever waits for one waits for all. Empty: every transfer is a
  /// message.
  std::vector<std::uint32_t> message;
  std::vector<std::uint16_t>
      wait_count;  // by node: number of predecessors, plus members whose entry no predecessor implies
  std::vector<std::uint32_t> successors_begin, successors;  // node i's successors are [begin[i], begin[i + 1])
  std::vector<std::uint32_t> entry_begin, entry;            // by member, likewise: nodes that wait for its entry
  std::vector<std::uint32_t> transfer_count;                // by member: number of transfers from and to it
};

/// The parameters of a collective. They determine its DAG completely.
struct Shape {
  Kind kind = Kind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t members = 0;
  std::int64_t bytes = 0;        // see Kind
  std::uint32_t per_node = 1;    // members [i * per_node, (i + 1) * per_node) share a node; divides `members`
  std::uint32_t channels = 1;    // parts of the buffer, each with its own connections
  std::int64_t chunk_bytes = 0;  // pipelined algorithms: maximum bytes of a transfer; 0: no limit
  Protocol protocol = Protocol::none;
  bool rail_switches = false;      // in_switch: members of equal local index share one switch
  ProtocolCosts calibrated = {};   // if the protocol is calibrated; other protocols have fixed costs
  std::int64_t node_bytes = 0;     // hybrid_ep: deduplicated bytes per remote node; 0: no deduplication
  bool at_once = false;            // hybrid_ep: transfers wait for their data alone, and not for those before them
  std::uint32_t queue_pairs = 1;   // of a connection between nodes, each with a path of its own; see Library
  std::int64_t message_bytes = 0;  // that queue pairs take in turn; 0: every transfer is divided evenly over them
  bool node_mesh = false;          // the members of a node have links of their own to one another, which it uses
  Split split = {};                // all_to_all, broadcast and reduce only
  SharedAlgorithm given = {};      // of Algorithm::given
  auto operator<=>(const Shape&) const = default;
  std::uint32_t root() const;  // the root of a broadcast or reduce
  std::string text()
      const;  // "all_reduce ring n=8 20971520 B", then protocol, channels, chunks, queue pairs and split unless default
};

/// Returns the costs of the shape's protocol.
ProtocolCosts costs_of(const Shape& shape);

struct Trace;
/// Builds the DAG; `trace`, if given, receives the data that each transfer carries. The algorithm must support the
/// kind; a send is a single transfer from member 0 to member 1, with any algorithm. With fewer than two members the DAG
/// is empty.
Dag build(const Shape& shape, Trace* trace = nullptr);

/// Returns the bytes of chunk `index` of `count`. If `bytes` is not divisible by `count`, the first chunks have one
/// byte more.
constexpr std::int64_t chunk_bytes(std::int64_t bytes, std::uint32_t count, std::uint32_t index) {
  return bytes / count + (index < bytes % count ? 1 : 0);
}

/// Returns the offset of chunk `index` of `count`.
constexpr std::int64_t chunk_begin(std::int64_t bytes, std::uint32_t count, std::uint32_t index) {
  return bytes / count * index + (index < bytes % count ? index : bytes % count);
}

}  // namespace manyworlds::core::collective

// A collective as a DAG of transfers between its members. A transfer starts when both its members have entered and
// all nodes before it have finished, after a delay of its own; a member is done when every transfer it takes part in
// has finished.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/collective/dag/protocol.hpp"
#include "core/collective/dag/split.hpp"

namespace manyworlds::core::collective {

struct Transfer {
  std::uint32_t pair = 0;      // index into Dag::pairs: the connection it uses
  std::uint32_t delay_ps = 0;  // from the moment it may start until its first packet is offered
  std::int64_t bytes = 0;      // on the wire, without packet headers
};

/// Nodes [0, transfers.size()) are the transfers. Those behind are joints: they take no time and no network, and only
/// pass on that all before them have finished.
struct Dag {
  std::uint32_t members = 0;
  Time launch_ps = 0;  // from a member's entry until its first transfer may begin
  /// Switches that reduce or replicate are numbered behind the members, each named by two members that hang on it.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> switches;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // (source, destination), by first use
  std::vector<Transfer> transfers;
  std::vector<std::uint16_t> waits;  // of each node: those before it, and members that only it proves entered
  std::vector<std::uint32_t> successors_begin, successors;  // of node i: [begin[i], begin[i + 1])
  std::vector<std::uint32_t> entry_begin, entry;            // of member i: nodes that wait for it to enter
  std::vector<std::uint32_t> uses;                          // of member i: transfers it takes part in
};

/// What a DAG is made from, and all it depends on.
struct Shape {
  Kind kind = Kind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t members = 0;
  std::int64_t bytes = 0;        // see Kind
  std::uint32_t per_node = 1;    // members [i * per_node, (i + 1) * per_node) share a node; divides `members`
  std::uint32_t channels = 1;    // the buffer is cut into so many shares, each with connections of its own
  std::int64_t chunk_bytes = 0;  // of pipelined algorithms: most that a transfer carries; 0: no limit
  Protocol protocol = Protocol::none;
  bool rail_switches = false;     // in_switch: the members of equal local index hang on one switch
  ProtocolCosts calibrated = {};  // of a calibrated protocol; others have their own figures
  std::int64_t node_bytes = 0;    // hybrid_ep: what goes to another node, once; 0: each member's part by itself
  Split split = {};               // of all_to_all, broadcast and reduce
  auto operator<=>(const Shape&) const = default;
  std::uint32_t root() const;  // of a broadcast or a reduce
  std::string text() const;    // "all_reduce ring n=8 20971520 B", and what differs from the plain form
};

/// What its protocol costs.
ProtocolCosts costs_of(const Shape& shape);

struct Trace;
/// Builds the DAG, and says in `trace` what each transfer carries. The algorithm must know the kind; a send is a single
/// transfer from member 0 to member 1, whatever the algorithm. Fewer than two members give an empty DAG.
Dag build(const Shape& shape, Trace* trace = nullptr);

/// Bytes of chunk `index` of `count` when `bytes` do not divide evenly: the first ones take one more.
constexpr std::int64_t chunk_bytes(std::int64_t bytes, std::uint32_t count, std::uint32_t index) {
  return bytes / count + (index < bytes % count ? 1 : 0);
}

/// Where it begins.
constexpr std::int64_t chunk_begin(std::int64_t bytes, std::uint32_t count, std::uint32_t index) {
  return bytes / count * index + (index < bytes % count ? index : bytes % count);
}

}  // namespace manyworlds::core::collective

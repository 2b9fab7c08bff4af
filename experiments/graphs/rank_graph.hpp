// The operations of one rank and what each waits for, as a format states them: no streams, no dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::graphs {

/// A collective of a group of the job, `bytes` as core::collective::Kind means them.
struct GroupCall {
  std::uint32_t group = 0;
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::int64_t bytes = 0;
  std::uint32_t root = 0;  // member, of rooted ones
};

/// One end of a transfer with `peer`. The k-th send with a tag to a rank meets this rank's k-th receive with it.
struct Transfer {
  std::uint32_t peer = 0;
  bool receives = false;
  std::int64_t bytes = 0;
  std::uint64_t tag = 0;
};

/// std::monostate takes no time: what waits for it waits for what it waits for.
using NodeWork =
    std::variant<std::monostate, programs::KernelWork, programs::CopyWork, programs::HostWork, GroupCall, Transfer>;

/// What a format says runs one after the other, whatever the dependencies are: nothing, or a resource of the rank.
inline constexpr std::uint32_t kNoResource = 0xffffffff;

struct GraphNode {
  std::uint64_t id = 0;
  std::string name;
  std::vector<std::uint32_t> parents;  // indices of nodes
  NodeWork work;
  std::uint32_t resource = kNoResource;
  double us = 0;  // how long it takes by itself, as far as that is known; orders nodes of one resource
  std::uint32_t queue = kNoResource;  // nodes of one queue are one chain, in their order, whatever they wait for
};

struct RankGraph {
  std::string name;  // in messages
  std::vector<GraphNode> nodes;
};

/// Returns what messages call a node: "node 7 ('its name')", of which the first 60 bytes are told.
std::string node_text(std::uint64_t id, const std::string& name);

/// Lets receives of up to `most_bytes` be posted from the beginning, so that sends begin without waiting for the
/// receiver to come to them: what waits for such a receive waits for its transfer and for what it itself waits for.
/// Those from one rank with one tag are posted in their order.
void post_receives(RankGraph& graph, std::int64_t most_bytes);

/// Returns an order in which nodes come after their parents, those with smaller ids first where it is free. Nodes of
/// one resource are in the order in which a rank would start them that gives each resource to the ready node with the
/// smallest id. Throws InputError with the ids of a circle of dependencies.
std::vector<std::uint32_t> execution_order(const RankGraph& graph);

}  // namespace manyworlds::experiments::graphs

// The graph of a fabric as plain data: vertices, directed links, rates and latencies. Topologies build it and routing
// reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// A NIC is a separate vertex only where GPUs share it; otherwise it is part of its GPU.
enum class VertexKind : std::uint8_t { gpu, scale_up_switch, network_switch, nic };
enum class LinkKind : std::uint8_t { scale_up, network };

/// One direction of a cable. Its egress queue belongs to `from`, the ingress buffer at its end to `to`.
struct Link {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  LinkKind kind = LinkKind::network;
  std::int64_t bits_per_second = 0;  // > 0
  Time latency_ps = 0;               // propagation and switching, >= 1
  std::uint8_t order = 0;            // among links on equally short paths, routing uses the lowest
  std::uint8_t length = 1;           // length in a path, in network hops, >= 1
  bool operator==(const Link&) const = default;
};

/// How the routers of a row of a grid are joined: neighbours, neighbours and the two ends, every two, or each with a
/// switch of the row.
enum class GridRows : std::uint8_t { line, ring, complete, switched };

/// Routers that differ in one coordinate form a row. Router i of the grid is vertex first + i; its coordinates are the
/// digits of i, of which the first varies fastest. If rows are switched, their switches follow, dimension by dimension.
/// It is only a hint for routing, which compares it with the links.
struct Grid {
  std::uint32_t first = 0;
  std::vector<std::uint32_t> sizes = {};  // routers in a row, by dimension; empty: there is no grid
  GridRows rows = GridRows::line;
};

/// Vertices [0, gpus) are the GPUs, numbered node by node.
struct Graph {
  std::uint32_t gpus = 0;
  bool gpus_relay = false;  // GPUs forward packets from scale-up links to their NICs; otherwise they forward nothing
  std::vector<VertexKind> vertices;
  std::vector<std::string> names;  // by vertex, for display: "gpu5", "leaf0"
  std::vector<Link> links;
  Grid grid;

  /// Adds a vertex and returns its id. GPUs must be added first.
  std::uint32_t add_vertex(VertexKind kind, std::string name);
  /// Adds both directions of a cable and returns the id of the forward link; the id of the backward link is one higher.
  std::uint32_t add_cable(std::uint32_t a, std::uint32_t b, LinkKind kind, std::int64_t bits_per_second,
                          Time latency_ps);
  /// Adds a cable with the order and length of `forward`, from which the backward link is derived.
  std::uint32_t add_cable(const Link& forward);
};

/// Returns the display name of every directed link, such as "leaf0->spine1"; the second and later of parallel links
/// have the suffix "#2" and so on.
std::vector<std::string> link_names(const Graph& graph);

}  // namespace manyworlds::core::network

// A fabric as plain data: vertices, directed links and their sizes. Topologies return it, routing reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// A NIC is a vertex of its own where GPUs share it; else it is part of its GPU.
enum class VertexKind : std::uint8_t { gpu, scale_up_switch, network_switch, nic };
enum class LinkKind : std::uint8_t { scale_up, network };

/// One direction of a cable. The queue in front of it belongs to `from`; the buffer behind it to `to`.
struct Link {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  LinkKind kind = LinkKind::network;
  std::int64_t bits_per_second = 0;  // > 0
  Time latency_ps = 0;               // propagation and switching, >= 1
  std::uint8_t order = 0;            // of links that lead on equally fast, those of least order are taken
  std::uint8_t length = 1;           // what it counts for in a path, >= 1
  bool operator==(const Link&) const = default;
};

/// Vertices [0, gpus) are the GPUs, numbered node by node.
struct Graph {
  std::uint32_t gpus = 0;
  bool gpus_relay = false;  // a GPU sends on over its NIC what comes over scale-up links; else GPUs forward nothing
  std::vector<VertexKind> vertices;
  std::vector<std::string> names;  // of vertices, for people: "gpu5", "leaf0"
  std::vector<Link> links;

  std::uint32_t add_vertex(VertexKind kind, std::string name);
  /// Both directions of a cable; the forward link's id is returned, the backward link's is that plus one.
  std::uint32_t add_cable(std::uint32_t a, std::uint32_t b, LinkKind kind, std::int64_t bits_per_second,
                          Time latency_ps);
  /// The same with an order and a length, as Link has them.
  std::uint32_t add_cable(const Link& forward);
};

/// A directed link as "leaf0->spine1", with "#2" and so on behind the second and later of parallel ones.
std::vector<std::string> link_names(const Graph& graph);

}  // namespace manyworlds::core::network

// A fabric as plain data: vertices, directed links and their sizes. Topologies return it, routing reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace manyworlds::core::network {

enum class VertexKind : std::uint8_t { gpu, scale_up_switch, network_switch };
enum class LinkKind : std::uint8_t { scale_up, network };

/// One direction of a cable. The queue in front of it belongs to `from`; the buffer behind it to `to`.
struct Link {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  LinkKind kind = LinkKind::network;
  std::int64_t bits_per_second = 0;  // > 0
  Time latency_ps = 0;               // propagation and switching, >= 1
  bool operator==(const Link&) const = default;
};

/// Vertices [0, gpus) are the GPUs, numbered node by node; GPUs never forward traffic of others.
struct Graph {
  std::uint32_t gpus = 0;
  std::vector<VertexKind> vertices;
  std::vector<std::string> names;  // of vertices, for people: "gpu5", "leaf0"
  std::vector<Link> links;

  std::uint32_t add_vertex(VertexKind kind, std::string name);
  /// Both directions of a cable; the forward link's id is returned, the backward link's is that plus one.
  std::uint32_t add_cable(std::uint32_t a, std::uint32_t b, LinkKind kind, std::int64_t bits_per_second,
                          Time latency_ps);
};

}  // namespace manyworlds::core::network

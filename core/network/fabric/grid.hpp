// Distances in direct networks, by arithmetic: routers are numbered by coordinates, and the distance between two of
// them is a sum over the dimensions. A topology states the grid that it builds; it is used only if the cables of the
// graph are exactly those of the grid, so that faults and other changes need not know of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/switch_classes.hpp"

namespace manyworlds::core::network {

class GridDistances {
 public:
  /// For the grid of `graph`, or one without routers if it has none.
  explicit GridDistances(const Graph& graph);

  bool contains(std::uint32_t vertex) const { return vertex >= first_ && vertex - first_ < count_; }
  /// Returns the number of links on a shortest path between two vertices of the grid.
  std::uint32_t hops(std::uint32_t a, std::uint32_t b) const;
  /// Returns whether `links`, which are those between forwarding vertices, join the vertices of the grid as it says,
  /// in both directions, at weight `weight`, and join no other vertex to them.
  bool is_built_of(std::vector<TransitLink> links, std::uint32_t weight) const;

 private:
  static constexpr std::uint16_t kAny = UINT16_MAX;  // the coordinate of a switch in the dimension of its row
  const std::uint16_t* coordinates(std::uint32_t vertex) const {
    return coordinates_.data() + std::size_t{vertex - first_} * sizes_.size();
  }
  /// Returns the number of vertices at one hop from `vertex`.
  std::uint32_t neighbours(std::uint32_t vertex) const;

  GridRows rows_ = GridRows::line;
  std::uint32_t first_ = 0, count_ = 0;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint16_t> coordinates_;  // by vertex and dimension
};

}  // namespace manyworlds::core::network

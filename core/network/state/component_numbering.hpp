// The canonical numbers of flows and links within their components: what makes the states of two networks comparable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {

/// Numbers the flows of each component by tie order and its links by first occurrence along the flows' paths.
class ComponentNumbering {
 public:
  /// For links and flows with slots below these counts.
  ComponentNumbering(std::size_t links, std::size_t flows);

  /// Declares that the links of a path belong to one component. Called for all flows before the first add_flow().
  void connect(std::span<const std::uint32_t> path);
  /// Numbers a flow and the links of its path. Called in ascending tie order.
  void add_flow(std::uint32_t slot, std::span<const std::uint32_t> path);
  /// Numbers a link that may have no flow, unless it has a number.
  void add_link(std::uint32_t link);

  /// Returns the components, in the order of their first flow or link; their words are empty.
  std::vector<ComponentState>& components() { return components_; }
  std::uint32_t component_of(std::uint32_t link);
  std::uint32_t number_of_link(std::uint32_t link) const { return link_number_[link]; }
  std::uint32_t number_of_flow(std::uint32_t slot) const { return flow_number_[slot]; }

 private:
  sharing::UnionFind connected_;  // over links
  std::vector<std::uint32_t> link_number_, flow_number_, component_of_root_;
  std::vector<ComponentState> components_;
};

}  // namespace manyworlds::core::network

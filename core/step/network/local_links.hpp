// Links of the graph, numbered anew in the order in which routes use them first; or all of them under their own
// numbers, for packets that choose their paths.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/network/fabric/router.hpp"
#include "core/network/flows/traffic.hpp"

namespace manyworlds::core::step {

class LocalLinks {
 public:
  /// `all`: the traffic takes all links of the graph, in its order.
  LocalLinks(const network::Graph& graph, bool all) : graph_(graph), all_(all) {}

  /// Returns the routes over links of `traffic`, to which it adds those that no route before these used.
  std::vector<network::Route> add(network::Traffic& traffic, std::vector<network::Route> routes) {
    for (auto link = static_cast<std::uint32_t>(links_.size()); all_ && link < graph_.links.size(); ++link)
      traffic.add_link(network::spec_of(graph_, link)), links_.push_back(link);
    if (all_) return routes;
    for (network::Route& route : routes)
      for (std::uint32_t& link : route) {
        const auto [known, is_new] = numbers_.try_emplace(link, static_cast<std::uint32_t>(links_.size()));
        if (is_new) traffic.add_link(network::spec_of(graph_, link)), links_.push_back(link);
        link = known->second;
      }
    return routes;
  }
  /// Returns the links of the graph, by number in the traffic.
  const std::vector<std::uint32_t>& of_graph() const { return links_; }

 private:
  const network::Graph& graph_;
  bool all_;
  std::map<std::uint32_t, std::uint32_t> numbers_;
  std::vector<std::uint32_t> links_;
};

}  // namespace manyworlds::core::step

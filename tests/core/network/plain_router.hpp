// The oracle of routing: one Dijkstra over all vertices per destination, written plainly.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/base/hash.hpp"
#include "core/network/fabric/router.hpp"

namespace manyworlds::core::network::tests {

class PlainRouter {
 public:
  PlainRouter(const Graph& graph, const PathChoice& choice)
      : graph_(graph), choice_(choice), routing_(choice.routing), number_(graph.gpus) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> by_leaf;
    for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
      std::uint32_t leaf = UINT32_MAX;
      for (const Link& link : graph.links)
        if (link.from == gpu && link.kind == LinkKind::network) leaf = std::min(leaf, link.to);
      by_leaf.emplace_back(leaf, gpu);
    }
    std::sort(by_leaf.begin(), by_leaf.end());
    for (std::uint32_t i = 0; i < by_leaf.size(); ++i) number_[by_leaf[i].second] = i;
  }

  /// Nothing where no path exists.
  std::optional<Route> route(std::uint32_t src, std::uint32_t dst, std::uint64_t entropy) {
    const auto& far = distances_to(dst);
    if (src == dst || far.count(src) == 0) return std::nullopt;
    Route route;
    std::uint32_t digits = number_[dst];
    while (src != dst) {
      std::vector<std::uint32_t> choices = next_hops(src, dst);
      const bool inside = graph_.links[choices.at(0)].kind == LinkKind::scale_up;
      const auto count = static_cast<std::uint32_t>(choices.size());
      std::uint64_t pick = 0;
      if (count > 1 && routing_ == Routing::destination_mod_k && inside) pick = dst % count;
      if (count > 1 && routing_ == Routing::destination_mod_k && !inside) pick = digits % count, digits /= count;
      if (count > 1 && routing_ == Routing::ecmp_hash) {
        if (choice_.weights == PathWeights::rate) choices = table(choices, dst);
        pick = hash(src, entropy, route.size()) % choices.size();
      }
      route.push_back(choices.at(pick));
      src = graph_.links[choices.at(pick)].to;
    }
    return route;
  }

 private:
  std::vector<std::uint32_t> next_hops(std::uint32_t src, std::uint32_t dst) {
    const auto& far = distances_to(dst);
    std::vector<std::uint32_t> choices;
    for (std::uint32_t id = 0; id < graph_.links.size(); ++id) {
      const Link& link = graph_.links[id];
      if (link.from != src || !may_lead(link, dst)) continue;
      if (far.count(link.to) == 1 && far.at(link.to) + cost(link) == far.at(src)) choices.push_back(id);
    }
    std::uint8_t least = 255;
    for (const std::uint32_t id : choices) least = std::min(least, graph_.links[id].order);
    std::erase_if(choices, [&](std::uint32_t id) { return graph_.links[id].order != least; });
    return choices;
  }

  std::uint64_t hash(std::uint32_t vertex, std::uint64_t entropy, std::size_t hop) const {
    if (graph_.vertices[vertex] == VertexKind::gpu) return decision_hash(choice_.seed, entropy, hop);
    switch (choice_.seeds) {
      case HashSeeds::per_hop:
        return decision_hash(choice_.seed, entropy, hop);
      case HashSeeds::per_switch:
        return decision_hash(choice_.seed, entropy, (std::uint64_t{1} << 32) + 1 + vertex);
      case HashSeeds::same:
        return decision_hash(choice_.seed, entropy, std::uint64_t{1} << 32);
    }
    return 0;
  }

  /// The rate at which a link leads on, without the last links.
  std::int64_t weight_of(std::uint32_t id, std::uint32_t dst) {
    const Link& link = graph_.links[id];
    if (link.to == dst) return link.bits_per_second;
    std::int64_t onward = 0;
    for (const std::uint32_t next : next_hops(link.to, dst)) {
      if (graph_.links[next].to == dst) return link.bits_per_second;
      onward += weight_of(next, dst);
    }
    return std::min(link.bits_per_second, onward);
  }

  /// The table of a switch, with every choice as often as its weight, shortened as far as possible.
  std::vector<std::uint32_t> table(const std::vector<std::uint32_t>& choices, std::uint32_t dst) {
    std::int64_t step = 1;
    for (std::int64_t divisor = 2; divisor <= weight_of(choices[0], dst); ++divisor)
      if (std::all_of(choices.begin(), choices.end(), [&](auto id) { return weight_of(id, dst) % divisor == 0; }))
        step = divisor;
    std::vector<std::uint32_t> result;
    for (const std::uint32_t id : choices) result.insert(result.end(), std::size_t(weight_of(id, dst) / step), id);
    return result;
  }

  static std::uint32_t cost(const Link& link) { return link.kind == LinkKind::scale_up ? 1 : 1'000 * link.length; }

  /// To the destination, to a switch, or into a GPU that relays what its scale-up links bring.
  bool may_lead(const Link& link, std::uint32_t dst) const {
    if (link.to == dst || graph_.vertices[link.to] != VertexKind::gpu) return true;
    return graph_.gpus_relay && link.kind == LinkKind::scale_up;
  }

  const std::map<std::uint32_t, std::uint32_t>& distances_to(std::uint32_t dst) {
    auto [slot, fresh] = known_.try_emplace(dst);
    if (!fresh) return slot->second;
    auto& far = slot->second;
    std::set<std::pair<std::uint32_t, std::uint32_t>> open{{0, dst}};
    while (!open.empty()) {
      const auto [distance, vertex] = *open.begin();
      open.erase(open.begin());
      if (!far.try_emplace(vertex, distance).second) continue;
      for (const Link& link : graph_.links)
        if (link.to == vertex && may_lead(link, dst)) open.emplace(distance + cost(link), link.from);
    }
    return far;
  }

  const Graph& graph_;
  PathChoice choice_;
  Routing routing_;
  std::vector<std::uint32_t> number_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> known_;
};

/// Pairs of GPUs whose routes by `routing` differ between Router and the oracle. Paths longer than a Router's are left
/// to its own message.
inline std::vector<std::pair<std::uint32_t, std::uint32_t>> differing_routes(const Graph& graph,
                                                                             const PathChoice& choice) {
  Router router(std::make_shared<const Graph>(graph), choice);
  PlainRouter plain(graph, choice);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wrong;
  for (std::uint32_t src = 0; src < graph.gpus; ++src)
    for (std::uint32_t dst = 0; dst < graph.gpus; ++dst) {
      const std::uint64_t entropy = decision_hash(choice.seed, src, dst);
      const auto expected = plain.route(src, dst, entropy);
      std::optional<Route> found;
      try {
        found = router.route(src, dst, entropy);
      } catch (const InputError&) {
        if (expected && expected->size() > kMaxHops) continue;
      }
      if (found != expected) wrong.emplace_back(src, dst);
    }
  return wrong;
}
inline auto differing_routes(const Graph& graph, Routing routing, std::uint64_t seed) {
  return differing_routes(graph, PathChoice{routing, seed});
}

}  // namespace manyworlds::core::network::tests

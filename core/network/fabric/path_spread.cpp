#include "core/network/fabric/path_spread.hpp"

namespace manyworlds::core::network {
namespace {

SpreadHop hop_of(const std::map<std::uint32_t, std::int64_t>& shares) {
  SpreadHop hop;
  for (const auto& [link, share] : shares) hop.push_back({link, share});
  return hop;
}

}  // namespace

Spread PathSpreads::between(std::uint32_t source, std::uint32_t destination) {
  Spread result;
  const std::vector<std::uint32_t> links = tables_.first_hop_links(source, destination);
  Masses entrances;
  for (const std::uint32_t link : links) {
    const std::int64_t share = kAllPackets / static_cast<std::int64_t>(links.size());
    result.first.push_back({link, share});
    if (graph().links[link].to != destination) entrances[graph().links[link].to] += share;
  }
  result.middle = middle_between(entrances, destination);
  std::map<std::uint32_t, std::int64_t> last;
  for (const auto& [vertex, share] : middles_[result.middle].exits)
    for (const std::uint32_t link : tables_.next_hops(vertex, destination))
      if (graph().links[link].to == destination) last[link] += share;
  result.last = hop_of(last);
  return result;
}

/// Packets go hop by hop: a vertex that is reached by ways of different lengths divides what comes by each.
std::uint32_t PathSpreads::middle_between(const Masses& entrances, std::uint32_t destination) {
  if (entrances.empty()) return 0;
  const auto [number, is_new] = numbers_.try_emplace({entrances, tables_.destination_class(destination)}, middles());
  if (!is_new) return number->second;
  Middle& result = middles_.emplace_back();
  for (Masses arrived = entrances, next; !arrived.empty(); arrived = std::exchange(next, {})) {
    std::map<std::uint32_t, std::int64_t> hop;
    for (const auto& [vertex, mass] : arrived) {
      const auto candidates = tables_.next_hops(vertex, destination);
      const std::int64_t share = mass / static_cast<std::int64_t>(candidates.size());
      bool is_exit = false;
      for (const std::uint32_t link : candidates) {
        const std::uint32_t to = graph().links[link].to;
        is_exit |= to == destination;
        if (to != destination) hop[link] += share, next[to] += share;
      }
      if (is_exit) result.exits.emplace_back(vertex, share);
    }
    if (!hop.empty()) result.hops.push_back(hop_of(hop));
  }
  return number->second;
}

}  // namespace manyworlds::core::network

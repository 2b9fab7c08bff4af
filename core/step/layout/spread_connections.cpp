// How the packets of a layout's connections spread over paths, and what keys then depend on.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {
namespace {

/// Returns Connections::rates of a pair: a hop with several links is as fast as all of them, but no faster than the
/// slowest of the others.
std::vector<std::int64_t> rates_of(const network::Route& route, const std::vector<const network::SpreadHop*>& hops,
                                   const network::Graph& graph) {
  MANYWORLDS_CHECK(route.size() == hops.size(), "a route has {} links, a spread {}", route.size(), hops.size());
  const auto rate = [&](std::uint32_t link) { return graph.links[link].bits_per_second; };
  std::int64_t least = INT64_MAX;
  for (std::size_t hop = 0; hop < route.size(); ++hop)
    if (hops[hop]->size() == 1) least = std::min(least, rate(route[hop]));
  std::vector<std::int64_t> rates;
  bool is_faster = false;
  for (std::size_t hop = 0; hop < route.size(); ++hop) {
    rates.push_back(rate(route[hop]));
    if (hops[hop]->size() == 1 || rates.back() >= least) continue;
    std::int64_t together = 0;
    for (const network::LinkShare& way : *hops[hop]) together += rate(way.link);
    rates.back() = std::min(together, least);
    is_faster = true;
  }
  if (!is_faster) rates.clear();
  return rates;
}

}  // namespace

/// Adds how packets spread. Where they have a choice, packet by packet, the signature then names the whole fabric.
void RankLayout::add_spreads(Connections& connections, const Connectivity& connectivity,
                             const std::vector<std::uint32_t>& gpus) {
  bool has_choice = false, has_rates = false;
  for (std::size_t pair = 0; pair < connectivity.pairs.size(); ++pair) {
    const auto& [from, to] = connectivity.pairs[pair];
    if (std::max(from, to) >= gpus.size()) {  // between a member and a switch
      connections.spreads.push_back({{{connections.routes[pair].front(), network::kAllPackets}}, {}, 0});
      connections.rates.emplace_back();
      continue;
    }
    const network::Spread& spread = connections.spreads.emplace_back(spreading_.paths->between(gpus[from], gpus[to]));
    std::vector<const network::SpreadHop*> hops{&spread.first};
    for (const network::SpreadHop& hop : spreading_.paths->middle(spread.middle)) hops.push_back(&hop);
    if (!spread.last.empty()) hops.push_back(&spread.last);
    has_choice |= std::any_of(hops.begin(), hops.end(), [](const auto* hop) { return hop->size() > 1; });
    connections.rates.push_back(rates_of(connections.routes[pair], hops, graph()));
    has_rates |= !connections.rates.back().empty();
  }
  if (!has_rates) connections.rates.clear();
  if (!has_rates && !(has_choice && spreading_.in_packets)) return;
  sharing::KeyWriter writer("spread connections");
  writer.key(connections.route_signature);
  for (const std::vector<std::int64_t>& rates : connections.rates) {
    writer.integer(std::ssize(rates));
    for (const std::int64_t rate : rates) writer.integer(rate);
  }
  if (has_choice && spreading_.in_packets) {
    writer.key(fabric_key());
    for (const std::uint32_t gpu : gpus) writer.integer(gpu);
  }
  connections.route_signature = writer.finish();
}

const sharing::Key& RankLayout::fabric_key() {
  if (fabric_key_) return *fabric_key_;
  sharing::KeyWriter writer("fabric");
  writer.integer(graph().gpus).integer(graph().gpus_relay);
  for (const network::VertexKind kind : graph().vertices) writer.integer(static_cast<std::int64_t>(kind));
  for (const network::Link& link : graph().links)
    writer.integer(link.from)
        .integer(link.to)
        .integer(static_cast<std::int64_t>(link.kind))
        .integer(link.bits_per_second)
        .integer(link.latency_ps)
        .integer(link.order)
        .integer(link.length);
  return fabric_key_.emplace(writer.finish());
}

}  // namespace manyworlds::core::step

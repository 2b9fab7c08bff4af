// How the packets of a layout's connections spread over paths, and what keys then depend on.
#include <algorithm>

#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {

/// Adds how packets spread. Where they have a choice, packet by packet, the signature then names the whole fabric.
void RankLayout::add_spreads(Connections& connections, const Connectivity& connectivity,
                             const std::vector<std::uint32_t>& gpus) {
  const auto is_choice = [](const network::SpreadHop& hop) { return hop.size() > 1; };
  bool has_choice = false;
  for (std::size_t pair = 0; pair < connectivity.pairs.size(); ++pair) {
    const auto& [from, to] = connectivity.pairs[pair];
    if (std::max(from, to) >= gpus.size()) {  // between a member and a switch
      connections.spreads.push_back({{{connections.routes[pair].front(), network::kAllPackets}}, {}, 0});
      continue;
    }
    const network::Spread& spread = connections.spreads.emplace_back(spreading_.paths->between(gpus[from], gpus[to]));
    const std::vector<network::SpreadHop>& middle = spreading_.paths->middle(spread.middle);
    has_choice |=
        is_choice(spread.first) || is_choice(spread.last) || std::any_of(middle.begin(), middle.end(), is_choice);
  }
  if (!has_choice || !spreading_.in_packets) return;
  sharing::KeyWriter writer("spread connections");
  writer.key(connections.route_signature).key(fabric_key());
  for (const std::uint32_t gpu : gpus) writer.integer(gpu);
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

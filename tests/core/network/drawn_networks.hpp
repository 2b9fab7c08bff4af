// Drawn fabrics with flows over them: switches cabled at random, GPUs behind one NIC or two, some of them in pairs with
// links of their own; rates, lengths, packets, thresholds, sizes and starts of any kind. A draw for engines that take
// links and routes (network_problems.hpp) with the graph behind it, for those that take that.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "core/network/fabric/forwarding_tables.hpp"
#include "core/network/fabric/pfc_deadlock.hpp"
#include "core/network/per_packet/network.hpp"
#include "tests/core/network/network_problems.hpp"

namespace manyworlds::tests {

using core::network::Graph;
using core::network::LinkKind;
using core::network::Routing;
using core::network::VertexKind;

struct Network {
  std::shared_ptr<const Graph> graph;
  Problem problem;
};

/// Of bytes over [low, high] ways: a counter-based draw, so that a change in one place leaves the others alone.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(core::decision_hash(seed_, count_++, 0) %
                                           static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(std::int64_t times) { return (*this)(1, times) == 1; }

 private:
  std::uint64_t seed_, count_ = 0;
};

inline Graph draw_graph(Draw& draw) {
  Graph graph;
  const auto gpus = static_cast<std::uint32_t>(draw(2, 8)), switches = static_cast<std::uint32_t>(draw(1, 5));
  for (std::uint32_t i = 0; i < gpus; ++i) graph.add_vertex(VertexKind::gpu, fmt::format("gpu{}", i));
  for (std::uint32_t i = 0; i < switches; ++i) graph.add_vertex(VertexKind::network_switch, fmt::format("switch{}", i));
  const auto any_switch = [&](std::uint32_t below) { return gpus + static_cast<std::uint32_t>(draw(0, below - 1)); };
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    const bool round = draw.once_in(2);  // figures that make ties
    graph.add_cable(a, b, LinkKind::network, round ? draw(1, 4) * 100'000'000'000 : draw(10'000, 400'000) * 1'000'003,
                    round ? draw(1, 4) * 250'000 : draw(1, 2'000'000));
  };
  for (std::uint32_t i = 0; i < gpus; ++i)
    for (std::int64_t nics = draw.once_in(5) ? 2 : 1; nics > 0; --nics) join(i, any_switch(switches));
  for (std::uint32_t i = 1; i < switches; ++i) join(gpus + i, any_switch(i));  // a tree, and some cables more
  for (std::int64_t more = switches > 1 ? draw(0, 4) : 0; more > 0; --more) {
    const std::uint32_t a = any_switch(switches), b = any_switch(switches);
    if (a != b) join(a, b);
  }
  if (draw.once_in(3))
    for (std::uint32_t i = 0; i + 1 < gpus; i += 2) {
      const auto inside = graph.add_vertex(VertexKind::scale_up_switch, fmt::format("inside{}", i));
      for (const std::uint32_t gpu : {i, i + 1})
        graph.add_cable(gpu, inside, LinkKind::scale_up, 1'600'000'000'000, 300'000);
    }
  return graph;
}

/// Whether pauses could come to hold each other on some shortest paths between these pairs, there and back.
inline bool may_deadlock(const std::shared_ptr<const Graph>& graph,
                         const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  core::network::ForwardingTables forwarding(graph);
  std::vector<std::vector<std::uint32_t>> waits(graph->links.size());
  for (const auto& [a, b] : pairs)
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
      for (const std::uint32_t link : forwarding.walk(from, to, [](auto...) {}))
        if (graph->links[link].to != to)
          for (const std::uint32_t next : forwarding.next_hops(graph->links[link].to, to)) waits[link].push_back(next);
  return !core::network::find_cycle(waits).empty();
}

/// The least buffer that keeps all links lossless, says check_lossless; more would hide an overflow.
inline std::int64_t least_buffer(const Graph& graph, const Transport& transport) {
  std::int64_t most = 0;
  for (const core::network::Link& link : graph.links)
    most = std::max(most, static_cast<std::int64_t>(static_cast<core::Int128>(link.bits_per_second) * 2 *
                                                    link.latency_ps / (8 * static_cast<core::Int128>(core::kSecond))));
  return transport.pfc_xoff_bytes + most + 3 * (transport.payload_bytes + transport.header_bytes) + transport.ack_bytes;
}

inline Transport draw_transport(Draw& draw, std::vector<std::string> kinds) {
  Transport transport;
  transport.kind = kinds[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(kinds.size()) - 1))];
  transport.seed = draw(1, 1'000);
  transport.payload_bytes = draw.once_in(2) ? 4096 : draw(200, 5'000);
  transport.header_bytes = draw.once_in(2) ? 64 : draw(0, 100);
  transport.ack_bytes = draw.once_in(2) ? 64 : draw(1, 100);
  const std::int64_t packet = transport.payload_bytes + transport.header_bytes;
  transport.window_bytes = draw(1, 60) * packet;
  transport.pfc_xoff_bytes = draw(1, 20 * packet);
  transport.pfc_xon_bytes = draw(0, transport.pfc_xoff_bytes);
  transport.ecn_kmin_bytes = draw(1, 4) * 1'000;
  transport.ecn_kmax_bytes = transport.ecn_kmin_bytes * draw(2, 4);
  transport.queue_bytes = draw(packet, 30 * packet);
  return transport;
}

/// `pinned`: what engines for pinned paths can run; otherwise whatever the transport can do.
inline Network draw_network(std::uint64_t seed, bool pinned) {
  Draw draw(seed);
  std::vector<std::string> kinds;
  for (const auto& type : core::network::transports())
    if (!pinned || type.make_engine != nullptr) kinds.push_back(type.name);
  Network network;
  network.graph = std::make_shared<const Graph>(draw_graph(draw));
  Problem& problem = network.problem;
  Transport& transport = problem.transport = draw_transport(draw, kinds);
  const bool trims = core::network::transport_type(transport).trims;
  transport.routing = static_cast<Routing>(draw(0, pinned ? 1 : 4));
  if (!pinned && !trims) {
    transport.acks = static_cast<core::network::Acks>(draw(0, 1));
    transport.fabric = static_cast<core::network::Fabric>(draw(0, 1));
  }
  const std::uint32_t gpus = network.graph->gpus;
  const auto popular = static_cast<std::uint32_t>(draw(1, gpus));  // destinations
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::int64_t flows = draw(1, 14); flows > 0; --flows) {
    const auto to = static_cast<std::uint32_t>(draw(0, popular - 1));
    pairs.emplace_back((to + static_cast<std::uint32_t>(draw(1, gpus - 1))) % gpus, to);
  }
  if (may_deadlock(network.graph, pairs)) transport.pfc_xoff_bytes = transport.pfc_xon_bytes = std::int64_t{1} << 40;
  transport.buffer_bytes = least_buffer(*network.graph, transport);
  for (std::uint32_t link = 0; link < network.graph->links.size(); ++link)
    problem.links.push_back(core::network::spec_of(*network.graph, link));
  core::network::Router router(network.graph, transport.routing, static_cast<std::uint64_t>(transport.seed));
  for (std::uint32_t i = 0; i < pairs.size(); ++i) {
    problem.routes.push_back(router.route(pairs[i].first, pairs[i].second, i));
    problem.arrivals.push_back({draw.once_in(3) ? draw(0, 20'000'000) : draw(0, 8) * kPacket,
                                {static_cast<std::uint32_t>(draw(0, 2)), i},
                                i,
                                draw.once_in(3) ? draw(0, 20) * transport.payload_bytes : draw(0, 120'000)});
  }
  std::sort(problem.arrivals.begin(), problem.arrivals.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  problem.ranks = {1, 0, 2};
  return network;
}

}  // namespace manyworlds::tests

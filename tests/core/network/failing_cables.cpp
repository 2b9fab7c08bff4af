// Cables that fail while packets are under way: one flow against its closed form, drawn flows against fabrics without
// the cable and without the failure, and that every byte arrives once, whatever fails.
#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <set>

#include "tests/core/network/drawn_networks.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

using Ends = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // of routes: the GPUs

Ends ends_of(const manyworlds::tests::Network& network) {
  Ends ends;
  for (const Route& route : network.problem.routes)
    ends.emplace_back(network.graph->links[route.front()].from, network.graph->links[route.back()].to);
  return ends;
}

std::unique_ptr<Flows> failing_flows(const manyworlds::tests::Network& network, const LinkFailures& failures) {
  return make_failing_flows(network.problem.transport, network.graph, failures,
                            [ends = ends_of(network)](Router& router, std::uint32_t number) {
                              return router.route(ends[number].first, ends[number].second, number);
                            });
}

/// The fabric without some cables, given by their lower links, and routes on it.
manyworlds::tests::Network without(const manyworlds::tests::Network& network, const std::set<std::uint32_t>& cables) {
  manyworlds::tests::Network left = network;
  Graph graph = *network.graph;
  graph.links.clear();
  left.problem.links.clear();
  for (std::uint32_t link = 0; link < network.graph->links.size(); ++link)
    if (cables.count(link & ~1u) == 0) {
      graph.links.push_back(network.graph->links[link]);
      left.problem.links.push_back(network.problem.links[link]);
    }
  left.graph = std::make_shared<const Graph>(std::move(graph));
  Router router(left.graph, path_choice_of(network.problem.transport));
  left.problem.routes.clear();
  for (const auto& [from, to] : ends_of(network))
    left.problem.routes.push_back(router.route(from, to, left.problem.routes.size()));
  return left;
}

/// Whether pauses could come to hold each other while packets go on by the ways of any of the fabrics that are left
/// when cables fail in some order.
bool may_deadlock_on_the_way(const manyworlds::tests::Network& network, const std::set<std::uint32_t>& cables) {
  const Graph& graph = *network.graph;
  std::vector<std::set<std::uint32_t>> avoided;
  std::deque<ForwardingTables> tables;
  for (std::uint32_t some = 0; some < 1u << cables.size(); ++some) {
    std::uint32_t bit = 0;
    std::vector<std::uint32_t> numbers;
    avoided.emplace_back();
    for (const std::uint32_t cable : cables)
      if ((some >> bit++ & 1) != 0) avoided.back().insert(cable);
    for (std::uint32_t link = 0; link < graph.links.size(); ++link)
      if (avoided.back().count(link & ~1u) == 0) numbers.push_back(link);
    tables.emplace_back(without(network, avoided.back()).graph, numbers);
  }
  std::vector<std::vector<std::uint32_t>> waits(graph.links.size());
  for (const auto& [a, b] : ends_of(network))
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      std::set<std::uint32_t> seen;
      std::vector<std::uint32_t> open;
      const auto reach = [&](std::uint32_t link) {
        if (seen.insert(link).second) open.push_back(link);
      };
      for (ForwardingTables& one : tables)
        for (const std::uint32_t link : one.first_hop_links(from, to)) reach(link);
      while (!open.empty()) {
        const std::uint32_t link = open.back();
        open.pop_back();
        for (std::size_t some = 0; some < tables.size() && graph.links[link].to != to; ++some)
          if (avoided[some].count(link & ~1u) == 0)
            for (const std::uint32_t next : tables[some].next_hops(graph.links[link].to, to))
              waits[link].push_back(next), reach(next);
      }
    }
  return !find_cycle(waits).empty();
}

/// Draws a network with flows between all GPUs that have traffic, and up to `most` cables without which there are still
/// paths for them; none if there are no such cables.
struct Failing {
  manyworlds::tests::Network network;
  std::set<std::uint32_t> cables;
};
Failing draw_failing(std::uint64_t seed, std::size_t most) {
  Failing drawn{draw_network(seed, false), {}};
  Draw draw(seed + 1'000'000);
  const auto links = static_cast<std::int64_t>(drawn.network.graph->links.size());
  for (int tries = 0; tries < 12 && drawn.cables.size() < most; ++tries) {
    std::set<std::uint32_t> more = drawn.cables;
    more.insert(static_cast<std::uint32_t>(draw(0, links / 2 - 1)) * 2);
    try {
      const manyworlds::tests::Network left = without(drawn.network, more);
      Router back(left.graph, path_choice_of(drawn.network.problem.transport));
      for (const auto& [from, to] : ends_of(drawn.network)) back.route(to, from, 0);
      drawn.cables = std::move(more);
    } catch (const InputError&) {
    }
  }
  Transport& transport = drawn.network.problem.transport;
  if (may_deadlock_on_the_way(drawn.network, drawn.cables)) {
    transport.pfc_xoff_bytes = transport.pfc_xon_bytes = std::int64_t{1} << 40;
    transport.buffer_bytes = least_buffer(*drawn.network.graph, transport);
  }
  return drawn;
}

bool is_lossless(const Transport& transport) {
  return !transport_type(transport).trims && transport.fabric == network::Fabric::lossless;
}

/// Two GPUs behind a leaf each, and spines between these.
Graph spines(std::uint32_t count, Time latency) {
  Graph graph;
  for (const char* name : {"gpu0", "gpu1"}) graph.add_vertex(VertexKind::gpu, name);
  for (const char* name : {"leaf0", "leaf1"}) graph.add_vertex(VertexKind::network_switch, name);
  for (std::uint32_t i = 0; i < 2; ++i) graph.add_cable(i, 2 + i, LinkKind::network, kRate, latency);
  for (std::uint32_t spine = 0; spine < count; ++spine) {
    const std::uint32_t vertex = graph.add_vertex(VertexKind::network_switch, "spine" + std::to_string(spine));
    for (const std::uint32_t leaf : {2u, 3u}) graph.add_cable(leaf, vertex, LinkKind::network, kRate, latency);
  }
  return graph;
}

/// One flow from GPU 0 to GPU 1.
manyworlds::tests::Network one_flow(const Transport& transport, const Graph& graph, std::int64_t packets) {
  manyworlds::tests::Network network{std::make_shared<const Graph>(graph), {}};
  network.problem.transport = transport;
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) network.problem.links.push_back(spec_of(graph, link));
  Router router(network.graph, path_choice_of(transport));
  network.problem.routes = {router.route(0, 1, 0)};
  network.problem.arrivals = {{0, {0, 0}, 0, packets * transport.payload_bytes}};
  network.problem.ranks = {0};
  return network;
}

}  // namespace

TEST_CASE("a flow whose cable fails loses what has not crossed it, and sends that again over another") {
  constexpr Time kLatency = 500'000;
  for (const std::string kind : {"static_window", "dcqcn"})
    for (const Routing routing : {Routing::destination_mod_k, Routing::ecmp_hash}) {
      Transport transport;
      transport.kind = kind;
      transport.routing = routing;
      transport.window_bytes = std::int64_t{1} << 40;
      constexpr std::int64_t kPackets = 500;
      const manyworlds::tests::Network network = one_flow(transport, spines(2, kLatency), kPackets);
      const Time control = serialization_ps(transport.ack_bytes, kRate);
      const std::uint32_t cable = network.problem.routes[0][1];
      for (const Time fails : {0, 1'000'000, 20'000'000, 30'000'001})
        for (const Time outage : {50'000'000, 410'000'000})
          for (const Time timeout : {0, 90'000'000}) {
            if (timeout > 0 && kind != "static_window") continue;  // DCQCN is slower after a loss
            INFO(kind << " fails at " << fails << ", avoided after " << outage << ", timeout " << timeout);
            // Packet k has crossed the cable after two links.
            std::int64_t crossed = 0;
            while (crossed < kPackets && (crossed + 2) * kPacket + 2 * kLatency < fails) ++crossed;
            const std::int64_t lost = kPackets - crossed;
            REQUIRE(kPackets * kPacket + kLatency < fails + outage);  // all have been sent when routes avoid it
            // The last acknowledgement: that of the last packet to cross, four links and a delay later.
            const Time heard = crossed == 0 ? 0 : (crossed + 3) * kPacket + 4 * kLatency + 4 * (control + kLatency);
            Time again = fails + outage;
            std::int64_t times = 1;
            if (timeout > 0) {
              while (heard + times * timeout < fails + outage) ++times;
              again = heard + times * timeout;
            }
            // None is under way then that was sent again before.
            REQUIRE((times == 1 || again - timeout + kPackets * kPacket + kLatency < fails + outage));
            const auto flows = failing_flows(network, {{{cable, fails}}, outage, timeout});
            Counters counters;
            const auto done = play(network.problem, *flows, counters);
            REQUIRE(done.size() == 1);
            CHECK(counters.lost == lost * times);
            CHECK(counters.retransmissions == lost * times);
            CHECK(flows->drained());
            if (kind == "static_window") CHECK(done[0].at == again + (lost + 3) * kPacket + 4 * kLatency);
            if (kind == "dcqcn") CHECK(done[0].at >= again + (lost + 3) * kPacket + 4 * kLatency);
          }
    }
}

TEST_CASE("a switch that chooses among ports leaves its dead one out at once, one that hashes when routes change") {
  constexpr Time kLatency = 500'000, kFails = 10'000'000, kOutage = 5'000'000'000;
  for (const Routing routing : {Routing::adaptive, Routing::spray})
    for (const bool at_its_switch : {true, false}) {
      Transport transport;
      transport.routing = routing;
      transport.window_bytes = 40 * 4160;
      const Graph graph = spines(4, kLatency);
      const manyworlds::tests::Network network = one_flow(transport, graph, 2'000);
      std::uint32_t cable = 0;  // out of leaf 0, or into leaf 1, of which only its spine knows
      while (graph.links[cable].from != (at_its_switch ? 2u : 3u) || graph.names[graph.links[cable].to] != "spine1")
        cable += 2;
      const auto flows = failing_flows(network, {{{cable, kFails}}, kOutage, 200'000'000});
      Counters counters;
      const auto done = play(network.problem, *flows, counters);
      REQUIRE(done.size() == 1);
      INFO("routing " << static_cast<int>(routing) << ", at its switch " << at_its_switch);
      CHECK(counters.lost > 0);
      const bool ends_without_routes = routing == Routing::adaptive && at_its_switch;
      CHECK((done[0].at < kFails + kOutage) == ends_without_routes);
      // Then only what was on the link or queued for it: less than the window.
      if (ends_without_routes) CHECK(counters.lost <= 40);
    }
}

TEST_CASE("a cable that fails at the begin and is avoided at once leaves the flows of a fabric without it") {
  std::set<std::string> kinds;
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Failing drawn = draw_failing(seed, 2);
    if (drawn.cables.empty()) continue;
    for (auto& arrival : drawn.network.problem.arrivals) arrival.at += 1'000;
    manyworlds::tests::Network left = without(drawn.network, drawn.cables);
    LinkFailures failures;
    for (const std::uint32_t cable : drawn.cables) failures.cables.push_back({cable, 0});
    failures.reconvergence_ps = 1;
    Counters counters, expected_counters;
    const auto expected =
        play(left.problem, *make_per_packet_flows(left.problem.transport, left.graph), expected_counters);
    INFO("seed " << seed << ", " << left.problem.transport.kind);
    REQUIRE(play(drawn.network.problem, *failing_flows(drawn.network, failures), counters) == expected);
    CHECK(counters.lost == 0);
    CHECK(counters.link_hops == expected_counters.link_hops);
    CHECK(counters.drops == expected_counters.drops);
    kinds.insert(left.problem.transport.kind);
    ++compared;
  }
  CHECK(compared > 60);
  CHECK(kinds.size() == transports().size());
}

TEST_CASE("a cable that fails when all is over changes nothing, and nothing is lost without a failure") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Failing drawn = draw_failing(seed, 3);
    const manyworlds::tests::Network& network = drawn.network;
    Counters counters, expected_counters;
    const auto intact = make_per_packet_flows(network.problem.transport, network.graph);
    const auto expected = play(network.problem, *intact, expected_counters);
    LinkFailures failures;
    for (const std::uint32_t cable : drawn.cables) failures.cables.push_back({cable, intact->last_activity() + 1});
    failures.reconvergence_ps = 1'000;
    INFO("seed " << seed);
    REQUIRE(play(network.problem, *failing_flows(network, failures), counters) == expected);
    CHECK(counters.lost == 0);
    CHECK(counters.link_hops == expected_counters.link_hops);
    CHECK(counters.retransmissions == expected_counters.retransmissions);
    CHECK(counters.pauses == expected_counters.pauses);
  }
}

TEST_CASE(
    "every flow ends once whatever cables fail, and a lossless fabric sends again what it lost and nothing else") {
  int ran = 0, lost_any = 0, exact = 0, paused = 0;
  std::set<std::pair<std::string, Routing>> seen;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Failing drawn = draw_failing(seed, 1 + seed % 3);
    if (drawn.cables.empty()) continue;
    Draw draw(seed + 2'000'000);
    const Transport& transport = drawn.network.problem.transport;
    LinkFailures failures;
    for (const std::uint32_t cable : drawn.cables)
      failures.cables.push_back({cable + static_cast<std::uint32_t>(draw(0, 1)), draw(0, 30'000'000)});
    failures.reconvergence_ps = draw.once_in(3) ? draw(1, 1'000'000) : draw(1, 300'000'000);
    if (is_lossless(transport) && draw.once_in(2)) failures.retransmit_ps = draw(5'000'000, 100'000'000);
    const auto flows = failing_flows(drawn.network, failures);
    Counters counters;
    const auto done = play(drawn.network.problem, *flows, counters);
    INFO("seed " << seed << ", " << transport.kind << ", routing " << static_cast<int>(transport.routing) << ", fabric "
                 << static_cast<int>(transport.fabric) << ", acks " << static_cast<int>(transport.acks));
    REQUIRE(done.size() == drawn.network.problem.arrivals.size());
    std::set<FlowId> ids;
    for (const Completion& one : done) ids.insert(one.id);
    REQUIRE(ids.size() == done.size());
    REQUIRE(flows->drained());
    if (is_lossless(transport)) {
      CHECK(counters.drops == 0);
      CHECK(counters.retransmissions <= counters.lost);
      if (transport.acks == Acks::coalesced) {
        // What goes into the GPUs at the ends: every packet once, but for those that their own cables lost.
        REQUIRE(counters.retransmissions == counters.lost);
        std::int64_t packets = 0, arrived = 0;
        for (const auto& arrival : drawn.network.problem.arrivals) packets += packets_of(transport, arrival.bytes);
        const std::vector<LinkLoad> loads = flows->loads();
        bool own_cable = false;
        for (std::uint32_t link = 0; link < loads.size(); ++link)
          if (drawn.network.graph->vertices[drawn.network.graph->links[link].to] == VertexKind::gpu) {
            arrived += loads[link].packets;
            own_cable |= drawn.cables.count(link & ~1u) > 0;
          }
        if (!own_cable) CHECK(arrived == packets);
        exact += counters.lost > 0 && !own_cable;
      }
    }
    seen.emplace(transport.kind, routing_of(transport));
    lost_any += counters.lost > 0;
    paused += counters.lost > 0 && counters.pauses > 0;
    ++ran;
  }
  CHECK(ran >= 60);
  CHECK(lost_any >= 40);
  CHECK(exact >= 5);
  CHECK(paused >= 5);
  CHECK(seen.size() > 20);
}

TEST_CASE("pauses that a dead cable leaves behind end, and what they held back goes on") {
  // GPU 0 sends over a cable that is slower than its NIC, so that its leaf pauses the NIC; the cable fails; what it
  // sends to a neighbour goes on before routes avoid the cable.
  Graph graph;
  for (const char* name : {"gpu0", "gpu1", "gpu2"}) graph.add_vertex(VertexKind::gpu, name);
  for (const char* name : {"leaf0", "leaf1"}) graph.add_vertex(VertexKind::network_switch, name);
  graph.add_cable(0, 3, LinkKind::network, kRate, 500'000);
  graph.add_cable(1, 4, LinkKind::network, kRate, 500'000);
  graph.add_cable(2, 3, LinkKind::network, kRate, 500'000);
  for (int i = 0; i < 2; ++i) graph.add_cable(3, 4, LinkKind::network, kRate / 8, 500'000);
  manyworlds::tests::Network network{std::make_shared<const Graph>(graph), {}};
  Transport& transport = network.problem.transport;
  transport.pfc_xoff_bytes = 20 * 4160, transport.pfc_xon_bytes = 10 * 4160;
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) network.problem.links.push_back(spec_of(graph, link));
  Router router(network.graph, path_choice_of(transport));
  network.problem.routes = {router.route(0, 1, 0), router.route(0, 2, 1)};
  network.problem.arrivals = {{0, {0, 0}, 0, 600 * 4096}, {0, {0, 1}, 1, 300 * 4096}};
  network.problem.ranks = {0};
  constexpr Time kFails = 30'000'000, kOutage = 1'000'000'000;
  const auto flows = failing_flows(network, {{{network.problem.routes[0][1], kFails}}, kOutage, 0});
  Counters counters;
  const auto done = play(network.problem, *flows, counters);
  REQUIRE(done.size() == 2);
  CHECK(counters.pauses > 0);
  CHECK(done[0].id.transfer == 1);
  // It has its half of the NIC at least, once the pause has ended.
  CHECK(done[0].at < kFails + 2 * 300 * kPacket + 10'000'000);
  CHECK(done[1].at > kFails + kOutage);
  CHECK(flows->drained());
}

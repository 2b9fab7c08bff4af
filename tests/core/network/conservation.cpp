// Conservation on drawn graphs, transports and loss, whatever the engine: every byte sent arrives once, no port exceeds
// its rate, no lossless fabric drops, and what goes into a switch comes out or was dropped.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "core/network/flows/component_cache.hpp"
#include "tests/core/network/drawn_networks.hpp"
#include "tests/core/network/smaller_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

// ---- What must be carried ----

struct Amount {
  std::int64_t packets = 0, bytes = 0;
  Amount& operator+=(const Amount& other) {
    packets += other.packets, bytes += other.bytes;
    return *this;
  }
  bool operator==(const Amount&) const = default;
};
bool less_of_any(const Amount& a, const Amount& b) {
  return a.packets < b.packets || a.bytes < b.bytes;
}
std::string text(const Amount& amount) {
  return fmt::format("{} packets, {} B", amount.packets, amount.bytes);
}

Amount data_of(const Transport& transport, std::int64_t bytes) {
  const std::int64_t packets = packets_of(transport, bytes);
  return {packets, bytes + packets * transport.header_bytes};
}
/// One for each packet, if they are packets.
Amount acks_of(const Transport& transport, std::int64_t bytes) {
  if (transport.acks == Acks::coalesced) return {};
  const std::int64_t packets = packets_of(transport, bytes);
  return {packets, packets * transport.ack_bytes};
}

/// By link, if every packet goes once over its route and every acknowledgement over that back, which the engine draws
/// from the number of the route.
std::vector<Amount> pinned_loads(const Graph& graph, const Problem& problem) {
  Router router(std::make_shared<const Graph>(graph), problem.transport.routing,
                static_cast<std::uint64_t>(problem.transport.seed));
  std::vector<Amount> loads(graph.links.size());
  for (const auto& arrival : problem.arrivals) {
    const Route& there = problem.routes[arrival.route];
    for (const std::uint32_t link : there) loads[link] += data_of(problem.transport, arrival.bytes);
    const std::uint32_t source = graph.links[there.front()].from, destination = graph.links[there.back()].to;
    for (const std::uint32_t link : router.route(destination, source, arrival.route))
      loads[link] += acks_of(problem.transport, arrival.bytes);
  }
  return loads;
}

// ---- A run ----

struct Run {
  std::vector<Completion> done;
  Counters counters;
  std::vector<LinkLoad> loads;  // by link; empty where the routes tell
  Time last_activity = 0;
  std::string too_fast;  // the first port that sent more between two instants than it can
};

/// What a port may have counted as sent between two instants beyond their distance: a packet begun before the second
/// and, where ports catch up or know ahead when control packets go, what is on the link and those packets (of which a
/// switch has room for twice its queue, a NIC for all).
Time slack_of(const Graph& graph, const Link& link, const Transport& transport) {
  const std::int64_t bits = link.bits_per_second;
  const Time packet = serialization_ps(transport.payload_bytes + transport.header_bytes, bits);
  if (!transport_type(transport).trims) return transport.fabric == Fabric::lossy ? packet + link.latency_ps : packet;
  return link.from < graph.gpus ? kSecond
                                : packet + link.latency_ps + serialization_ps(2 * transport.queue_bytes, bits);
}

Run run(Flows& flows, const Network& network, const Problem& problem) {
  Run run;
  Time before = 0;
  std::vector<LinkLoad> loads = flows.loads();
  run.done = play(problem, flows, run.counters, [&](const Flows& at) {
    run.loads = at.loads();
    for (std::size_t i = 0; i < run.loads.size(); ++i) {
      const Time busy = run.loads[i].busy_ps - loads[i].busy_ps;
      const Link& link = network.graph->links[i];
      if (run.too_fast.empty() && busy > at.now() - before + slack_of(*network.graph, link, problem.transport))
        run.too_fast = fmt::format("link {} is busy for {} ps between {} and {}", i, busy, before, at.now());
    }
    loads = run.loads, before = at.now();
  });
  run.last_activity = flows.last_activity();
  if (!flows.drained()) run.too_fast += "it does not drain";
  return run;
}

// ---- What must hold ----

/// No transfer is faster than its bytes out of its NICs and one shortest way, or, on one path, than alone on it.
Time least_time(const Network& network, const Problem& problem, const Problem::Arrival& arrival) {
  const Route& route = problem.routes[arrival.route];
  if (problem.transport.routing <= Routing::ecmp_hash && !transport_type(problem.transport).trims) {
    std::vector<LinkSpec> path;
    for (const std::uint32_t link : route) path.push_back(problem.links[link]);
    return problem.transport.fabric == Fabric::lossless ? uncontended_ps(problem.transport, path, arrival.bytes)
                                                        : 0;  // a packet sent again may be the last to arrive
  }
  Int128 rate = 0;
  for (const Link& link : network.graph->links)
    if (link.from == network.graph->links[route.front()].from) rate += link.bits_per_second;
  return static_cast<Time>(static_cast<Int128>(data_of(problem.transport, arrival.bytes).bytes) * 8 * kSecond / rate);
}

std::string fault_of_ends(const Network& network, const Problem& problem, const Run& run) {
  std::map<FlowId, Time> ends;
  for (const Completion& completion : run.done)
    if (!ends.emplace(completion.id, completion.at).second)
      return fmt::format("transfer {} ends twice", completion.id.transfer);
  if (ends.size() != problem.arrivals.size())
    return fmt::format("{} of {} transfers end", ends.size(), problem.arrivals.size());
  for (const auto& arrival : problem.arrivals)
    if (const Time took = ends.at(arrival.id) - arrival.at; took < least_time(network, problem, arrival))
      return fmt::format("transfer {} takes {} ps, less than {}", arrival.id.transfer, took,
                         least_time(network, problem, arrival));
  return run.too_fast;
}

std::string fault_of_counters(const Problem& problem, const Counters& seen) {
  const Transport& transport = problem.transport;
  if (transport_type(transport).trims)
    return seen.retransmissions < seen.trims
               ? fmt::format("{} trimmed, {} sent again", seen.trims, seen.retransmissions)
               : "";
  if (seen.trims > 0) return "packets are trimmed";
  if (transport.fabric == Fabric::lossless)
    return seen.drops + seen.retransmissions > 0
               ? fmt::format("a lossless fabric drops {} and repeats {}", seen.drops, seen.retransmissions)
               : "";
  return transport.acks == Acks::coalesced && seen.retransmissions < seen.drops
             ? fmt::format("{} dropped, {} sent again", seen.drops, seen.retransmissions)
             : "";
}

/// Each link by itself: its packets' serialisation is that of its bytes, and there was time for it.
std::string fault_of_rates(const Network& network, const Problem& problem, const Run& run) {
  std::int64_t hops = 0;
  for (std::size_t i = 0; i < run.loads.size(); ++i) {
    const LinkLoad& load = run.loads[i];
    const Int128 exact = static_cast<Int128>(load.bytes) * 8 * kSecond;
    const Int128 busy = static_cast<Int128>(load.busy_ps) * network.graph->links[i].bits_per_second;
    hops += load.packets;
    if (busy < exact || busy >= exact + static_cast<Int128>(load.packets + 1) * network.graph->links[i].bits_per_second)
      return fmt::format("link {} sends {} B in {} ps", i, load.bytes, load.busy_ps);
    if (load.busy_ps > run.last_activity - problem.arrivals.front().at)
      return fmt::format("link {} is busy for {} ps until {}", i, load.busy_ps, run.last_activity);
  }
  return hops == run.counters.link_hops ? "" : fmt::format("{} link-hops, {} counted", hops, run.counters.link_hops);
}

/// What goes into each switch comes out or was dropped there; what leaves and reaches each GPU is what its transfers
/// need, and where nothing is lost, no more.
std::string fault_of_vertices(const Network& network, const Problem& problem, const Run& run) {
  const Graph& graph = *network.graph;
  const Transport& transport = problem.transport;
  std::vector<Amount> in(graph.vertices.size()), out(in), sent(in), received(in);
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const Amount load{run.loads[i].packets, run.loads[i].bytes};
    out[graph.links[i].from] += load, in[graph.links[i].to] += load;
  }
  Amount data;
  for (const auto& arrival : problem.arrivals) {
    const Route& route = problem.routes[arrival.route];
    const std::uint32_t source = graph.links[route.front()].from, destination = graph.links[route.back()].to;
    const Amount there = data_of(transport, arrival.bytes);
    data += there;
    sent[source] += there, received[destination] += there;
    if (transport.fabric == Fabric::lossy) continue;  // an acknowledgement may be lost, and need not come again
    sent[destination] += acks_of(transport, arrival.bytes), received[source] += acks_of(transport, arrival.bytes);
  }
  const bool trims = transport_type(transport).trims, lossless = transport.fabric == Fabric::lossless && !trims;
  std::int64_t lost = 0, from_gpus = 0;
  for (std::uint32_t vertex = 0; vertex < graph.vertices.size(); ++vertex) {
    if (vertex >= graph.gpus) {
      if (less_of_any(in[vertex], out[vertex]) || (lossless && !(in[vertex] == out[vertex])))
        return fmt::format("into {} go {}, out of it {}", graph.names[vertex], text(in[vertex]), text(out[vertex]));
      lost += in[vertex].packets - out[vertex].packets;
      continue;
    }
    from_gpus += out[vertex].packets;
    if (less_of_any(out[vertex], sent[vertex]) || (lossless && !(out[vertex] == sent[vertex])))
      return fmt::format("{} sends {}, its transfers are {}", graph.names[vertex], text(out[vertex]),
                         text(sent[vertex]));
    if (less_of_any(in[vertex], received[vertex]) || (lossless && !(in[vertex] == received[vertex])))
      return fmt::format("{} receives {}, its transfers are {}", graph.names[vertex], text(in[vertex]),
                         text(received[vertex]));
  }
  if (lost != run.counters.drops) return fmt::format("{} packets are lost, {} dropped", lost, run.counters.drops);
  if (!trims && transport.acks == Acks::coalesced && from_gpus != data.packets + run.counters.retransmissions)
    return fmt::format("{} packets leave for {}, {} of them again", from_gpus, data.packets,
                       run.counters.retransmissions);
  return "";
}

/// On one path each, links carry what goes over them, and where nothing is lost, no more.
std::string fault_of_routes(const Network& network, const Problem& problem, const Run& run) {
  const Transport& transport = problem.transport;
  if (transport.routing > Routing::ecmp_hash || transport_type(transport).trims) return "";
  const bool lossless = transport.fabric == Fabric::lossless;
  Problem one_way = problem;
  if (!lossless) one_way.transport.acks = Acks::coalesced;
  const std::vector<Amount> expected = pinned_loads(*network.graph, one_way);
  std::int64_t hops = 0;
  for (const Amount& each : expected) hops += each.packets;
  if (run.loads.empty())
    return hops == run.counters.link_hops ? "" : fmt::format("{} link-hops, not {}", run.counters.link_hops, hops);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const Amount load{run.loads[i].packets, run.loads[i].bytes};
        lossless ? !(load == expected[i]) : less_of_any(load, expected[i]))
      return fmt::format("link {} carries {}, over it go {}", i, text(load), text(expected[i]));
  return "";
}

/// What is wrong with a run of the problem on this graph; "" if nothing is.
std::string fault_of(Flows& flows, const Network& network, const Problem& problem, Counters& seen) {
  if (problem.arrivals.empty()) return "";
  const Run result = run(flows, network, problem);
  seen += result.counters;
  std::string fault = fault_of_ends(network, problem, result);
  if (fault.empty()) fault = fault_of_counters(problem, result.counters);
  if (fault.empty()) fault = fault_of_routes(network, problem, result);
  if (fault.empty() && !result.loads.empty()) fault = fault_of_rates(network, problem, result);
  if (fault.empty() && !result.loads.empty()) fault = fault_of_vertices(network, problem, result);
  return fault;
}

}  // namespace

TEST_CASE("every byte arrives once, no port exceeds its rate and no lossless fabric drops, on 10,000 drawn networks") {
  Counters seen;
  std::set<std::string> kinds;
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    const Network network = draw_network(seed, false);
    const std::string fault = smallest_fault(network.problem, [&](const Problem& problem) {
      return fault_of(*make_per_packet_flows(problem.transport, network.graph), network, problem, seen);
    });
    INFO("seed " << seed << "\n" << fault);
    REQUIRE(fault.empty());
    kinds.insert(network.problem.transport.kind);
  }
  CHECK(kinds.size() == transports().size());
  CHECK(seen.pauses > 1'000);  // the draws do reach pausing, marking, loss, trimming and repetition
  CHECK(seen.ecn_marks > 1'000);
  CHECK(seen.drops > 1'000);
  CHECK(seen.trims > 1'000);
  CHECK(seen.retransmissions > 1'000);
}

TEST_CASE("so it is in one event loop and divided, on 2,000 drawn networks of pinned paths") {
  Counters seen;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const Network network = draw_network(seed, true);
    const std::string fault = smallest_fault(network.problem, [&](const Problem& problem) {
      const std::string plain = fault_of(*make_plain_flows(problem.transport), network, problem, seen);
      ComponentCache cache(problem.transport);
      return plain.empty() ? fault_of(*make_decomposed_flows(problem.transport, cache), network, problem, seen) : plain;
    });
    INFO("seed " << seed << "\n" << fault);
    REQUIRE(fault.empty());
  }
  CHECK(seen.pauses > 1'000);
  CHECK(seen.ecn_marks > 1'000);
}

TEST_CASE("a problem is reduced to the flows, bytes and starts without which it does not fail") {
  const Network network = draw_network(5, true);
  Problem problem = network.problem;
  problem.arrivals.clear();
  for (std::uint32_t i = 0; i < 9; ++i) problem.arrivals.push_back({1'000 * (i + 1), {0, i}, 0, 5'000});
  const Problem small = reduced(problem, [](const Problem& smaller) {
    std::int64_t third = 0, fifth = 0;
    for (const auto& arrival : smaller.arrivals) {
      if (arrival.id.transfer == 3) third = arrival.bytes;
      if (arrival.id.transfer == 5) fifth = arrival.at;
    }
    return third >= 1'000 && fifth >= 1;
  });
  REQUIRE(small.arrivals.size() == 2);
  for (const auto& arrival : small.arrivals) {
    CHECK((arrival.id.transfer == 3 ? arrival.bytes >= 1'000 && arrival.bytes < 2'000 : arrival.bytes == 0));
    CHECK((arrival.id.transfer == 3 ? arrival.at == 0 : arrival.at == 6'000));
  }
  CHECK_THAT(smallest_fault(problem,
                            [](const Problem& smaller) -> std::string {
                              if (!smaller.arrivals.empty()) throw InputError("no");
                              return "";
                            }),
             Catch::StartsWith("throws: no") && Catch::Contains("0.0 of 0 B over"));
}

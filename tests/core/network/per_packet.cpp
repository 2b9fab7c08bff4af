// The per-packet engine: EQDS and congestion control on paths that are chosen hop by hop.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "core/base/hash.hpp"
#include "core/network/per_packet/congestion_controlled.hpp"
#include "core/network/per_packet/eqds.hpp"
#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/static_window.hpp"
#include "tests/core/network/fat_tree_runs.hpp"

namespace {

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using per_packet::CongestionControlled;
using per_packet::Eqds;
using per_packet::EqdsParameters;
using per_packet::NetworkOptions;
using per_packet::PathGranularity;
using per_packet::PortKind;
using per_packet::SenderOptions;
using per_packet::Steering;

constexpr std::int64_t kPayload = 4086, kHeader = 64, kFull = kPayload + kHeader;

NetworkOptions trimming() {
  NetworkOptions options;
  options.ports = PortKind::trimming;
  options.full_packet_bytes = kFull;
  options.control_bytes = kHeader;
  options.queue_bytes = 35 * kFull;
  return options;
}

NetworkOptions pausing() {
  NetworkOptions options;
  options.full_packet_bytes = kFull;
  options.control_bytes = kHeader;
  options.pfc_xoff_bytes = 15 * kFull;
  options.pfc_xon_bytes = 12 * kFull;
  options.buffer_bytes = 1 << 24;
  return options;
}

template <class Engine>
std::vector<Time> completions(Engine& engine, std::size_t flows) {
  std::vector<Time> ends(flows);
  std::vector<std::uint32_t> slots;
  for (std::size_t done = 0; done < flows; done += slots.size()) {
    slots.clear();
    engine.run(kNever, slots);
    REQUIRE(!slots.empty());
    for (const std::uint32_t slot : slots) ends[slot] = engine.now();  // nothing starts later: slots are numbers
  }
  std::vector<std::uint32_t> none;
  while (!engine.drained()) engine.run(engine.now() + kMicrosecond, none);
  REQUIRE(none.empty());
  return ends;
}

struct EqdsRun {
  std::vector<Time> delivered, acknowledged;
  Counters counters;
};

EqdsRun run_eqds(std::uint32_t k, const std::vector<TableFlow>& flows) {
  EqdsParameters parameters;
  parameters.payload_bytes = kPayload;
  Eqds engine(trimming(), parameters, std::make_shared<ForwardingTables>(k_ary_tree(k)));
  engine.record_acknowledgements();
  REQUIRE(!flows.empty());
  for (std::uint32_t i = 0; i < flows.size(); ++i)
    engine.start(engine.add_route(flows[i].source, flows[i].destination), flows[i].bytes, i, i);
  EqdsRun run;
  run.delivered = completions(engine, flows.size());
  run.acknowledged.resize(flows.size());
  for (const auto& [order, at] : engine.acknowledgements()) run.acknowledged[order] = at;
  run.counters = engine.network().counters();
  return run;
}

/// Within 3 % of what htsim gave (tests/flows/README.md), and never faster than the bytes allow.
void check_table(std::uint32_t k, const std::string& table, double mean, double p99, double floor) {
  const EqdsRun run = run_eqds(k, flow_table(table));
  const Figures seen = figures_of(run.acknowledged);
  CAPTURE(table, seen.mean, seen.p99);
  CHECK(seen.mean == Approx(mean).epsilon(0.03));
  CHECK(seen.p99 == Approx(p99).epsilon(0.03));
  CHECK(figures_of(run.delivered).least >= floor);
  CHECK(run.counters.drops == 0);
}

}  // namespace

TEST_CASE("EQDS completes permutations and incasts within 3 % of htsim") {
  const double packet_us = static_cast<double>(serialization_ps(kFull, 400'000'000'000)) / 1e6;
  check_table(8, "perm128_4MB", 121.27, 135.50, 979 * packet_us);
  check_table(8, "incast32_2MB", 1328.4, 1331.2, 0);
  check_table(8, "incast64_2MB", 2647.8, 2652.4, 0);
  CHECK(figures_of(run_eqds(8, flow_table("incast32_2MB")).delivered).p99 >= 32 * 490 * packet_us);
}

// htsim_eqds of csg-htsim with the same flows: -nodes 128 -linkspeed 400000 -mtu 4150 -q 35 -paths 128 -strat ecmp_host
// -hop_latency 1. Every transfer is shorter than its window, and each sender has 127 of them, so that acknowledgements
// come when most of their packets have not been sent.
TEST_CASE("EQDS completes an all-to-all of 128 hosts within 3 % of htsim, and nobody waits for a timeout") {
  std::vector<TableFlow> flows;
  for (std::uint32_t source = 0; source < 128; ++source)
    for (std::uint32_t distance = 1; distance < 128; ++distance)
      flows.push_back({source, (source + distance) % 128, 131'072});
  const EqdsRun run = run_eqds(8, flows);
  const Figures seen = figures_of(run.acknowledged);
  CAPTURE(seen.mean, seen.p99, run.counters.retransmissions, run.counters.trims);
  CHECK(seen.mean == Approx(358.69).epsilon(0.03));
  CHECK(seen.p99 == Approx(368.80).epsilon(0.03));
  CHECK(run.counters.retransmissions <= run.counters.trims);
}

TEST_CASE("EQDS completes a permutation of 1,024 hosts within 3 % of htsim", "[.slow]") {
  check_table(16, "perm1024_1MB", 46.19, 47.91, 20.3);
}

TEST_CASE("an uncontended transfer of either endpoint meets the closed form of store and forward") {
  const Time packet = serialization_ps(kFull, 400'000'000'000), latency = kMicrosecond;
  for (const std::uint32_t to : {1u, 4u, 100u}) {
    const std::int64_t hops = to == 1 ? 2 : to == 4 ? 4 : 6;
    for (const std::int64_t packets : {1, 2, 40}) {
      const Time expected = hops * (packet + latency) + (packets - 1) * packet;
      EqdsParameters parameters;
      parameters.payload_bytes = kPayload;
      Eqds eqds(trimming(), parameters, std::make_shared<ForwardingTables>(k_ary_tree(8)));
      eqds.start(eqds.add_route(0, to), packets * kPayload, 0, 7);
      CHECK(completions(eqds, 1) == std::vector<Time>{expected});
      SenderOptions options;
      options.payload_bytes = kPayload;
      for (const bool in_band : {false, true}) {
        options.acks_in_band = in_band;
        CongestionControlled<StaticWindow> managed(pausing(), options, {1 << 26},
                                                   std::make_shared<ForwardingTables>(k_ary_tree(8)));
        managed.start(managed.add_route(0, to), packets * kPayload, 0, 7);
        CHECK(completions(managed, 1) == std::vector<Time>{expected});
        CHECK(managed.network().counters().link_hops == packets * hops * (in_band ? 2 : 1));
      }
    }
  }
}

TEST_CASE("forwarding offers exactly the links that lead nearer by their weight") {
  const auto graph = k_ary_tree(4);
  ForwardingTables forwarding(graph);
  for (const std::uint32_t source : {0u, 3u, 9u})
    for (std::uint32_t destination = 0; destination < graph->gpus; ++destination) {
      if (source == destination) continue;
      // Every walk that takes any candidate ends at the destination after as many links as any other.
      std::set<std::size_t> lengths;
      std::set<std::vector<std::uint32_t>> paths;
      std::vector<std::vector<std::uint32_t>> open;
      for (const std::uint32_t link : forwarding.first_hop_links(source, destination)) open.push_back({link});
      while (!open.empty()) {
        const auto path = open.back();
        open.pop_back();
        const std::uint32_t at = graph->links[path.back()].to;
        if (at == destination) {
          lengths.insert(path.size());
          paths.insert(path);
          continue;
        }
        REQUIRE(path.size() < 8);
        for (const std::uint32_t link : forwarding.next_hops(at, destination)) {
          CHECK(graph->links[link].from == at);
          open.push_back(path);
          open.back().push_back(link);
        }
      }
      const bool leaf = source / 2 == destination / 2, pod = source / 4 == destination / 4;
      CHECK(lengths == std::set<std::size_t>{leaf ? 2u : pod ? 4u : 6u});
      CHECK(paths.size() == (leaf ? 1u : pod ? 2u : 4u));  // one, k/2, (k/2)^2
    }
}

TEST_CASE("every byte arrives once on any port, spread and loss, and nothing is left behind") {
  std::int64_t drops = 0, trims = 0, pauses = 0, repeats = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto draw = [&](std::uint64_t number, std::uint64_t below) {
      return static_cast<std::uint32_t>(splitmix64(seed * 1'000 + number) % below);
    };
    NetworkOptions network = pausing();
    network.ports = static_cast<PortKind>(draw(0, 3));
    network.steering = draw(1, 2) == 0 ? Steering::hashed : Steering::adaptive;
    network.queue_bytes = (2 + draw(2, 20)) * kFull;
    SenderOptions options;
    options.payload_bytes = kPayload;
    options.seed = seed;
    options.path_granularity = static_cast<PathGranularity>(draw(3, 3));
    options.acks_in_band = draw(4, 2) == 0;
    const auto forwarding = std::make_shared<ForwardingTables>(k_ary_tree(4));
    const std::size_t flows = 2 + draw(5, 30);
    const auto play = [&](auto engine) {
      std::int64_t least_hops = 0;
      for (std::uint32_t i = 0; i < flows; ++i) {
        const std::uint32_t destination = draw(6 + 3 * i, draw(7, 2) == 0 ? 2 : 16);
        const std::uint32_t source = (destination + 1 + draw(7 + 3 * i, 15)) % 16;
        const std::int64_t bytes = draw(8 + 3 * i, 400'000);
        engine.start(engine.add_route(source, destination), bytes, i, i);
        least_hops += std::max<std::int64_t>(1, (bytes + kPayload - 1) / kPayload) * 2;
      }
      CAPTURE(seed);
      const auto ends = completions(engine, flows);  // which requires each to complete once
      CHECK(*std::min_element(ends.begin(), ends.end()) > 0);
      const auto& seen = engine.network().counters();
      CHECK(seen.link_hops >= least_hops);
      if (network.ports == PortKind::lossless) CHECK(seen.drops + seen.trims + seen.retransmissions == 0);
      drops += seen.drops, trims += seen.trims, pauses += seen.pauses, repeats += seen.retransmissions;
    };
    if (network.ports == PortKind::trimming) {
      EqdsParameters parameters;
      parameters.payload_bytes = kPayload;
      parameters.seed = seed;
      network.steering = Steering::hashed;  // its senders choose the ways
      play(Eqds(network, parameters, forwarding));
    } else {
      play(CongestionControlled<Dcqcn>(network, options, {}, forwarding));
    }
  }
  CHECK(drops > 100);  // the draws do reach loss, trimming, pauses and repetition
  CHECK(trims > 100);
  CHECK(pauses > 100);
  CHECK(repeats > 100);
}

TEST_CASE("a GPU that relays another's packets trims those, not its own, and both transfers end") {
  // Two nodes of two GPUs, on two rails: packets of gpu1 to gpu2 go over gpu0, whose own wait for the same cable.
  auto graph = std::make_shared<Graph>();
  for (int i = 0; i < 4; ++i) graph->add_vertex(VertexKind::gpu, "gpu" + std::to_string(i));
  for (int i = 0; i < 2; ++i) graph->add_vertex(VertexKind::scale_up_switch, "node" + std::to_string(i));
  for (int i = 0; i < 2; ++i) graph->add_vertex(VertexKind::network_switch, "rail" + std::to_string(i));
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
    graph->add_cable(gpu, 4 + gpu / 2, LinkKind::scale_up, 3'600'000'000'000, kMicrosecond / 2);
    graph->add_cable(gpu, 6 + gpu % 2, LinkKind::network, 400'000'000'000, kMicrosecond);
  }
  graph->gpus_relay = true;
  const Time packet = serialization_ps(kFull, 400'000'000'000);
  constexpr std::int64_t kPackets = 400;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EqdsParameters parameters;
    parameters.payload_bytes = kPayload;
    parameters.seed = seed;
    Eqds engine(trimming(), parameters, std::make_shared<ForwardingTables>(graph));
    for (const std::uint32_t from : {0u, 1u}) engine.start(engine.add_route(from, 2), kPackets * kPayload, from, from);
    std::vector<std::uint32_t> ended;
    while (ended.size() < 2 && engine.now() < 10 * kMillisecond) engine.run(10 * kMillisecond, ended);
    CAPTURE(seed, engine.now());
    REQUIRE(ended.size() == 2);
    CHECK(engine.now() >= 2 * kPackets * packet);  // all of it crosses one NIC
    CHECK(engine.now() < 3 * kPackets * packet);
    CHECK(engine.network().counters().trims > 0);
    CHECK(engine.network().counters().drops == 0);
  }
}

TEST_CASE("renamed switches and links change nothing") {
  // The same tree with its switches' cables laid in the same order from every switch, but numbered the other way round.
  const auto plain = k_ary_tree(4);
  auto renamed = std::make_shared<Graph>(*plain);
  const auto count = static_cast<std::uint32_t>(plain->vertices.size());
  const auto rename = [&](std::uint32_t vertex) {
    return vertex < plain->gpus ? vertex : plain->gpus + (count - 1 - vertex);
  };
  for (Link& link : renamed->links) link.from = rename(link.from), link.to = rename(link.to);
  std::vector<std::vector<Time>> seen;
  for (const auto& graph : {std::shared_ptr<const Graph>(plain), std::shared_ptr<const Graph>(renamed)}) {
    EqdsParameters parameters;
    parameters.payload_bytes = kPayload;
    Eqds engine(trimming(), parameters, std::make_shared<ForwardingTables>(graph));
    for (std::uint32_t i = 0; i < 16; ++i) engine.start(engine.add_route(i, (i * 7 + 5) % 16), 300'000, i, i);
    seen.push_back(completions(engine, 16));
  }
  CHECK(seen[0] == seen[1]);
}

TEST_CASE("acknowledgements in band cost what they occupy, and never make a lone transfer slower") {
  std::vector<double> means;
  for (const bool in_band : {false, true}) {
    SenderOptions options;
    options.payload_bytes = kPayload;
    options.acks_in_band = in_band;
    options.path_granularity = PathGranularity::per_packet;
    CongestionControlled<StaticWindow> engine(pausing(), options, {1 << 20},
                                              std::make_shared<ForwardingTables>(k_ary_tree(4)));
    for (std::uint32_t i = 0; i < 16; ++i) engine.start(engine.add_route(i, (i + 5) % 16), 2'000'000, i, i);
    means.push_back(figures_of(completions(engine, 16)).mean);
  }
  CAPTURE(means);
  CHECK(means[1] > means[0]);  // 64 B more for every 4,150 on links that are full
  CHECK(means[1] < 1.1 * means[0]);
}

TEST_CASE("transfers that pause each other for ever are an input error that names the ports") {
  // Three switches in a ring, each sending to the host two switches on, over tiny buffers.
  auto graph = std::make_shared<Graph>();
  for (int i = 0; i < 3; ++i) graph->add_vertex(VertexKind::gpu, "gpu" + std::to_string(i));
  for (int i = 0; i < 3; ++i) graph->add_vertex(VertexKind::network_switch, "switch" + std::to_string(i));
  std::vector<std::uint32_t> up, down, round;
  for (std::uint32_t i = 0; i < 3; ++i)
    up.push_back(graph->add_cable(i, 3 + i, LinkKind::network, 400'000'000'000, kMicrosecond)),
        down.push_back(up[i] + 1);
  for (std::uint32_t i = 0; i < 3; ++i)
    round.push_back(graph->add_cable(3 + i, 3 + (i + 1) % 3, LinkKind::network, 100'000'000'000, kMicrosecond));
  NetworkOptions network = pausing();
  network.steering = Steering::pinned;
  CongestionControlled<StaticWindow> engine(network, {}, {1 << 26}, std::make_shared<ForwardingTables>(graph));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::uint32_t to = (i + 2) % 3;
    engine.start(engine.add_route(Route{up[i], round[i], round[(i + 1) % 3], down[to]}, Route{up[to], down[i]}),
                 40'000'000, i, i);
  }
  std::vector<std::uint32_t> done;
  std::string said;
  try {
    engine.run(kNever, done);
  } catch (const InputError& error) {
    said = error.what();
  }
  CHECK_THAT(said, Catch::Contains("switch0->switch1, switch1->switch2, switch2->switch0"));
}

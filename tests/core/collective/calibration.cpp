// A calibrated library's costs as equations, what it chooses by them, and that keys hold them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/library.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::core::collective;

namespace {

/// Round figures; one nanosecond for the root of a byte.
Calibration calibration() {
  Calibration result;
  result.launch_us = 20, result.hop_us = 2, result.hop_between_us = 5;
  result.copy_gb_per_s = 500, result.chunking_ns_per_sqrt_b = 1;
  result.ll_launch_us = 4, result.ll_hop_us = 1, result.ll_hop_between_us = 3, result.ll_gb_per_s = 2;
  result.in_switch_launch_us = 40, result.in_switch_copy_gb_per_s = 1'000;
  result.nic_share = 0.5;
  return result;
}

Library library(Algorithm all_reduce) {
  Library result;
  result.all_reduce = all_reduce;
  result.protocol = Protocol::calibrated;
  result.calibration = calibration();
  return result;
}

/// Bytes take 100 ps inside a node and 1,000 ps between nodes.
Communicator communicator(std::uint32_t members, std::uint32_t per_node) {
  return {members, per_node, {80'000'000'000, kMicrosecond}, {8'000'000'000, 2 * kMicrosecond}, true};
}

Shape shape_of(Kind kind, Algorithm algorithm, Protocol protocol, std::int64_t bytes) {
  Shape shape{kind, algorithm, 8, bytes, 8};
  shape.protocol = protocol;
  return shape;
}

}  // namespace

TEST_CASE(
    "Simple launches, copies at the ends and pays for its chunks, and halves of an all-reduce copy half as much") {
  const std::int64_t bytes = 1'000'000;  // 2 us at 500 GB/s, 1,000 ns for the root
  const auto costs_of_kind = [&](Kind kind, Algorithm algorithm) {
    return calibrated_costs(calibration(), shape_of(kind, algorithm, Protocol::calibrated_simple, bytes));
  };
  const ProtocolCosts whole = costs_of_kind(Kind::all_reduce, Algorithm::ring);
  CHECK(whole.launch_ps == 20'000'000 + 2'000'000 + 1'000'000);
  CHECK((whole.intra_node_ps == 2'000'000 && whole.inter_node_ps == 5'000'000));
  CHECK(whole.wire_bytes(4'096) == 4'096);
  CHECK(costs_of_kind(Kind::all_gather, Algorithm::ring).launch_ps == 20'000'000 + 1'500'000);
  const ProtocolCosts in_switch = costs_of_kind(Kind::all_reduce, Algorithm::in_switch);
  CHECK(in_switch.launch_ps == 40'000'000 + 1'000'000 + 1'000'000);
  CHECK((in_switch.intra_node_ps == 0 && in_switch.inter_node_ps == 0));
}

TEST_CASE("tokens are launched once, and pass the ends of their links only where no NIC is slower") {
  Calibration figures;
  figures.copy_gb_per_s = figures.ll_gb_per_s = 1;
  figures.hop_us = figures.hop_between_us = 5;
  figures.dispatch_launch_us = 20, figures.dispatch_copy_gb_per_s = 1'000;
  Shape shape{Kind::all_to_all, Algorithm::hybrid_ep, 8, 80'000'000, 8};
  shape.protocol = Protocol::calibrated_simple;
  const ProtocolCosts in_node = calibrated_costs(figures, shape);
  CHECK(in_node.launch_ps == (20 + 70) * kMicrosecond);  // 70 MB leave the member
  CHECK(in_node.intra_node_ps == 0);
  shape.per_node = 4;
  CHECK(calibrated_costs(figures, shape).launch_ps == 20 * kMicrosecond);
  CHECK(calibrated_costs(figures, shape).inter_node_ps == 0);
}

TEST_CASE("LL stores a member's part with its flags, in trees the whole vector, and doubles what is on the wire") {
  const std::int64_t bytes = 80'000;  // 10,000 of each of eight: 5 us at 2 GB/s
  const auto costs = [&](Algorithm algorithm) {
    return calibrated_costs(calibration(), shape_of(Kind::all_reduce, algorithm, Protocol::calibrated_ll, bytes));
  };
  CHECK(costs(Algorithm::ring).launch_ps == 4'000'000 + 5'000'000);
  CHECK(costs(Algorithm::double_tree).launch_ps == 4'000'000 + 40'000'000);
  CHECK((costs(Algorithm::ring).intra_node_ps == 1'000'000 && costs(Algorithm::ring).inter_node_ps == 3'000'000));
  CHECK(costs(Algorithm::ring).wire_bytes(4'096) == 8'192);
}

TEST_CASE("a calibrated ring in a node lasts as its equation says, packet by packet") {
  // Four GPUs, links of 1.6 Tb/s and 300 ns: each of six steps is a hop, a chunk, one packet more at the switch, and
  // two latencies.
  const auto graph = graph_of(Cluster{});
  network::Router router(graph, network::Routing::destination_mod_k, 1);
  const network::Transport transport;
  const Communicator node = step::communicator_of(router, {0, 1, 2, 3}, 4);
  const std::int64_t packets = 256, bytes = 4 * packets * 4'096;
  const Shape shape = choose_shape(library(Algorithm::ring), node, Kind::all_reduce, bytes);
  CHECK(shape.protocol == Protocol::calibrated_simple);
  const Dag dag = build(shape);
  step::Connections connections;
  for (const auto& [from, to] : dag.pairs) connections.routes.push_back(router.route(from, to, 0));
  network::ComponentCache cache(transport);
  const auto result = step::simulate_isolated(dag, connections, *graph, cache);
  const Time packet = serialization_ps(4'096 + 64, 1'600'000'000'000);
  const Time step = 2'000'000 + (packets + 1) * packet + 2 * 300'000;
  CHECK(*std::max_element(result.exits.begin(), result.exits.end()) == shape.calibrated.launch_ps + 6 * step);
}

TEST_CASE("a calibrated library takes LL for small messages, Simple for large ones, and is never faster for more") {
  for (const auto& [members, per_node] : {std::pair{8u, 8u}, {16u, 8u}, {8u, 1u}}) {
    const Communicator who = communicator(members, per_node);
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
      const auto picked = [&](std::int64_t bytes) {
        return choose_shape(library(Algorithm::automatic), who, kind, bytes);
      };
      CHECK(picked(64).protocol == Protocol::calibrated_ll);
      CHECK(picked(1 << 30).protocol == Protocol::calibrated_simple);
      Time before = 0;
      for (std::int64_t bytes = 64; bytes <= 1 << 30; bytes *= 2) {
        const Time lasts = predicted_ps(picked(bytes), who);
        CHECK(lasts >= before);
        before = lasts;
      }
    }
  }
}

TEST_CASE(
    "across nodes a calibrated ring leaves by every NIC of its members, and goes on while a block is on its way") {
  const auto ring = [](std::uint32_t members, std::uint32_t per_node) {
    return choose_shape(library(Algorithm::ring), communicator(members, per_node), Kind::all_gather, 1 << 30);
  };
  CHECK(ring(16, 8).channels == 8);
  CHECK(ring(16, 8).chunk_bytes == 1 << 30);
  CHECK(ring(8, 1).channels == 1);
  CHECK(ring(8, 8).channels == 1);
  CHECK(ring(8, 8).chunk_bytes == 0);
}

TEST_CASE("only libraries that were measured to reduce in switches do so, in a node, and may be told to") {
  const Communicator node = communicator(8, 8);
  const auto picked = [&](const Library& of) { return choose_shape(of, node, Kind::all_reduce, 1 << 28).algorithm; };
  Library all = library(Algorithm::automatic);
  CHECK(picked(all) == Algorithm::in_switch);
  CHECK(choose_shape(all, communicator(16, 8), Kind::all_reduce, 1 << 28).algorithm != Algorithm::in_switch);
  all.calibration.in_switch_copy_gb_per_s = 0;
  CHECK(picked(all) == Algorithm::ring);
  Library told = library(Algorithm::in_switch);
  CHECK(picked(told) == Algorithm::in_switch);
  told.calibration.in_switch_copy_gb_per_s = 0;
  CHECK_THROWS_AS(picked(told), InputError);
}

TEST_CASE(
    "in a switch chunks overlap the two halves: nearer to a vector and a shard on each link than to two vectors") {
  const auto graph = graph_of(Cluster{});
  network::Router router(graph, network::Routing::destination_mod_k, 1);
  const std::int64_t bytes = 256 << 20;
  const auto network_ps = [&](std::int64_t chunk_bytes) {
    Shape shape{Kind::all_reduce, Algorithm::in_switch, 4, bytes, 4};
    shape.chunk_bytes = chunk_bytes;
    const Dag dag = build(shape);
    step::Connections connections;
    for (std::size_t pair = 0; pair < dag.pairs.size(); ++pair)
      connections.routes.push_back(step::route_of(router, {dag.pairs, dag.switches}, {0, 1, 2, 3}, pair, 0));
    const network::Transport transport;
    network::ComponentCache cache(transport);
    const auto result = step::simulate_isolated(dag, connections, *graph, cache);
    return *std::max_element(result.exits.begin(), result.exits.end());
  };
  const Time sent = serialization_ps(bytes, 1'600'000'000'000);
  CHECK(network_ps(0) > 7 * sent / 4);
  CHECK(network_ps(bytes / 4 / 8) < 3 * sent / 2);
  CHECK(network_ps(bytes / 4 / 8) > 5 * sent / 4);
}

TEST_CASE("every figure of a calibrated library that a collective depends on is in its key") {
  const Communicator who = communicator(16, 8);
  const auto key = [&](const Library& of, std::int64_t bytes) {
    return step::collective_key(choose_shape(of, who, Kind::all_reduce, bytes), {}, {});
  };
  struct Figure {
    double Calibration::*member;
    std::int64_t bytes;
  };
  for (const Figure& figure :
       {Figure{&Calibration::launch_us, 1 << 30}, Figure{&Calibration::hop_us, 1 << 30},
        Figure{&Calibration::hop_between_us, 1 << 30}, Figure{&Calibration::copy_gb_per_s, 1 << 30},
        Figure{&Calibration::chunking_ns_per_sqrt_b, 1 << 30}, Figure{&Calibration::ll_launch_us, 64},
        Figure{&Calibration::ll_hop_us, 64}, Figure{&Calibration::ll_hop_between_us, 64},
        Figure{&Calibration::ll_gb_per_s, 64}}) {
    Library other = library(Algorithm::ring);
    other.calibration.*figure.member *= 1.5;
    CHECK(key(library(Algorithm::ring), figure.bytes) != key(other, figure.bytes));
  }
}

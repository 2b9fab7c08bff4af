// A calibrated library's costs as equations, and that keys hold them.
#include "core/collective/library/calibration.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/calibrated_costs.hpp"
#include "core/collective/library/library.hpp"
#include "core/step/layout/keys.hpp"
#include "tests/core/collective/simulated_collective.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::core::collective;

namespace {

/// 10 GB/s inside a node, 1 GB/s between nodes.
Communicator communicator(std::uint32_t members, std::uint32_t per_node) {
  return {members, per_node, {80'000'000'000, kMicrosecond}, {8'000'000'000, 2 * kMicrosecond}, true};
}

Shape shape_of(Kind kind, Algorithm algorithm, Protocol protocol, std::int64_t bytes, std::uint32_t per_node = 8) {
  Shape shape{kind, algorithm, 8, bytes, per_node};
  shape.protocol = protocol;
  return shape;
}

ProtocolCosts costs_of_shape(const Shape& shape, LibraryVersion version = LibraryVersion::v2_29) {
  return calibrated_costs(calibration(), version, communicator(shape.members, shape.per_node), shape, shape.algorithm);
}

Library library(Algorithm all_reduce) {
  Library result;
  result.all_reduce = all_reduce;
  result.protocol = Protocol::calibrated;
  result.calibration = calibration();
  return result;
}

constexpr std::int64_t kFill = 24 << 20;  // bytes at which half of the fill is paid

}  // namespace

TEST_CASE(
    "a ring's pipeline is the slower of a first slice that waits in every step and of a link that is always busy") {
  CHECK(pipeline(14, 6, 0) == 14 * 6);
  CHECK(pipeline(14, 6, 4) == 14 * (6 + 2) + 2);  // slices wait: 114 > 62
  CHECK(pipeline(14, 6, 20) == 6 + 14 * 20);      // the link is busy: 286 > 234
  CHECK(pipeline(14, 0, 20) == 14 * 20);
  CHECK(pipeline(1, 6, 20) == 6 + 20);
}

TEST_CASE("Simple launches, copies its own block and fills its channels, less of that in a reduce-scatter") {
  const auto costs = [](Kind kind) {
    return costs_of_shape(shape_of(kind, Algorithm::ring, Protocol::calibrated_simple, kFill));
  };
  // A block of 3 MiB takes 6,291,456 ps at 500 GB/s, and half of the fill is paid. It is 315 us on the link, which is
  // busy after the first hop of 8 us: the wire's latency in 14 steps is 6 us more than that, in 7 steps 1 us less.
  CHECK(costs(Kind::all_reduce).launch_ps == (20 + 5 - 6) * kMicrosecond + 6'291'456);
  CHECK(costs(Kind::all_reduce).intra_node_ps == 0);
  CHECK(costs(Kind::reduce_scatter).launch_ps == 22'500'000 + 6'291'456);
  CHECK(costs(Kind::reduce_scatter).intra_node_ps == 142'857);
  CHECK(costs(Kind::all_reduce).wire_bytes(4'096) == 4'096);
}

TEST_CASE("LL stores a block and a step's flags while the wire is not slower, and doubles what is on the wire") {
  const std::int64_t bytes = 8 * 2'048;  // half of what the threads store at once
  const ProtocolCosts ring =
      costs_of_shape(shape_of(Kind::all_reduce, Algorithm::ring, Protocol::calibrated_ll, bytes));
  CHECK(ring.launch_ps == 4'000'000 + 2'000'000 / 2 + 204'800);  // 2 KiB at 10 GB/s
  // A hop of 3 us, of which the wire is 1, and half of 1 us of stores, less 4,096 B on the wire at 10 GB/s.
  CHECK(ring.intra_node_ps == 2'000'000 + 500'000 - 409'600);
  CHECK(ring.inter_node_ps == 1'000'000);
  CHECK(ring.wire_bytes(4'096) == 8'192);
}

TEST_CASE("LL128 has 128 bytes for 120 at its share of the rate") {
  const ProtocolCosts ring =
      costs_of_shape(shape_of(Kind::all_reduce, Algorithm::ring, Protocol::calibrated_ll128, 8 * 1'200));
  CHECK(ring.wire_bytes(1'200) == 1'707);  // 1,280 / 0.75, rounded up
  CHECK(ring.wire_bytes(1'200, true) == 1'280);
  // A block takes 170.667 ns; half of it overlaps in the hop, and the last slice comes after the first.
  const double block = 1'200.0 * 128 / 120 / 7.5 * 1e-3, step = pipeline(14, 5, block) / 14;
  CHECK(ring.intra_node_ps == Approx((step - block - 1) * 1e6).margin(1));
  CHECK(ring.launch_ps == 12'000'000 + 2'400);
}

TEST_CASE("where the wire alone is slower than what was measured, the launch makes up for it") {
  Calibration quick = calibration();
  quick.ll_hop_us = 0.75, quick.ll_store_us = quick.ll_store_launch_us = 0;
  const Shape shape = shape_of(Kind::all_gather, Algorithm::ring, Protocol::calibrated_ll, 8);
  const ProtocolCosts costs =
      calibrated_costs(quick, LibraryVersion::v2_29, communicator(8, 8), shape, Algorithm::ring);
  CHECK(costs.intra_node_ps == 0);
  CHECK(costs.launch_ps == 4'000'000 + 100 - 7 * 250'000);
}

TEST_CASE("a reduction in switches copies the vector and pays for rounds of chunks, whose size follows the vector") {
  // 16 channels of 8 members: below 8 MiB 16 KiB, below 64 MiB 32, below 1 GiB 64.
  CHECK(in_switch_chunk(Architecture::hopper, 8, (8 << 20) - 1) == 16 << 10);
  CHECK(in_switch_chunk(Architecture::hopper, 8, 8 << 20) == 32 << 10);
  CHECK(in_switch_chunk(Architecture::hopper, 8, 64 << 20) == 64 << 10);
  CHECK(in_switch_chunk(Architecture::hopper, 8, (1 << 30) - 1) == 64 << 10);
  CHECK(in_switch_chunk(Architecture::hopper, 8, 1 << 30) == 128 << 10);
  CHECK(in_switch_chunk(Architecture::blackwell, 8, 64 << 20) == 32 << 10);
  const ProtocolCosts costs =
      costs_of_shape(shape_of(Kind::all_reduce, Algorithm::in_switch, Protocol::calibrated_simple, kFill));
  // 25,165,824 ps of copies at 1 TB/s, six rounds of 4 MiB, half of the fill, and twice the wire, which is in them.
  CHECK(costs.launch_ps == (40 + 6 * 3 + 8 - 2) * kMicrosecond + 25'165'824);
  CHECK((costs.intra_node_ps == 0 && costs.inter_node_ps == 0));
}

TEST_CASE(
    "an exchange pays for doublings of its members and for long messages, and sends at its own share of the rate") {
  const auto launch_us = [](std::int64_t message, LibraryVersion version) {
    const Shape shape = shape_of(Kind::all_to_all, Algorithm::pairwise, Protocol::calibrated_simple, 8 * message);
    return static_cast<double>(costs_of_shape(shape, version).launch_ps) / 1e6;
  };
  // Of 30 + 3 x 2 us, seven rounds of the wire are simulated.
  const auto rest = [](double message) { return message / 100e3 + 6 * 8 * message / (8 * message + kFill); };
  CHECK(launch_us(8, LibraryVersion::v2_29) == Approx(29 + 4 * 8 / 32'768.0 + rest(8)));
  CHECK(launch_us(65'536, LibraryVersion::v2_29) == Approx(29 + 4 + rest(65'536)));
  CHECK(launch_us(65'536, LibraryVersion::v2_26) == Approx(30 + 4 * (0.3 + 0.7 * 65'536 / 5e5) + rest(65'536)));
  const ProtocolCosts costs =
      costs_of_shape(shape_of(Kind::all_to_all, Algorithm::pairwise, Protocol::calibrated_simple, 8'000));
  CHECK(costs.wire_bytes(750) == 1'000);  // 0.6 of the rate, of which links have 0.8 already
}

TEST_CASE("older versions add to every launch and reach less of the links") {
  const Shape shape = shape_of(Kind::all_gather, Algorithm::ring, Protocol::calibrated_ll, 64);
  const auto launch_ps = [&](LibraryVersion version) { return costs_of_shape(shape, version).launch_ps; };
  CHECK(launch_ps(LibraryVersion::v2_23) - launch_ps(LibraryVersion::v2_29) == 2 * kMicrosecond);
  CHECK(launch_ps(LibraryVersion::v2_26) - launch_ps(LibraryVersion::v2_29) == kMicrosecond);
  CHECK(calibration().link_share_in(LibraryVersion::v2_26) == 0.8 * 0.5);
  CHECK(calibration().link_share_in(LibraryVersion::v2_29) == 0.8);
}

TEST_CASE("between nodes a ring's steps have the mean of its hops, and one that stands for it passes whole nodes") {
  const Shape ring = shape_of(Kind::all_reduce, Algorithm::ring, Protocol::calibrated_simple, 64, 4);
  // 14 steps, two of them between nodes: 12 x 8 + 2 x 14 us.
  const ProtocolCosts costs = costs_of_shape(ring);
  CHECK(costs.launch_ps == 20 * kMicrosecond);
  CHECK(costs.intra_node_ps == Approx(124e6 / 14 - 1e6).margin(1));
  CHECK(costs.inter_node_ps == Approx(124e6 / 14 - 2e6).margin(1));
  Shape two_level = ring;
  two_level.algorithm = Algorithm::two_level;
  const ProtocolCosts standing =
      calibrated_costs(calibration(), LibraryVersion::v2_29, communicator(8, 4), two_level, Algorithm::ring);
  CHECK(standing.intra_node_ps == 7'000'000);
  CHECK(standing.inter_node_ps == (14 + 3 * 8 - 2) * kMicrosecond);
  // As many latencies as in the ring: two steps between nodes, and 2 x 3 inside.
  CHECK(2 * (14 + 3 * 8) + 2 * 3 * 8 == 124);
}

TEST_CASE("a tree's hop of Simple contains a chunk, its rate is a share of the NIC's, and LL's is the host's") {
  Shape tree = shape_of(Kind::all_reduce, Algorithm::double_tree, Protocol::calibrated_simple, 1 << 20, 4);
  tree.chunk_bytes = 2'000;  // 4 us at half of 1 GB/s
  CHECK(costs_of_shape(tree).inter_node_ps == (14 - 4 - 2) * kMicrosecond);
  CHECK(costs_of_shape(tree).wire_bytes(1'000, true) == 2'000);
  tree.chunk_bytes = 1 << 20;
  CHECK(costs_of_shape(tree).inter_node_ps == (8 - 2) * kMicrosecond);
  tree.protocol = Protocol::calibrated_ll;
  CHECK(costs_of_shape(tree).inter_node_ps == (5 - 2) * kMicrosecond);
}

TEST_CASE("tokens are launched once, and pass the ends of their links only where no NIC is slower") {
  Calibration figures = calibration();
  figures.dispatch_launch_us = 20, figures.dispatch_copy_gb_per_s = 1'000;
  Shape shape{Kind::all_to_all, Algorithm::hybrid_ep, 8, 80'000'000, 8};
  shape.protocol = Protocol::calibrated_simple;
  const auto costs = [&] {
    return calibrated_costs(figures, LibraryVersion::v2_29, communicator(8, shape.per_node), shape, shape.algorithm);
  };
  CHECK(costs().launch_ps == (20 + 70) * kMicrosecond);  // 70 MB leave the member
  CHECK(costs().intra_node_ps == 0);
  shape.per_node = 4;
  CHECK(costs().launch_ps == 20 * kMicrosecond);
  CHECK(costs().inter_node_ps == 0);
}

TEST_CASE("rings in a node last as the pipeline says, packet by packet, for each protocol") {
  const auto graph = graph_of(Cluster{});
  network::Router router(graph, network::Routing::destination_mod_k, 1);
  const Communicator node = step::communicator_of(router, {0, 1, 2, 3}, 4);
  const double wire_gb_per_s = static_cast<double>(node.intra_node.bits_per_second) / 8e9;
  const Calibration c = calibration();
  std::size_t compared = 0;
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather})
    for (const double block : {0x1p16, 0x1p20, 0x1p23})
      for (const Protocol protocol :
           {Protocol::calibrated_ll, Protocol::calibrated_ll128, Protocol::calibrated_simple}) {
        const double steps = kind == Kind::all_reduce ? 6 : 3, bytes = 4 * block;
        Shape shape{kind, Algorithm::ring, 4, static_cast<std::int64_t>(bytes), 4};
        shape.protocol = protocol;
        shape.calibrated = calibrated_costs(c, LibraryVersion::v2_29, node, shape, Algorithm::ring);
        const auto us = [&](double wire_bytes) { return wire_bytes / wire_gb_per_s * 1e-3; };
        double expected = 0;
        if (protocol == Protocol::calibrated_ll)
          expected = c.ll_launch_us + c.ll_store_launch_us + block / c.ll_copy_gb_per_s * 1e-3 +
                     steps * (c.ll_hop_us + std::max(c.ll_store_us, us(2 * block)));
        if (protocol == Protocol::calibrated_ll128)
          expected = c.ll128_launch_us + block / c.copy_gb_per_s * 1e-3 +
                     pipeline(steps, c.ll128_hop_us, us(block * 128.0 / 120 / c.ll128_share));
        if (protocol == Protocol::calibrated_simple)
          expected = c.launch_us + block / c.copy_gb_per_s * 1e-3 + c.fill_us * bytes / (bytes + kFill) +
                     pipeline(steps, c.hop_us, us(block));
        INFO(shape.text() << " " << expected);
        // The switch forwards whole packets, of 20 ns each.
        const double forwarded = steps * us(4'096);
        CHECK(static_cast<double>(simulated(shape, graph)) / 1e6 == Approx(expected + forwarded).epsilon(0.001));
        ++compared;
      }
  CHECK(compared == 18);
}

TEST_CASE("a calibrated library is never faster for more by its own tuner, and takes LL for small messages") {
  for (const auto& [members, per_node] : {std::pair{8u, 8u}, {16u, 8u}, {8u, 1u}}) {
    const Communicator who = communicator(members, per_node);
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
      const auto picked = [&](std::int64_t bytes) {
        return choose_shape(library(Algorithm::automatic), who, kind, bytes);
      };
      CHECK(picked(64).protocol == Protocol::calibrated_ll);
      CHECK(picked(1 << 30).protocol == Protocol::calibrated_simple);
    }
  }
}

TEST_CASE(
    "across nodes a calibrated ring leaves by every NIC of its members, and LL's goes on while a block is on its way") {
  const auto ring = [](std::uint32_t members, std::uint32_t per_node, std::int64_t bytes) {
    return choose_shape(library(Algorithm::ring), communicator(members, per_node), Kind::all_gather, bytes);
  };
  CHECK(ring(16, 8, 1 << 30).channels == 8);
  CHECK(ring(16, 8, 1 << 30).chunk_bytes == 0);
  CHECK(ring(16, 8, 1 << 10).chunk_bytes == 1 << 10);
  CHECK(ring(8, 1, 1 << 30).channels == 1);
  CHECK(ring(8, 8, 1 << 30).channels == 1);
  CHECK(ring(8, 8, 1 << 10).chunk_bytes == 0);
}

TEST_CASE("only libraries that were measured to reduce in switches do so, in a node, and may be told to") {
  Communicator node = communicator(8, 8);
  node.intra_node.bits_per_second = 2'880'000'000'000;  // 360 GB/s
  const auto picked = [&](const Library& given) {
    return choose_shape(given, node, Kind::all_reduce, 1 << 28).algorithm;
  };
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
  const std::int64_t bytes = 256 << 20;
  const auto network_ps = [&](std::int64_t chunk_bytes) {
    Shape shape{Kind::all_reduce, Algorithm::in_switch, 4, bytes, 4};
    shape.chunk_bytes = chunk_bytes;
    return simulated(shape, graph);
  };
  const Time sent = serialization_ps(bytes, 1'600'000'000'000);
  CHECK(network_ps(0) > 7 * sent / 4);
  CHECK(network_ps(bytes / 4 / 8) < 3 * sent / 2);
  CHECK(network_ps(bytes / 4 / 8) > 5 * sent / 4);
}

TEST_CASE("every figure of a calibrated library that a collective depends on is in its key, and no other") {
  const auto key = [&](const Library& given, std::uint32_t per_node, Kind kind, std::int64_t bytes) {
    return step::collective_key(choose_shape(given, communicator(16, per_node), kind, bytes), {}, {});
  };
  struct Figure {
    double Calibration::*member;
    std::uint32_t per_node;
    Kind kind;
    std::int64_t bytes;
  };
  const Kind sum = Kind::all_reduce, exchange = Kind::all_to_all;
  for (const Figure& figure :
       {Figure{&Calibration::launch_us, 8, sum, 1 << 30}, Figure{&Calibration::hop_us, 8, sum, 1 << 30},
        Figure{&Calibration::hop_between_us, 8, sum, 1 << 30}, Figure{&Calibration::copy_gb_per_s, 16, sum, 1 << 30},
        Figure{&Calibration::fill_us, 16, sum, 1 << 30}, Figure{&Calibration::ll_launch_us, 8, sum, 64},
        Figure{&Calibration::ll_hop_us, 8, sum, 64}, Figure{&Calibration::ll_hop_between_us, 8, sum, 64},
        Figure{&Calibration::ll_store_launch_us, 16, sum, 65'536},
        Figure{&Calibration::ll_copy_gb_per_s, 16, sum, 65'536},
        Figure{&Calibration::exchange_launch_us, 16, exchange, 1 << 20},
        Figure{&Calibration::exchange_link_share, 16, exchange, 1 << 20}}) {
    Library other = library(Algorithm::ring);
    other.calibration.*figure.member *= 1.25;
    CHECK(key(library(Algorithm::ring), figure.per_node, figure.kind, figure.bytes) !=
          key(other, figure.per_node, figure.kind, figure.bytes));
  }
  Library other = library(Algorithm::ring);  // the control: no all-reduce depends on an exchange
  other.calibration.exchange_launch_us *= 1.25;
  CHECK(key(library(Algorithm::ring), 8, sum, 1 << 30) == key(other, 8, sum, 1 << 30));
}

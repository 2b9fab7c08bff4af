// Caching, fast-forwarding and joint simulation change no result: whole collectives on whole fabrics against every
// packet in one event loop.
#include <catch2/catch.hpp>

#include "tests/topologies/collectives_on_fabrics.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using core::collective::Algorithm;
using core::collective::Kind;
using core::collective::Shape;
using core::network::Routing;
using core::network::Transport;

namespace {

struct Place {
  std::string name;
  std::shared_ptr<const Graph> graph;
  Routing routing;
  std::size_t collide;
};

/// 0, 2, 10 and almost all transfers of a ring collide.
std::vector<Place> places(std::int64_t gpus) {
  const core::OptionSet three_tiers{
      {"tiers", std::int64_t{3}}, {"leaf_hosts", std::int64_t{4}}, {"pod_leaves", std::int64_t{4}}};
  const auto tree = fabric("fat_tree", three_tiers, gpus, 1), rails = fabric("rail_optimized", {}, gpus, 8);
  return {{"tree, in order", tree, Routing::destination_mod_k, 0},
          {"tree, two collide", tree, Routing::destination_mod_k, 2},
          {"tree, ten collide", tree, Routing::destination_mod_k, 10},
          {"tree, hashed, any order", tree, Routing::ecmp_hash, kShuffled},
          {"rails, in order", rails, Routing::destination_mod_k, 0},
          {"rails, hashed, any order", rails, Routing::ecmp_hash, kShuffled}};
}

Transport transport_of(const std::string& kind, Routing routing) {
  Transport result;
  result.kind = kind;
  result.routing = routing;
  result.window_bytes = 64 * 4160;
  result.pfc_xoff_bytes = 60 * 4160;
  result.pfc_xon_bytes = 30 * 4160;
  result.ecn_kmin_bytes = 20'000;
  result.ecn_kmax_bytes = 80'000;
  return result;
}

/// Returns link-hops transferred and simulated.
std::pair<std::int64_t, std::int64_t> require_same(const Place& place, const std::string& kind, std::int64_t gpus,
                                                   const std::vector<Shape>& shapes) {
  core::network::Router router(place.graph, place.routing, 1);
  const auto order = placed(router, gpus, place.collide);
  const Transport transport = transport_of(kind, place.routing);
  const Seen skipped = carry_out(place.graph, router, order, shapes, transport, false);
  const Seen plain = carry_out(place.graph, router, order, shapes, transport, true);
  INFO(place.name << ", " << kind << ", " << shapes[0].text() << " on " << gpus);
  REQUIRE(skipped.exits == plain.exits);
  REQUIRE(skipped.counters.link_hops == plain.counters.link_hops);
  REQUIRE(skipped.counters.ecn_marks == plain.counters.ecn_marks);
  REQUIRE(skipped.counters.pauses == plain.counters.pauses);
  return {skipped.counters.link_hops, skipped.simulated};
}

Shape shape_of(Kind kind, Algorithm algorithm, std::int64_t gpus, std::int64_t bytes) {
  Shape result{kind, algorithm, static_cast<std::uint32_t>(gpus), bytes, 1};
  return result;
}

}  // namespace

TEST_CASE("every collective takes the picoseconds of all its packets, however few of them are simulated") {
  std::mt19937_64 random(11);
  for (const std::int64_t gpus : {16, 64, 256})
    for (const Place& place : places(gpus))
      for (const auto& info : core::collective::algorithms())
        for (const Kind kind : info.kinds) {
          // Switches that reduce stand in nodes and on rails, over GPUs in order.
          const bool in_switch = info.latency_group == core::collective::LatencyGroup::in_switch;
          if (in_switch && place.name != "rails, in order") continue;
          const bool all_pairs = kind == Kind::all_to_all || info.algorithm == Algorithm::direct;
          if (all_pairs && (gpus > 64 || (gpus > 16 && place.collide == kShuffled))) continue;  // long
          // Blocks that do not divide, of less than a packet to a dozen.
          const auto bytes = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(gpus * 50'000));
          Shape shape = shape_of(kind, info.algorithm, gpus, gpus > 64 ? bytes / 8 : bytes);
          if (in_switch) shape.per_node = 8, shape.rail_switches = true;
          require_same(place, random() % 2 == 0 ? "static_window" : "dcqcn", gpus, {shape});
        }
}

TEST_CASE("one ring and two at once take the picoseconds of all their packets, colliding or not") {
  std::mt19937_64 random(12);
  std::int64_t transferred = 0, simulated = 0;
  for (const std::int64_t gpus : {16, 64, 256})
    for (const Place& place : places(gpus))
      for (const std::string kind : {"static_window", "dcqcn"})
        for (const std::size_t rings : {1u, 2u}) {
          std::vector<Shape> shapes;
          for (std::size_t i = 0; i < rings; ++i)
            shapes.push_back(shape_of(Kind::all_reduce, Algorithm::ring, gpus,
                                      static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(
                                                                               gpus * (gpus > 64 ? 10'000 : 40'000)))));
          const auto [all, some] = require_same(place, kind, gpus, shapes);
          if (place.collide == 0 && rings == 1) transferred += all, simulated += some;
        }
  CHECK(transferred > 1'000 * simulated);  // a control: it is skipped indeed
}

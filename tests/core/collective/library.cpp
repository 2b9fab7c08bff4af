// What a library chooses: told, by default, and by its own model; and that its model is worth following.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/library.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::core::collective;

namespace {

constexpr Time kLatency = 2 * kMicrosecond;

/// Bytes take 1,000 ps between nodes and 100 ps inside.
Communicator communicator(std::uint32_t members, std::uint32_t per_node) {
  return {members, per_node, {80'000'000'000, kLatency / 2}, {8'000'000'000, kLatency}};
}

Library told(Algorithm all_reduce) {
  Library library;
  library.all_reduce = all_reduce;
  return library;
}

/// Four nodes of four GPUs on rails, where everything can be tried.
struct Bench {
  std::shared_ptr<const network::Graph> graph;
  network::Router router;
  network::Transport transport;
  std::vector<std::uint32_t> gpus;
  Communicator all;

  Bench() : graph(graph_of(cluster())), router(graph, network::Routing::destination_mod_k, 1), gpus(16), all() {
    std::iota(gpus.begin(), gpus.end(), 0u);
    all = step::communicator_of(router, gpus, 4);
  }
  static Cluster cluster() {
    Cluster result;
    result.nodes = 4;
    return result;
  }
  /// Among the first GPUs.
  Time lasts(const Shape& shape) {
    const Dag dag = build(shape);
    step::Connections connections;
    const std::vector<std::uint32_t> members(gpus.begin(), gpus.begin() + shape.members);
    for (std::size_t pair = 0; pair < dag.pairs.size(); ++pair)
      connections.routes.push_back(step::route_of(router, {dag.pairs, dag.switches}, members, pair, 0));
    network::ComponentCache cache(transport);
    const auto result = step::simulate_isolated(dag, connections, *graph, cache);
    return *std::max_element(result.exits.begin(), result.exits.end());
  }
};

}  // namespace

TEST_CASE("channels 0 are as many as members have NICs in a node, and rings leave by all of them") {
  Library library = told(Algorithm::ring);
  library.channels = 0;
  CHECK(choose_shape(library, communicator(16, 4), Kind::all_reduce, 1 << 20).channels == 4);
  CHECK(choose_shape(library, communicator(16, 1), Kind::all_reduce, 1 << 20).channels == 1);  // one NIC each
  CHECK(choose_shape(library, communicator(4, 4), Kind::all_reduce, 1 << 20).channels == 1);   // no NIC
  library.broadcast = Algorithm::chain;
  CHECK(choose_shape(library, communicator(16, 4), Kind::broadcast, 1 << 20).channels == 4);
  library.channels = 2;
  CHECK(choose_shape(library, communicator(16, 4), Kind::all_reduce, 1 << 20).channels == 2);
  // Four NICs a node carry large vectors four times as fast as one.
  Bench bench;
  const auto lasts = [&](std::int64_t channels) {
    library.channels = channels;
    return static_cast<double>(bench.lasts(choose_shape(library, bench.all, Kind::all_reduce, 64 << 20)));
  };
  CHECK(lasts(0) == lasts(4));
  CHECK(lasts(1) / lasts(0) > 3.5);
  CHECK(lasts(1) / lasts(0) < 4.1);
}

TEST_CASE("a library does what it is told, and halves of an all-reduce follow it where they can") {
  Communicator all = communicator(16, 4);
  all.node_switches = true;
  for (const AlgorithmInfo& info : algorithms()) {
    if (!supports(info.algorithm, Kind::all_reduce)) continue;
    INFO(info.name);
    CHECK(choose_shape(told(info.algorithm), all, Kind::all_reduce, 1'000).algorithm == info.algorithm);
    for (const Kind half : {Kind::all_gather, Kind::reduce_scatter})
      CHECK(choose_shape(told(info.algorithm), all, half, 1'000).algorithm ==
            (supports(info.algorithm, half) ? info.algorithm : Algorithm::ring));
  }
  Library library = told(Algorithm::double_tree);
  library.all_gather = Algorithm::direct;
  CHECK(choose_shape(library, all, Kind::all_gather, 1'000).algorithm == Algorithm::direct);
  CHECK(choose_shape(library, all, Kind::all_to_all, 1'000).algorithm == Algorithm::pairwise);
  CHECK(choose_shape(library, all, Kind::broadcast, 1'000).algorithm == Algorithm::chain);
}

TEST_CASE("shapes say no more than their DAGs depend on") {
  Library library = told(Algorithm::two_level);
  CHECK(choose_shape(library, communicator(16, 4), Kind::all_reduce, 1'000).text() ==
        "all_reduce two_level n=16 1000 B");
  CHECK(choose_shape(library, communicator(16, 1), Kind::all_reduce, 1'000).text() == "all_reduce ring n=16 1000 B");
  CHECK(choose_shape(library, communicator(16, 16), Kind::all_reduce, 1'000) ==
        choose_shape(told(Algorithm::ring), communicator(16, 1), Kind::all_reduce, 1'000));
  library = told(Algorithm::halving_doubling);
  library.channels = 4;
  library.chunk_bytes = 100;
  CHECK(choose_shape(library, communicator(16, 4), Kind::all_reduce, 1'000) ==
        choose_shape(told(Algorithm::halving_doubling), communicator(16, 1), Kind::all_reduce, 1'000));
  library.all_reduce = Algorithm::ring;
  library.protocol = Protocol::ll128;
  CHECK(choose_shape(library, communicator(16, 4), Kind::all_reduce, 1'000).text() ==
        "all_reduce ring n=16 1000 B ll128 channels=4 chunks=100 B");
  CHECK(choose_shape(library, communicator(2, 1), Kind::send, 7).text() == "send direct n=2 7 B ll128");
}

TEST_CASE("the model is alpha and beta: steps times latency and bytes over the slowest connection") {
  const auto predicted = [](Algorithm algorithm, std::uint32_t members, std::uint32_t per_node, std::int64_t bytes,
                            Protocol protocol = Protocol::none) {
    Shape shape{Kind::all_reduce, algorithm, members, bytes, per_node};
    shape.protocol = protocol;
    return predicted_ps(shape, communicator(members, per_node));
  };
  CHECK(predicted(Algorithm::ring, 8, 1, 8'000) == 14 * kLatency + 2 * 7'000 * 1'000);
  CHECK(predicted(Algorithm::ring, 8, 8, 8'000) == 14 * kLatency / 2 + 2 * 7'000 * 100);
  CHECK(predicted(Algorithm::halving_doubling, 8, 1, 8'000) == 6 * kLatency + 2 * 7'000 * 1'000);
  CHECK(predicted(Algorithm::recursive_doubling, 8, 1, 8'000) == 3 * (kLatency + 8'000 * 1'000));
  CHECK(predicted(Algorithm::two_level, 8, 4, 8'000) ==
        6 * kLatency / 2 + 2 * 6'000 * 100 + 2 * kLatency + 2 * 1'000 * 1'000);
  // With LL: 6.6 us to launch, 2.7 us a step between nodes, twice the bytes.
  CHECK(predicted(Algorithm::ring, 8, 1, 8'000, Protocol::ll) ==
        6'600'000 + 14 * (kLatency + 2'700'000) + 2 * 2 * 7'000 * 1'000);
}

TEST_CASE("an automatic library takes few steps for small vectors and few bytes for large ones") {
  const Library library = told(Algorithm::automatic);
  const auto picked = [&](const Communicator& who, std::int64_t bytes) {
    return choose_shape(library, who, Kind::all_reduce, bytes).algorithm;
  };
  CHECK(picked(communicator(64, 1), 64) == Algorithm::recursive_doubling);
  CHECK(picked(communicator(64, 1), 1 << 30) == Algorithm::halving_doubling);  // as a ring, in fewer steps
  CHECK(picked(communicator(60, 1), 1 << 30) == Algorithm::ring);              // beyond a power of two it pays twice
  CHECK(picked(communicator(60, 4), 1 << 30) == Algorithm::two_level);
  CHECK(picked(communicator(8, 8), 64) == Algorithm::direct);
  for (const std::uint32_t members : {16u, 60u})  // no direct exchange of everybody with everybody between nodes
    for (const std::int64_t bytes : {1, 1'000, 1'000'000})
      CHECK(picked(communicator(members, 4), bytes) != Algorithm::direct);
}

TEST_CASE("an automatic protocol is LL for small messages and simple for large ones") {
  Library library;
  library.protocol = Protocol::automatic;
  const auto picked = [&](std::int64_t bytes) {
    return choose_shape(library, communicator(16, 1), Kind::all_reduce, bytes).protocol;
  };
  CHECK(picked(64) == Protocol::ll);
  CHECK(picked(1 << 20) == Protocol::ll128);
  CHECK(picked(1 << 30) == Protocol::simple);
  CHECK(library.depends_on_network());
  CHECK(told(Algorithm::in_switch).depends_on_network());
  CHECK_FALSE(told(Algorithm::ring).depends_on_network());
}

TEST_CASE("what an automatic library picks is within a third of the best, in packets") {
  Bench bench;
  for (const Protocol protocol : {Protocol::none, Protocol::simple})
    for (const Kind kind :
         {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast, Kind::reduce})
      for (const std::int64_t bytes : {1'000, 100'000, 4'000'000}) {
        Library library;
        library.all_reduce = library.all_gather = library.reduce_scatter = Algorithm::automatic;
        library.all_to_all = library.broadcast = Algorithm::automatic;
        library.protocol = protocol;
        const Shape picked = choose_shape(library, bench.all, kind, bytes);
        Time best = kNever;
        for (const Algorithm algorithm : library.candidates(kind)) {
          Shape shape = picked;
          shape.algorithm = algorithm;
          shape.per_node = 4;
          if (algorithm != Algorithm::direct) best = std::min(best, bench.lasts(shape));
        }
        INFO(picked.text());
        CHECK(3 * bench.lasts(picked) <= 4 * best);
      }
}

TEST_CASE("protocol costs take their time: launch once, a latency before each step, flags on the wire") {
  // Sixteen members on the rails of four nodes; the ring's steps between nodes are slower than those inside.
  Bench bench;
  Shape shape{Kind::all_gather, Algorithm::ring, 4, 4 * 4'096, 1};
  const auto lasts = [&](Protocol protocol) {
    shape.protocol = protocol;
    const Dag dag = build(shape);
    step::Connections connections;  // members are GPUs 0, 4, 8, 12: one rail
    for (const auto& [from, to] : dag.pairs) connections.routes.push_back(bench.router.route(4 * from, 4 * to, 0));
    network::ComponentCache cache(bench.transport);
    const auto result = step::simulate_isolated(dag, connections, *bench.graph, cache);
    return *std::max_element(result.exits.begin(), result.exits.end());
  };
  const Time packet = serialization_ps(4'096 + 64, 200'000'000'000), hops = 2 * 700'000;
  CHECK(lasts(Protocol::none) == 3 * (2 * packet + hops));
  CHECK(lasts(Protocol::simple) == 8'400'000 + 3 * (14'000'000 + 2 * packet + hops));
  CHECK(lasts(Protocol::ll) == 6'600'000 + 3 * (2'700'000 + 3 * packet + hops));  // two packets instead of one
}

TEST_CASE("chunks overlap the stages of a pipeline, and channels use the rails a single ring leaves idle") {
  Bench bench;
  Shape chain{Kind::broadcast, Algorithm::chain, 16, 4 << 20, 4};
  const Time whole = bench.lasts(chain);
  chain.chunk_bytes = 1 << 16;
  const Time slowest = serialization_ps(4 << 20, 200'000'000'000);  // of the connections between nodes, passed thrice
  CHECK(whole > 3 * slowest);
  CHECK(4 * bench.lasts(chain) < 5 * slowest);
  Shape tree{Kind::all_reduce, Algorithm::double_tree, 16, 4 << 20, 4};
  const Time unpiped = bench.lasts(tree);
  tree.chunk_bytes = 1 << 16;
  CHECK(3 * bench.lasts(tree) < 2 * unpiped);
  // The NIC of an inner node sends half of the vector up and to two children, and half of it up in the other tree.
  CHECK(bench.lasts(tree) > 2 * slowest);
  CHECK(4 * bench.lasts(tree) < 9 * slowest);
  Shape ring{Kind::all_reduce, Algorithm::ring, 16, 16 << 20, 4};
  const Time one = bench.lasts(ring);
  ring.channels = 4;
  CHECK(3 * bench.lasts(ring) < one);  // four rails instead of one; steps inside nodes are not free
}

TEST_CASE("a reduction in a switch takes its shards up and down one after another") {
  // Four members of a node: link of 1.6 Tb/s and 300 ns to their switch. Shards of one packet, so that each transfer is
  // that packet's time and the link's latency.
  Bench bench;
  CHECK((bench.all.node_switches && bench.all.rail_switches));
  const Communicator node = step::communicator_of(bench.router, {0, 1, 2, 3}, 4);
  const Shape shape = choose_shape(told(Algorithm::in_switch), node, Kind::all_reduce, 4 * 4'096);
  CHECK(shape.text() == "all_reduce in_switch n=4 16384 B");
  const Time hop = serialization_ps(4'096 + 64, 1'600'000'000'000) + 300'000;
  // Four shards go up on each link, one after another; then the owners of the first three, who have had their sums for
  // some time, send them up again, and from the fifth hop on three shards go down each link.
  CHECK(bench.lasts(shape) == 8 * hop);
  // Without one switch between them they form a ring.
  Communicator far = node;
  far.node_switches = false;
  CHECK(choose_shape(told(Algorithm::in_switch), far, Kind::all_reduce, 4 * 4'096).algorithm == Algorithm::ring);
}

TEST_CASE("every library can be written as options and read back") {
  for (const auto& row : library_options().rows())
    for (const std::string& name : row.info.choices) {
      Library library;
      row.set(library, name);
      INFO(row.info.name << " " << name);
      CHECK(library_options().make(library_options().read(library)) == library);
      CHECK(std::get<std::string>(row.get(library)) == name);
    }
}

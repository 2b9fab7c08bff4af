// Equivalent ranks are simulated once: what rotations leave of collectives, and steps that do not change by it.
#include <catch2/catch.hpp>

#include "core/collective/dag/rotation.hpp"
#include "core/step/network/critical_paths.hpp"
#include "core/workload/build/build_program.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

/// Labels of a DAG's connections by the figures of their links between GPUs of a cluster, member i on GPU i.
struct On {
  step::CriticalPaths::Paths paths;
  std::vector<std::uint32_t> labels;
};
On put_on(const Cluster& cluster, const collective::Dag& dag) {
  const auto graph = graph_of(cluster);
  network::Router router(graph, network::Routing::destination_mod_k, 1);
  std::vector<std::uint32_t> gpus(dag.members);
  for (std::uint32_t i = 0; i < gpus.size(); ++i) gpus[i] = i;
  On result;
  std::map<std::vector<std::int64_t>, std::uint32_t> numbers;
  for (std::size_t pair = 0; pair < dag.pairs.size(); ++pair) {
    auto& path = result.paths.emplace_back();
    std::vector<std::int64_t> figures;
    for (const std::uint32_t link : step::route_of(router, {dag.pairs, dag.switches}, gpus, pair, pair)) {
      path.push_back(network::spec_of(*graph, link));
      figures.push_back(path.back().bits_per_second), figures.push_back(path.back().latency_ps);
    }
    result.labels.push_back(numbers.try_emplace(figures, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return result;
}

/// When each member leaves that enters when `entries` says.
std::vector<Time> exits_of(const collective::Dag& dag, const step::CriticalPaths::Paths& paths,
                           const std::vector<Time>& entries) {
  std::vector<std::uint32_t> order(dag.members);
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return entries[a] < entries[b]; });
  step::CriticalPaths critical_paths(std::make_shared<const collective::Dag>(dag),
                                     std::make_shared<const step::CriticalPaths::Paths>(paths));
  std::vector<network::Exit> exits;
  for (const std::uint32_t member : order)
    critical_paths.enter(network::Transport(), member, entries[member], 0, exits);
  std::vector<Time> at(dag.members, -1);
  for (const network::Exit& exit : exits) at[exit.member] = exit.at;
  return at;
}

/// What a step gives, but for how it was computed.
std::string answer_of(step::StepResult result) {
  result.computed = {};
  result.cpu_s = 0;
  return step::encode(result);
}

struct Both {
  std::string all, representatives;
  std::size_t ranks = 0, simulated_ranks = 0;
};
Both run_both(step::Configuration configuration) {
  configuration.transport.fidelity = network::Fidelity::analytic;
  Both result;
  for (const step::Ranks ranks : {step::Ranks::all, step::Ranks::representatives}) {
    step::SimulationContext context;
    step::IsolatedResults results;
    const step::CompiledStep built = context.compile(configuration, ranks);
    (ranks == step::Ranks::all ? result.all : result.representatives) = answer_of(context.run(built, results));
    result.ranks = built.layout().ranks();
    result.simulated_ranks = built.symmetry().representative_rank.size();
    REQUIRE(built.has_all_ranks() == (result.simulated_ranks == result.ranks));
  }
  return result;
}

}  // namespace

TEST_CASE("rings turn by two nodes, exchanges by one, trees and unequal chunks not at all") {
  // Rings go through even nodes one way and through odd ones the other; pairwise partners are as far from everyone.
  const auto turn = [](collective::Kind kind, collective::Algorithm algorithm, std::int64_t bytes,
                       std::uint32_t channels = 1) {
    collective::Shape shape{kind, algorithm, 32, bytes, 4};
    shape.channels = channels;
    const collective::Dag dag = collective::build(shape);
    return collective::rotation_period(dag, put_on({8, 4}, dag).labels);
  };
  using collective::Algorithm, collective::Kind;
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter})
    for (const std::uint32_t channels : {1u, 2u, 4u}) CHECK(turn(kind, Algorithm::ring, 4'096, channels) == 8);
  CHECK(turn(Kind::all_reduce, Algorithm::ring, 4'097) == 32);  // one chunk is larger
  CHECK(turn(Kind::all_to_all, Algorithm::pairwise, 4'096) == 4);
  CHECK(turn(Kind::all_reduce, Algorithm::double_tree, 4'096) == 32);
  // Inside one node every GPU is like every other.
  const collective::Dag inside = collective::build({Kind::all_gather, Algorithm::ring, 8, 4'096, 8});
  CHECK(collective::rotation_period(inside, put_on({1, 8}, inside).labels) == 1);
}

TEST_CASE("members of a turned collective leave when those of the whole one do that they stand for") {
  std::size_t quotient_dag = 0;
  for (const collective::AlgorithmInfo& info : collective::algorithms())
    for (const collective::Kind kind : info.kinds)
      for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        std::mt19937_64 random(seed);
        Cluster cluster;
        cluster.nodes = 1 + static_cast<std::uint32_t>(random() % 6);
        cluster.gpus_per_node = 1u << random() % 4;
        cluster.rails = seed % 2 == 0;
        const std::uint32_t n = cluster.nodes * cluster.gpus_per_node;
        collective::Shape shape{kind, info.algorithm, n, static_cast<std::int64_t>(1'000 * n), cluster.gpus_per_node};
        if (info.multi_channel && seed % 3 == 0) shape.channels = 2;
        if (info.pipelined && seed % 4 == 0) shape.chunk_bytes = 300;
        INFO("seed " << seed << " " << shape.text());
        const collective::Dag dag = collective::build(shape);
        const On on = put_on(cluster, dag);
        const std::uint32_t least = collective::rotation_period(dag, on.labels);
        if (least == n) continue;
        ++quotient_dag;
        for (std::uint32_t turn = least; turn <= n; turn += least) {
          if (n % turn != 0) continue;
          const collective::QuotientDag part = collective::quotient_dag(dag, turn);
          REQUIRE(part.dag.transfers.size() * (n / turn) == dag.transfers.size());
          step::CriticalPaths::Paths paths;
          for (const std::uint32_t pair : part.pairs) paths.push_back(on.paths[pair]);
          std::vector<Time> entries(n);
          for (std::uint32_t i = 0; i < n; ++i)
            entries[i] = i < turn ? static_cast<Time>(random() % 50) * kMicrosecond : entries[i - turn];
          const std::vector<Time> whole = exits_of(dag, on.paths, entries);
          const std::vector<Time> some =
              exits_of(part.dag, paths, std::vector<Time>(entries.begin(), entries.begin() + turn));
          for (std::uint32_t i = 0; i < n; ++i) REQUIRE(whole[i] == some[i % turn]);
        }
      }
  CHECK(quotient_dag > 100);
}

TEST_CASE("a step that simulates one rank of each class is the step of all of them") {
  std::size_t fewer = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = seed % 3 == 2 ? draw_routed(seed) : draw_configuration(seed);
    if (seed % 3 == 1) configuration = with_context_and_experts(configuration, seed);
    if (seed % 6 == 0) configuration = with_overlaps(configuration, seed);
    if (seed % 5 == 0 && !configuration.model.routing && configuration.graph->gpus > 2)
      for (const workload::ScheduleType& type : workload::schedules())
        if (type.name == std::string(seed % 2 == 0 ? "zb_v" : "dualpipe"))
          configuration = with_schedule(configuration, type);
    if (seed % 4 == 3) configuration = with_calibrated_library(configuration);
    const Both both = run_both(configuration);
    REQUIRE(both.all == both.representatives);
    fewer += both.simulated_ranks < both.ranks;
  }
  CHECK(fewer > 60);
}

TEST_CASE("how many ranks have to be simulated does not grow with the nodes of a rail") {
  std::vector<std::size_t> simulated_ranks;
  for (const std::uint32_t nodes : {4u, 8u, 16u}) {
    const Both both = run_both(config_of({nodes, 4}, 2, 2, 4));
    CHECK(both.all == both.representatives);
    CHECK(both.ranks == 4 * nodes);
    simulated_ranks.push_back(both.simulated_ranks);
  }
  // Two stages; of the four GPUs of a node the two of a tensor-parallel group are alike, the groups are at either end
  // of a hop of the ring of replicas, and this goes back and forth: through two nodes, then it repeats.
  CHECK(simulated_ranks == std::vector<std::size_t>{8, 8, 8});
}

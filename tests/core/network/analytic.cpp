// Fidelity `analytic` is a lower bound of the packet result: for every transfer, member of a collective and step of
// drawn configurations; and it is exact where a transfer is alone.
#include <catch2/catch.hpp>

#include "core/collective/algorithms/registry.hpp"
#include "core/network/flows/flows.hpp"
#include "core/step/network/critical_paths.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using network::FlowId;
using network::Flows;

namespace {

struct Random {
  std::mt19937_64 engine;
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  }
};

struct Transfer {
  Time at = 0;
  network::Route route;
  std::int64_t bytes = 0;
};

network::Router router_of(const step::Configuration& configuration) {
  return {configuration.graph, configuration.transport.routing,
          static_cast<std::uint64_t>(configuration.transport.seed)};
}

void add_links(Flows& flows, const network::Graph& graph) {
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) flows.add_link(network::spec_of(graph, link));
}

/// When each transfer ends; `transfers` are in order of their starts.
std::vector<Time> ends_of(std::unique_ptr<Flows> flows, const network::Graph& graph,
                          const std::vector<Transfer>& transfers) {
  add_links(*flows, graph);
  flows->set_tie_order({0});
  std::vector<Time> ends(transfers.size(), -1);
  std::vector<FlowId> finished;
  const auto go = [&](Time limit) {
    do {
      finished.clear();
      flows->advance(limit, finished);
      for (const FlowId id : finished) ends[id.transfer] = flows->now();
    } while (!finished.empty());
  };
  for (std::uint32_t i = 0; i < transfers.size(); ++i) {
    if (flows->now() < transfers[i].at) go(transfers[i].at);
    flows->start({0, i}, flows->add_route(transfers[i].route), transfers[i].bytes);
  }
  go(kNever);
  return ends;
}

/// When each member exits a collective over all GPUs that member i enters at entries[i].
std::vector<Time> exits_of(std::unique_ptr<Flows> flows, const network::Graph& graph, network::Router& router,
                           const std::shared_ptr<const collective::Dag>& dag, const std::vector<Time>& entries) {
  add_links(*flows, graph);
  network::Traffic traffic(std::move(flows));
  std::vector<std::uint32_t> gpus(dag->members);
  for (std::uint32_t i = 0; i < dag->members; ++i) gpus[i] = i;
  std::vector<network::Route> routes;
  for (std::size_t pair = 0; pair < dag->pairs.size(); ++pair)
    routes.push_back(step::route_of(router, {dag->pairs, dag->switches}, gpus, pair, pair));
  const std::uint32_t id = traffic.add(dag, routes);
  traffic.set_tie_order({0});
  std::vector<std::uint32_t> order(entries.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return entries[a] < entries[b]; });
  std::vector<network::Exit> exits;
  for (const std::uint32_t member : order) {
    while (traffic.now() < entries[member]) traffic.advance(entries[member], exits);
    traffic.enter(id, member);
  }
  while (exits.size() < dag->members || !traffic.drained()) traffic.advance(kNever, exits);
  std::vector<Time> at(dag->members);
  for (const network::Exit& exit : exits) at[exit.member] = exit.at;
  return at;
}

/// The same by longest ways; nobody's exit may be known to lie before an entry that is still to come. With `rounds` by
/// rounds that are alike; empty if they are not.
std::vector<Time> longest_ways(const step::Configuration& configuration, network::Router& router,
                               const std::shared_ptr<const collective::Dag>& dag, const std::vector<Time>& entries,
                               bool rounds = false) {
  std::vector<std::uint32_t> gpus(dag->members), order(dag->members);
  for (std::uint32_t i = 0; i < dag->members; ++i) gpus[i] = order[i] = i;
  auto paths = std::make_shared<step::CriticalPaths::Paths>();
  for (std::size_t pair = 0; pair < dag->pairs.size(); ++pair) {
    auto& path = paths->emplace_back();
    for (const std::uint32_t link : step::route_of(router, {dag->pairs, dag->switches}, gpus, pair, pair))
      path.push_back(network::spec_of(*configuration.graph, link));
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return entries[a] < entries[b]; });
  if (rounds) paths->rounds = step::repeated_rounds_of(*dag, *paths, configuration.transport);
  if (rounds && !paths->rounds) return {};
  step::CriticalPaths critical_paths(dag, paths);
  std::vector<Time> at(dag->members, -1);
  std::vector<network::Exit> exits;
  for (const std::uint32_t member : order) {
    exits.clear();
    critical_paths.enter(configuration.transport, member, entries[member], 0, exits);
    for (const network::Exit& exit : exits) {
      REQUIRE(exit.at > entries[member]);
      REQUIRE(at[exit.member] == -1);
      at[exit.member] = exit.at;
    }
  }
  CHECK(critical_paths.is_over());
  return at;
}

/// How many of `bounds` are below; requires that none is above.
std::size_t below(const std::vector<Time>& bounds, const std::vector<Time>& exact) {
  REQUIRE(bounds.size() == exact.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    INFO("number " << i);
    REQUIRE(bounds[i] >= 0);
    REQUIRE(bounds[i] <= exact[i]);
    count += bounds[i] < exact[i];
  }
  return count;
}

}  // namespace

TEST_CASE("a transfer that is alone takes its analytic time, whatever its path and size") {
  Random any{std::mt19937_64(1)};
  for (int draw = 0; draw < 300; ++draw) {
    network::Transport transport;
    transport.payload_bytes = any(64, 5'000);
    transport.header_bytes = any(0, 100);
    transport.window_bytes = std::int64_t{1} << 40;
    transport.pfc_xoff_bytes = transport.buffer_bytes = std::int64_t{1} << 40;
    network::Graph graph;
    graph.gpus = 2;
    Transfer transfer;
    transfer.bytes = any(0, 60 * transport.payload_bytes);
    const std::int64_t hops = any(1, 8);
    std::vector<network::LinkSpec> path;
    for (std::int64_t hop = 0; hop <= hops; ++hop) graph.add_vertex(network::VertexKind::network_switch, "switch");
    for (std::uint32_t hop = 0; hop < hops; ++hop) {
      transfer.route.push_back(hop);
      graph.links.push_back({hop, hop + 1, network::LinkKind::network, any(1, 800) * 1'000'000'007, any(1, 3'000'000)});
      path.push_back(network::spec_of(graph, hop));
    }
    INFO("draw " << draw);
    const auto exact = ends_of(network::make_plain_flows(transport), graph, {transfer});
    REQUIRE(network::uncontended_ps(transport, path, transfer.bytes) == exact[0]);
    REQUIRE(ends_of(network::make_analytic_flows(transport), graph, {transfer}) == exact);
  }
}

TEST_CASE("no transfer ends before its analytic time on 150 drawn fabrics") {
  std::size_t later = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    network::Router router = router_of(configuration);
    Random any{std::mt19937_64(seed)};
    std::vector<Transfer> transfers;
    for (std::int64_t i = any(1, 24); i > 0 && configuration.graph->gpus > 1; --i) {
      const auto from = static_cast<std::uint32_t>(any(0, configuration.graph->gpus - 1));
      const auto to =
          static_cast<std::uint32_t>((from + any(1, configuration.graph->gpus - 1)) % configuration.graph->gpus);
      transfers.push_back(
          {any(0, 20) * kMicrosecond, router.route(from, to, seed + transfers.size()), any(0, 400'000)});
    }
    std::sort(transfers.begin(), transfers.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    later += below(ends_of(network::make_analytic_flows(configuration.transport), *configuration.graph, transfers),
                   ends_of(network::make_plain_flows(configuration.transport), *configuration.graph, transfers));
  }
  CHECK(later > 300);  // the draws do contend
}

TEST_CASE("no member leaves a collective before its analytic time, whatever the collective and whenever they enter") {
  std::size_t later = 0, alike = 0;
  for (const collective::AlgorithmInfo& info : collective::algorithms())
    for (const collective::Kind kind : info.kinds)
      for (std::uint64_t seed = 1; seed <= 25; ++seed) {
        const step::Configuration configuration = draw_configuration(seed);
        const std::uint32_t gpus = configuration.graph->gpus;
        Random any{std::mt19937_64(seed)};
        const auto per_node = static_cast<std::uint32_t>(configuration.gpus_per_node);
        const std::int64_t bytes = seed % 4 == 1 ? any(0, 200'000) * gpus : any(0, 2'000'000);
        const collective::Shape shape{kind, info.algorithm, gpus, bytes, per_node};
        INFO("seed " << seed << " " << shape.text());
        const auto dag = std::make_shared<const collective::Dag>(collective::build(shape));
        network::Router router = router_of(configuration);
        std::vector<Time> entries(gpus, 0);
        for (Time& entry : entries) entry = seed % 2 == 0 ? 0 : any(0, 30) * kMicrosecond;
        const auto analytic =
            exits_of(network::make_analytic_flows(configuration.transport), *configuration.graph, router, dag, entries);
        REQUIRE(longest_ways(configuration, router, dag, entries) == analytic);
        using collective::Kind;
        if (kind == Kind::all_reduce || kind == Kind::all_gather || kind == Kind::reduce_scatter) {
          const auto by_rounds = longest_ways(configuration, router, dag, entries, true);
          REQUIRE((by_rounds.empty() || by_rounds == analytic));
          alike += !by_rounds.empty() && gpus > 1;
        }
        later += below(analytic, exits_of(network::make_plain_flows(configuration.transport), *configuration.graph,
                                          router, dag, entries));
      }
  CHECK(later > 100);
  CHECK(alike > 20);  // rings at least
}

TEST_CASE("shapes that are alike but for their bytes are outlined by one DAG, which has their transfers") {
  step::DagCache dags;
  for (const collective::AlgorithmInfo& info : collective::algorithms())
    for (const collective::Kind kind : info.kinds)
      for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{5}, std::int64_t{1'000'003}})
        for (const std::int64_t chunk : {0, 4'096}) {
          collective::Shape shape{kind, info.algorithm, 8, bytes, 4};
          shape.chunk_bytes = chunk;
          INFO(shape.text());
          const auto own = dags.get(shape), canonical = dags.canonical(shape);
          REQUIRE(canonical->pairs == own->pairs);
          REQUIRE(canonical->switches == own->switches);
          REQUIRE(canonical->transfers.size() == own->transfers.size());
          REQUIRE(canonical->successors == own->successors);
          for (std::size_t i = 0; i < own->transfers.size(); ++i)
            REQUIRE(canonical->transfers[i].pair == own->transfers[i].pair);
        }
}

TEST_CASE("no step is shorter than its analytic one, which composed and coupled agree on") {
  std::size_t shorter = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    const Time exact = run_configuration(configuration, step::Composition::composed).step_ps;
    configuration.transport.fidelity = network::Fidelity::analytic;
    const step::StepResult composed = run_configuration(configuration, step::Composition::composed);
    const step::StepResult coupled = run_configuration(configuration, step::Composition::coupled);
    REQUIRE(composed.step_ps == coupled.step_ps);
    REQUIRE(composed.breakdown[workload::StepPart::stall] == coupled.breakdown[workload::StepPart::stall]);
    REQUIRE(composed.step_ps <= exact);
    REQUIRE(composed.computed.simulated == 0);
    REQUIRE(coupled.computed.simulated == 0);
    shorter += composed.step_ps < exact;
  }
  CHECK(shorter > 10);
}

TEST_CASE("analytic and packet results never share a key, and an analytic one does not depend on the transport") {
  step::Configuration configuration = draw_configuration(1);
  step::SimulationContext context;
  const auto step_key_of = [&] { return context.summary(configuration).step; };
  const auto collective_key_of = [&] { return context.compile(configuration).collective_ops().front().key; };
  configuration.transport.kind = "static_window";
  const sharing::Key packet = step_key_of(), packet_collective = collective_key_of();
  configuration.transport.fidelity = network::Fidelity::analytic;
  const sharing::Key analytic = step_key_of(), analytic_collective = collective_key_of();
  CHECK(analytic != packet);
  CHECK(analytic_collective != packet_collective);
  configuration.transport.kind = "dcqcn";
  CHECK(step_key_of() == analytic);
  CHECK(collective_key_of() == analytic_collective);
}

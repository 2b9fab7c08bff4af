// What may share and what must not: keys, ties, offsets, links; and configurations whose traffic overlaps.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/network/flows/component_cache.hpp"
#include "core/step/layout/keys.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using network::FlowId, network::LinkSpec, network::Route;

namespace {

constexpr std::int64_t kRate = 400'000'000'000;
constexpr Time kPacket = 83'200;

LinkSpec nic_up() {
  return {kRate, kMicrosecond, true, false, false};
}
LinkSpec nic_down() {
  return {kRate, kMicrosecond, false, true, false};
}

std::shared_ptr<const collective::Dag> all_reduce(std::uint32_t n, std::int64_t bytes) {
  return std::make_shared<collective::Dag>(
      collective::build({collective::Kind::all_reduce, collective::Algorithm::ring, n, bytes, 1}));
}

// A component of one two-member all-reduce over four links of its own.
step::LogEntry beginning(std::int64_t bytes) {
  step::LogEntry entry;
  step::LogEntry::JoiningCollective joining;
  joining.shape = {collective::Kind::all_reduce, collective::Algorithm::ring, 2, bytes, 1};
  joining.dag = all_reduce(2, bytes);
  joining.routes = {{0, 1}, {2, 3}};
  joining.links = {nic_up(), nic_down(), nic_up(), nic_down()};
  entry.joining = {joining};
  entry.entries = {{0, 0}, {0, 1}};
  return entry;
}

// Another one on the same links, at `at`.
step::LogEntry newcomer(std::int64_t bytes, Time at) {
  step::LogEntry entry = beginning(bytes);
  entry.joining[0].links.clear();
  entry.joining[0].routes.clear();
  entry.at = at;
  entry.entries = {{1, 0}, {1, 1}};
  return entry;
}

// When each exit of the episode is.
std::vector<network::Exit> exits(step::Episode& episode, std::size_t count) {
  std::vector<network::Exit> all;
  for (std::size_t i = 0; i < count; ++i) {
    const network::Exit* exit = episode.exit(i, kNever);
    REQUIRE(exit != nullptr);
    all.push_back(*exit);
  }
  return all;
}

}  // namespace

TEST_CASE("ties at a port go to the flow of lower rank, whichever started first or stands in the lower slot") {
  const network::Transport transport;
  network::ComponentCache cache(transport);
  for (const bool decomposed : {false, true})
    for (const bool swapped_ranks : {false, true})
      for (const bool swapped_starts : {false, true}) {
        auto flows =
            decomposed ? network::make_decomposed_flows(transport, cache) : network::make_plain_flows(transport);
        for (int i = 0; i < 2; ++i) flows->add_link(nic_up());
        flows->add_link(nic_down());  // both arrive here at the same instant, packet after packet
        const std::uint32_t a = flows->add_route({0, 2}), b = flows->add_route({1, 2});
        flows->set_tie_order(swapped_ranks ? std::vector<std::uint32_t>{1, 0} : std::vector<std::uint32_t>{0, 1});
        const auto start = [&](std::uint32_t collective) {
          flows->start({collective, 0}, collective == 0 ? a : b, 10 * 4096);
        };
        start(swapped_starts ? 1 : 0);
        start(swapped_starts ? 0 : 1);
        std::vector<FlowId> finished;
        flows->advance(kNever, finished);
        REQUIRE(finished.size() == 1);
        CHECK(finished[0].collective == (swapped_ranks ? 1u : 0u));
        CHECK(flows->now() == kPacket + kMicrosecond + 19 * kPacket + kMicrosecond);
        flows->advance(kNever, finished);
        CHECK(flows->now() == kPacket + kMicrosecond + 20 * kPacket + kMicrosecond);
      }
}

TEST_CASE("two episodes that differ only in when somebody entered have their own keys and their own times") {
  const network::Transport transport;
  network::ComponentCache cache(transport);
  step::EpisodeCache episodes(cache, true);
  const step::Log log{std::make_shared<step::LogEntry>(beginning(100 * 4096))};
  const auto first = episodes.extend(nullptr, log);
  std::vector<std::vector<network::Exit>> seen;
  std::vector<sharing::Key> keys;
  for (const Time at : {Time{0} + 1, 3 * kPacket, 20 * kPacket, 3 * kPacket}) {
    const auto both = episodes.extend(first, {log[0], std::make_shared<step::LogEntry>(newcomer(100 * 4096, at))});
    keys.push_back(both->key());
    seen.push_back(exits(*both, 4));
    // The oracle: the same collectives in one plain event loop.
    network::Traffic plain(network::make_plain_flows(transport));
    for (const LinkSpec& link : {nic_up(), nic_down(), nic_up(), nic_down()}) plain.add_link(link);
    plain.add(all_reduce(2, 100 * 4096), {{0, 1}, {2, 3}});
    plain.add(all_reduce(2, 100 * 4096), {{0, 1}, {2, 3}});
    plain.set_tie_order({0, 1});
    plain.enter(0, 0), plain.enter(0, 1);
    std::vector<network::Exit> expected;
    while (plain.now() < at) plain.advance(at, expected);
    plain.enter(1, 0), plain.enter(1, 1);
    while (expected.size() < 4) plain.advance(kNever, expected);
    CHECK(seen.back() == expected);
  }
  CHECK(keys[0] != keys[1]);
  CHECK(keys[1] != keys[2]);
  CHECK(keys[1] == keys[3]);
  CHECK(seen[1] != seen[2]);
}

TEST_CASE("every figure of every link is in an isolated collective's key, and so is which links are shared") {
  const collective::Shape shape{collective::Kind::all_reduce, collective::Algorithm::ring, 2, 1 << 20, 1};
  const network::Transport transport;
  network::Graph graph;
  using network::LinkKind, network::VertexKind;
  for (int i = 0; i < 4; ++i) graph.add_vertex(VertexKind::gpu, "gpu");
  graph.add_vertex(VertexKind::network_switch, "left");
  graph.add_vertex(VertexKind::network_switch, "right");
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu)
    graph.add_cable(gpu, gpu < 2 ? 4 : 5, LinkKind::network, kRate, kMicrosecond);
  for (int i = 0; i < 2; ++i) graph.add_cable(4, 5, LinkKind::network, kRate, kMicrosecond);
  // Cables: gpu i is links 2i, 2i + 1; the two trunks are 8, 9 and 10, 11.
  const auto key_of = [&](const network::Graph& on, const std::vector<Route>& routes) {
    step::RouteWriter names(on);
    return step::collective_key(shape, step::route_signature_of(names, routes), step::transport_key(transport));
  };
  const std::vector<Route> plain = {{0, 8, 5}, {4, 9, 1}};
  const sharing::Key key = key_of(graph, plain);
  CHECK(key == key_of(graph, {{2, 10, 7}, {6, 11, 3}}));  // renamed: the same problem
  CHECK(key != key_of(graph, {{0, 8, 5}, {0, 8, 5}}));    // both ways on one path
  for (const std::uint32_t link : {0u, 8u, 5u, 4u, 9u, 1u}) {
    network::Graph other = graph;
    other.links[link].bits_per_second /= 2;
    CHECK(key != key_of(other, plain));
    other = graph;
    other.links[link].latency_ps += 1;
    CHECK(key != key_of(other, plain));
    other = graph;
    other.links[link].kind = LinkKind::scale_up;
    CHECK(key != key_of(other, plain));
  }
  network::Transport changed = transport;
  changed.pfc_xoff_bytes += 1;
  step::RouteWriter names(graph);
  CHECK(key != step::collective_key(shape, step::route_signature_of(names, plain), step::transport_key(changed)));
  CHECK(key == step::collective_key(shape, step::route_signature_of(names, plain),
                                    step::transport_key(transport)));  // names are forgotten
}

TEST_CASE("a cached state holds every link of its flows: one slower link is another state") {
  const network::Transport transport;
  network::ComponentCache cache(transport);
  const auto fast = cache.fresh({nic_up(), nic_down()}, 1 << 20);
  LinkSpec slow = nic_down();
  slow.bits_per_second /= 2;
  const auto slower = cache.fresh({nic_up(), slow}, 1 << 20);
  CHECK(fast->words != slower->words);
  CHECK(cache.outcome(*fast, kNever).outcome->elapsed < cache.outcome(*slower, kNever).outcome->elapsed);
}

TEST_CASE("two all-reduces on one NIC take the sum of their bytes over its rate, give or take a packet a step") {
  const network::Transport transport;
  network::ComponentCache cache(transport);
  const std::int64_t packets = 200;  // of one chunk
  for (const bool decomposed : {false, true}) {
    network::Traffic traffic(decomposed ? network::make_decomposed_flows(transport, cache)
                                        : network::make_plain_flows(transport));
    for (const LinkSpec& link : {nic_up(), nic_down(), nic_up(), nic_down()}) traffic.add_link(link);
    for (int i = 0; i < 2; ++i) traffic.add(all_reduce(2, 2 * packets * 4096), {{0, 1}, {2, 3}});
    traffic.set_tie_order({0, 1});
    for (std::uint32_t i = 0; i < 2; ++i) traffic.enter(i, 0), traffic.enter(i, 1);
    std::vector<network::Exit> all;
    while (all.size() < 4) traffic.advance(kNever, all);
    const Time sum = 2 * 2 * packets * kPacket, latencies = 2 * (kPacket + 2 * kMicrosecond);
    CHECK(std::abs(all.back().at - sum - latencies) <= 2 * kPacket);
    // Alone, one of them takes half of that: neither the longer nor the isolated time would do.
    CHECK(all.back().at > 2 * (packets + 1) * kPacket + 4 * kMicrosecond + sum / 4);
  }
}

TEST_CASE("data- and pipeline-parallel traffic that overlaps on shared links: composed is coupled, to the picosecond") {
  // One NIC per GPU carries the gradients of its stage and the activations to the next; small buckets overlap both.
  struct Named {
    Cluster cluster;
    std::int64_t tp, pp, micro_batches;
    const char* transport;
  };
  const std::vector<Named> configurations{
      {{4, 2, false, 1}, 1, 2, 4, "static_window"},
      {{8, 1, false, 2, false, 400'000'000'000, 100'000'000'000, 50'000'000'000}, 1, 4, 8, "dcqcn"},
      {{8, 2, false, 2, false, 400'000'000'000, 50'000'000'000, 25'000'000'000}, 2, 2, 4, "dcqcn"},
  };
  for (const Named& named : configurations) {
    step::Configuration configuration = config_of(named.cluster, named.tp, named.pp, named.micro_batches);
    configuration.transport.kind = named.transport;
    configuration.strategy.bucket_parameters = 500'000;
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    CHECK(composed.step_ps == coupled.step_ps);
    CHECK(composed.ecn_marks == coupled.ecn_marks);
    CHECK(composed.pauses == coupled.pauses);
    CHECK(composed.breakdown[workload::StepPart::exposed_dp] == coupled.breakdown[workload::StepPart::exposed_dp]);
    CHECK(composed.breakdown[workload::StepPart::exposed_pp] == coupled.breakdown[workload::StepPart::exposed_pp]);
    int several = 0;  // episodes of more than one collective
    for (const step::SubsimulationUse& episode : composed.episodes) several += std::stoi(episode.parameters) > 1;
    CHECK(several > 0);
  }
}

TEST_CASE("sharing, and what a simulation context keeps of other configurations, change nothing") {
  step::SimulationContext used;
  step::IsolatedResults results;
  for (std::uint64_t seed = 200; seed < 230; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    const auto alone = run_configuration(configuration, step::Composition::composed, false);
    for (const auto& other : {run_configuration(configuration, step::Composition::composed),
                              used.run(used.compile(configuration), results)}) {
      REQUIRE(other.step_ps == alone.step_ps);
      REQUIRE(other.ecn_marks == alone.ecn_marks);
      REQUIRE(other.breakdown[workload::StepPart::stall] == alone.breakdown[workload::StepPart::stall]);
      REQUIRE(other.collectives.size() == alone.collectives.size());
      REQUIRE(other.episodes.size() == alone.episodes.size());
      for (std::size_t i = 0; i < alone.episodes.size(); ++i) {
        REQUIRE(other.episodes[i].key == alone.episodes[i].key);
        REQUIRE(other.episodes[i].result_ps == alone.episodes[i].result_ps);
        REQUIRE(other.episodes[i].times == alone.episodes[i].times);
      }
    }
  }
}

TEST_CASE("configurations with one step key take one time, and what their step does not touch is not in the key") {
  step::SimulationContext context;
  Cluster cluster{4, 4, true, 1};
  step::Configuration a = config_of(cluster, 4, 1, 2);  // tensor parallel inside, data parallel along rails: no spine
  cluster.uplink /= 4;
  step::Configuration b = config_of(cluster, 4, 1, 2);
  const auto key = [&](const step::Configuration& given) { return context.summary(given).step; };
  CHECK(key(a) == key(b));
  CHECK(run_configuration(a, step::Composition::coupled).step_ps ==
        run_configuration(b, step::Composition::coupled).step_ps);
  cluster.nic /= 2;
  CHECK(key(a) != key(config_of(cluster, 4, 1, 2)));
  b.strategy.micro_batch = 2;
  CHECK(key(a) != key(b));
}

TEST_CASE("a summary has the key, the number and the collectives that the compiled step has") {
  step::SimulationContext used;  // forgets layouts on the way: there are more configurations than it keeps
  std::vector<step::Configuration> configurations;
  for (std::uint64_t seed = 300; seed < 330; ++seed) configurations.push_back(draw_configuration(seed));
  std::vector<sharing::Key> keys;
  std::size_t simulated = 0;
  for (const step::Configuration& configuration : configurations) {
    const step::StepSummary summary = used.summary(configuration);
    step::SimulationContext fresh;
    REQUIRE(summary.step == fresh.summary(configuration).step);
    const step::CompiledStep compiled = fresh.compile(configuration);
    CHECK(summary.instances == compiled.instances());
    std::set<sharing::Key> in_step, told;
    for (const step::CollectiveOp& use : compiled.collective_ops()) in_step.insert(use.key);
    for (const auto& collective : summary.collectives) {
      CHECK(told.insert(collective.key).second);
      const auto& all = compiled.collective_ops();
      const auto use = std::find_if(all.begin(), all.end(), [&](const step::CollectiveOp& one) {
        return one.group == collective.group && one.shape == collective.shape;
      });
      REQUIRE(use != all.end());
      CHECK(use->key == collective.key);
      CHECK(use->dag->transfers.size() == collective.transfers);
      if (simulated++ % 8 != 0) continue;
      const step::IsolatedResult direct =
          used.isolated(configuration, collective.shape, collective.group, collective.key);
      CHECK(encode(direct) == encode(fresh.isolated(compiled, *use)));
    }
    CHECK(told == in_step);
    keys.push_back(summary.step);
  }
  for (std::size_t i = 0; i < configurations.size(); ++i) CHECK(used.summary(configurations[i]).step == keys[i]);
}

TEST_CASE("two and eight ranks rank the fabrics of one configuration as their bandwidths do") {
  for (const std::uint32_t nodes : {2u, 8u}) {
    std::vector<Time> steps;
    for (const std::int64_t nic : {400, 100, 25}) {
      Cluster cluster{nodes, 1, false, 1};
      cluster.nic = nic * 1'000'000'000;
      cluster.uplink = cluster.nic * 4;
      steps.push_back(run_configuration(config_of(cluster, 1, 1, 1), step::Composition::composed).step_ps);
    }
    CHECK(steps[0] < steps[1]);
    CHECK(steps[1] < steps[2]);
    Cluster narrow{nodes, 1, false, 1};
    narrow.uplink = narrow.nic / 4;
    Cluster wide = narrow;
    wide.uplink = narrow.nic * 4;
    CHECK(run_configuration(config_of(narrow, 1, 1, 1), step::Composition::composed).step_ps >
          run_configuration(config_of(wide, 1, 1, 1), step::Composition::composed).step_ps);
  }
}

TEST_CASE("a configuration with more to simulate than its limits is too large") {
  using step::Composition;
  const step::Configuration configuration = config_of({4, 2, false, 1}, 1, 2, 4);
  const auto is_too_large = [&](std::int64_t step::Limit::*member, std::int64_t limit, Composition composition,
                                network::Fidelity fidelity = network::Fidelity::packet) {
    step::Configuration limited = configuration;
    limited.limit.*member = limit;
    limited.transport.fidelity = fidelity;
    return run_configuration(limited, composition).too_large;
  };
  const auto whole = run_configuration(configuration, Composition::composed);
  CHECK_FALSE(whole.too_large);
  // All packets in one event loop: all of them count. What recurs is composed once, and counts once.
  const auto hops = &step::Limit::link_hops;
  CHECK_FALSE(is_too_large(hops, whole.link_hops, Composition::coupled));
  CHECK(is_too_large(hops, whole.link_hops - 1, Composition::coupled));
  CHECK_FALSE(is_too_large(hops, whole.link_hops - 1, Composition::composed));
  CHECK(is_too_large(hops, whole.link_hops / 100, Composition::composed));
  // Without packets there are none to limit; entries and transfers are limited at each fidelity.
  CHECK_FALSE(is_too_large(hops, 1, Composition::composed, network::Fidelity::analytic));
  for (const auto fidelity : {network::Fidelity::packet, network::Fidelity::fluid, network::Fidelity::analytic}) {
    CHECK(is_too_large(&step::Limit::events, 20, Composition::composed, fidelity));
    CHECK_FALSE(is_too_large(&step::Limit::events, 100'000, Composition::composed, fidelity));
  }
}

TEST_CASE("results survive being bytes, and foreign bytes are refused") {
  const auto result = run_configuration(draw_configuration(3), step::Composition::composed);
  const std::string bytes = step::encode(result);
  CHECK(step::encode(step::decode_step(bytes)) == bytes);
  step::IsolatedResult isolated{{5, 7}, 9, {1, 2, 3}};
  CHECK(step::encode(step::decode_isolated(step::encode(isolated))) == step::encode(isolated));
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    CHECK_THROWS_AS(step::decode_step(bytes.substr(0, size)), InternalError);
  CHECK_THROWS_AS(step::decode_isolated(bytes), InternalError);
}

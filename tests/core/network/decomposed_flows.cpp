// Decomposing flows into components, caching these and renaming change nothing: the same picoseconds for every flow, on
// links in layers and on drawn graphs.
#include <catch2/catch.hpp>

#include <numeric>

#include "core/network/flows/component_cache.hpp"
#include "core/network/transports/registry.hpp"
#include "tests/core/network/drawn_networks.hpp"
#include "tests/core/network/smaller_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

/// By (time, flow).
std::vector<Completion> sorted(std::vector<Completion> done) {
  std::sort(done.begin(), done.end(),
            [](const auto& a, const auto& b) { return std::tie(a.at, a.id) < std::tie(b.at, b.id); });
  return done;
}

std::string differing(const std::vector<Completion>& expected, const std::vector<Completion>& done) {
  for (std::size_t i = 0; i < expected.size() && i < done.size(); ++i)
    if (!(expected[i] == done[i]))
      return fmt::format("completion {} is that of {}.{} at {}, not of {}.{} at {}", i, done[i].id.collective,
                         done[i].id.transfer, done[i].at, expected[i].id.collective, expected[i].id.transfer,
                         expected[i].at);
  return expected.size() == done.size() ? "" : fmt::format("{} completions, not {}", done.size(), expected.size());
}

std::string differing(const Counters& expected, const Counters& seen) {
  const Counters by = seen - expected;
  const bool same = by.link_hops == 0 && by.ecn_marks == 0 && by.pauses == 0 && by.drops == 0 && by.trims == 0 &&
                    by.retransmissions == 0;
  return same
             ? ""
             : fmt::format("link-hops differ by {}, marks by {}, pauses by {}, drops by {}, trims by {}, repeats by {}",
                           by.link_hops, by.ecn_marks, by.pauses, by.drops, by.trims, by.retransmissions);
}

struct Misses {
  std::uint64_t in_round[2] = {};
};

/// Decomposed twice with one cache, against the plain loop.
std::string decomposed_fault(const Problem& problem, Misses& misses, Counters& seen) {
  auto plain = make_plain_flows(problem.transport);
  Counters plain_counters, counters;
  const auto expected = play(problem, *plain, plain_counters);
  seen += plain_counters;
  if (expected.size() != problem.arrivals.size()) return "not all flows complete";
  ComponentCache cache(problem.transport);
  for (std::uint64_t& missed : misses.in_round) {
    auto decomposed = make_decomposed_flows(problem.transport, cache);
    const std::uint64_t before = cache.misses();
    std::string fault = differing(expected, play(problem, *decomposed, counters));
    if (fault.empty()) fault = differing(plain_counters, counters);
    if (fault.empty() && !decomposed->drained()) fault = "it does not drain";
    if (!fault.empty()) return fault;
    missed += cache.misses() - before;
  }
  return "";
}

template <class DrawProblem>
void check_decomposed(std::uint64_t draws, DrawProblem draw_problem) {
  Counters seen;
  Misses misses;
  for (std::uint64_t seed = 1; seed <= draws; ++seed) {
    const std::string fault = smallest_fault(
        draw_problem(seed), [&](const Problem& smaller) { return decomposed_fault(smaller, misses, seen); });
    INFO("seed " << seed << "\n" << fault);
    REQUIRE(fault.empty());
  }
  // The second round finds nearly all: it may remember what the first gave up on.
  CHECK(misses.in_round[1] * 20 < misses.in_round[0]);
  CHECK(seen.ecn_marks > 1'000);  // the draws do reach marking and pausing
  CHECK(seen.pauses > 1'000);
}

// ---- Other names ----

std::vector<std::uint32_t> shuffled(std::size_t count, Draw& draw) {
  std::vector<std::uint32_t> names(count);
  std::iota(names.begin(), names.end(), 0u);
  for (std::size_t i = count; i > 1; --i)
    std::swap(names[i - 1], names[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(i) - 1))]);
  return names;
}

/// The same fabric with switches numbered in another order, and GPUs if `gpus`.
Network with_other_vertices(const Network& network, Draw& draw, bool gpus = true) {
  const Graph& graph = *network.graph;
  std::vector<std::uint32_t> name = shuffled(graph.gpus, draw);
  if (!gpus) std::iota(name.begin(), name.end(), 0u);
  for (const std::uint32_t other : shuffled(graph.vertices.size() - graph.gpus, draw))
    name.push_back(graph.gpus + other);
  Graph renamed = graph;
  for (std::uint32_t vertex = 0; vertex < name.size(); ++vertex)
    renamed.vertices[name[vertex]] = graph.vertices[vertex], renamed.names[name[vertex]] = graph.names[vertex];
  for (Link& link : renamed.links) link.from = name[link.from], link.to = name[link.to];
  return {std::make_shared<const Graph>(std::move(renamed)), network.problem};
}

/// And links, routes, collectives and transfers too; `back` gives each transfer's collective.
struct Renamed {
  Network network;
  std::vector<std::uint32_t> collective;  // old name of each
  std::vector<Completion> original(std::vector<Completion> done) const {
    for (Completion& each : done) each.id = {collective[each.id.collective], (each.id.transfer - 2) / 3};
    return sorted(std::move(done));
  }
};

Renamed with_other_names(const Network& network, Draw& draw) {
  Network result = with_other_vertices(network, draw);
  const std::vector<std::uint32_t> link = shuffled(network.graph->links.size(), draw),
                                   route = shuffled(network.problem.routes.size(), draw),
                                   collective = shuffled(network.problem.ranks.size(), draw);
  Renamed renamed{result, std::vector<std::uint32_t>(collective.size())};
  Graph graph = *result.graph;
  Problem& problem = renamed.network.problem;
  for (std::uint32_t i = 0; i < link.size(); ++i) {
    graph.links[link[i]] = result.graph->links[i];
    problem.links[link[i]] = network.problem.links[i];
  }
  renamed.network.graph = std::make_shared<const Graph>(std::move(graph));
  for (std::uint32_t i = 0; i < route.size(); ++i) {
    problem.routes[route[i]] = network.problem.routes[i];
    for (std::uint32_t& hop : problem.routes[route[i]]) hop = link[hop];
  }
  for (std::uint32_t i = 0; i < collective.size(); ++i) {
    problem.ranks[collective[i]] = network.problem.ranks[i];
    renamed.collective[collective[i]] = i;
  }
  for (auto& arrival : problem.arrivals)
    arrival.id = {collective[arrival.id.collective], 3 * arrival.id.transfer + 2}, arrival.route = route[arrival.route];
  return renamed;
}

/// On pinned paths, in every engine. `seed` is that of the names.
std::string renamed_fault(const Network& network, const Problem& problem, std::uint64_t seed, Misses& misses) {
  Draw draw(seed);
  const Renamed renamed = with_other_names({network.graph, problem}, draw);
  const Problem& other = renamed.network.problem;
  ComponentCache cache(problem.transport);
  const auto fault = [&](auto make) {
    Counters before, after;
    const std::uint64_t none = cache.misses();
    const auto expected = sorted(play(problem, *make(network), before));
    const std::uint64_t some = cache.misses();
    const auto done = renamed.original(play(other, *make(renamed.network), after));
    misses.in_round[0] += some - none, misses.in_round[1] += cache.misses() - some;
    const std::string wrong = differing(expected, done);
    return wrong.empty() ? differing(before, after) : wrong;
  };
  std::string said = fault([&](const Network&) { return make_plain_flows(problem.transport); });
  if (said.empty()) said = fault([&](const Network&) { return make_decomposed_flows(problem.transport, cache); });
  if (said.empty())
    said = fault([&](const Network& drawn) { return make_per_packet_flows(problem.transport, drawn.graph); });
  return said;
}

/// Where packets choose their way among a switch's links by their order, and by the addresses of their ends: those keep
/// theirs.
std::string renumbered_fault(const Network& network, const Problem& problem, std::uint64_t seed) {
  Draw draw(seed);
  const Network renamed = with_other_vertices(network, draw, false);
  Counters before, after;
  const auto expected = play(problem, *make_per_packet_flows(problem.transport, network.graph), before);
  const std::string fault =
      differing(expected, play(problem, *make_per_packet_flows(problem.transport, renamed.graph), after));
  return fault.empty() ? differing(before, after) : fault;
}

}  // namespace

TEST_CASE("decomposed and cached flows give the plain loop's picoseconds on 1,500 drawn problems of all transports") {
  const std::vector<std::string> kinds = transport_kinds();
  check_decomposed(1'500, [&](std::uint64_t seed) { return draw(seed, kinds); });
}

TEST_CASE("decomposed and cached flows give the plain loop's picoseconds on 1,500 drawn graphs") {
  check_decomposed(1'500, [](std::uint64_t seed) { return draw_network(seed, true).problem; });
}

TEST_CASE("other names of GPUs, switches, links, routes and flows change nothing on 1,500 drawn graphs") {
  Misses misses;
  for (std::uint64_t seed = 1; seed <= 1'500; ++seed) {
    const Network network = draw_network(seed, true);
    const std::string fault = smallest_fault(
        network.problem, [&](const Problem& problem) { return renamed_fault(network, problem, seed, misses); });
    INFO("seed " << seed << "\n" << fault);
    REQUIRE(fault.empty());
  }
  CHECK(misses.in_round[1] * 20 < misses.in_round[0]);  // the renamed are found among what was computed
}

TEST_CASE("other numbers of switches change nothing for packets that choose their way, on 1,500 drawn graphs") {
  for (std::uint64_t seed = 1; seed <= 1'500; ++seed) {
    const Network network = draw_network(seed, false);
    // That goes back by the numbers of GPUs.
    if (network.problem.transport.routing == Routing::destination_mod_k) continue;
    const std::string fault = smallest_fault(
        network.problem, [&](const Problem& problem) { return renumbered_fault(network, problem, seed); });
    INFO("seed " << seed << "\n" << fault);
    REQUIRE(fault.empty());
  }
}

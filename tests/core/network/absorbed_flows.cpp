// Decomposed flows that absorb others, with clocks of their own, go on as if all had been in one event loop.
#include <catch2/catch.hpp>

#include <numeric>

#include "core/network/flows/component_cache.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

/// Two problems, of which the second begins `shift` later and has names of its own, and flows between their links from
/// `joined_at` on.
struct TwoProblems {
  Problem first, second, whole;  // whole: both with common names, and what connects them
  std::size_t between = 0;       // arrivals of `whole` that connect them, the last ones
  Time shift = 0, joined_at = 0;
};

TwoProblems draw_two(std::uint64_t seed, const std::vector<std::string>& kinds) {
  TwoProblems result{draw(seed, kinds), {}, {}};
  std::mt19937_64 random(seed);
  const auto any = [&](std::size_t below) { return static_cast<std::uint32_t>(random() % below); };
  Problem &first = result.first, &second = result.second, &whole = result.whole;
  second = draw(seed + 1'000'000, kinds);
  second.transport = first.transport;
  result.shift = any(30) * kPacket;
  result.joined_at = result.shift + any(120) * kPacket + any(2) * 777;
  whole = first;
  const auto links = static_cast<std::uint32_t>(first.links.size());
  const auto collectives = static_cast<std::uint32_t>(first.ranks.size());
  const auto routes = static_cast<std::uint32_t>(first.routes.size());
  whole.links.insert(whole.links.end(), second.links.begin(), second.links.end());
  for (Route route : second.routes) {
    for (std::uint32_t& link : route) link += links;
    whole.routes.push_back(route);
  }
  for (Problem::Arrival arrival : second.arrivals) {
    arrival.at += result.shift, arrival.id.collective += collectives, arrival.route += routes;
    whole.arrivals.push_back(arrival);
  }
  whole.ranks.resize(2 * collectives + 1);
  std::iota(whole.ranks.begin(), whole.ranks.end(), 0u);
  std::shuffle(whole.ranks.begin(), whole.ranks.end(), random);
  first.ranks.assign(whole.ranks.begin(), whole.ranks.begin() + collectives);
  second.ranks.assign(whole.ranks.begin() + collectives, whole.ranks.end() - 1);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Route &from = first.routes[any(first.routes.size())], &to = whole.routes[routes + any(second.routes.size())];
    whole.routes.push_back({from.front(), to.back()});
    whole.arrivals.push_back({result.joined_at + any(20) * kPacket,
                              {2 * collectives, i},
                              static_cast<std::uint32_t>(whole.routes.size() - 1),
                              any(80) * 1024});
  }
  std::stable_sort(whole.arrivals.begin(), whole.arrivals.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return result;
}

/// Plays the arrivals that `of` has from `next` on up to and with `until`, and appends completions with `shift` added.
void play_until(Flows& flows, const Problem& of, std::size_t& next, Time until, Time shift, std::uint32_t collectives,
                std::vector<Completion>& done) {
  std::vector<FlowId> finished;
  const auto go = [&](Time limit) {
    do {
      finished.clear();
      flows.advance(limit, finished);
      for (const FlowId id : finished)
        done.push_back({flows.now() + shift, {id.collective + collectives, id.transfer}});
    } while (!finished.empty());
  };
  for (; next < of.arrivals.size() && of.arrivals[next].at <= until; ++next) {
    if (flows.now() < of.arrivals[next].at) go(of.arrivals[next].at);
    flows.start(of.arrivals[next].id, of.arrivals[next].route, of.arrivals[next].bytes);
  }
  if (until == kNever || flows.now() < until) go(until);
}

std::unique_ptr<Flows> begun(const Problem& problem, ComponentCache& cache) {
  auto flows = make_decomposed_flows(problem.transport, cache);
  for (const LinkSpec& link : problem.links) flows->add_link(link);
  for (const Route& route : problem.routes) flows->add_route(route);
  flows->set_tie_order(problem.ranks);
  return flows;
}

void sort(std::vector<Completion>& done) {
  std::sort(done.begin(), done.end(),
            [](const auto& a, const auto& b) { return std::tie(a.at, a.id) < std::tie(b.at, b.id); });
}

}  // namespace

TEST_CASE("flows that absorb others go on as one event loop of all on 1,000 drawn pairs of all transports") {
  const std::vector<std::string> kinds = transport_kinds();
  std::size_t under_way = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    const TwoProblems drawn = draw_two(seed, kinds);
    INFO("seed " << seed << ", " << drawn.first.transport.kind);
    Counters plain_counters;
    auto plain = make_plain_flows(drawn.whole.transport);
    std::vector<Completion> expected = play(drawn.whole, *plain, plain_counters);
    REQUIRE(expected.size() == drawn.whole.arrivals.size());

    ComponentCache cache(drawn.whole.transport);
    if (seed % 2 == 0) cache.balance = -1;  // caching does not pay, so that components are soon simulated jointly
    auto flows = begun(drawn.first, cache), other = begun(drawn.second, cache);
    std::vector<Completion> done;
    std::size_t next = 0, next_of_other = 0;
    const auto collectives = static_cast<std::uint32_t>(drawn.first.ranks.size());
    play_until(*flows, drawn.first, next, drawn.joined_at, 0, 0, done);
    play_until(*other, drawn.second, next_of_other, drawn.joined_at - drawn.shift, drawn.shift, collectives, done);
    const std::size_t started = next + next_of_other;
    under_way += started - done.size();
    flows->absorb(*other, drawn.shift);
    for (std::size_t i = drawn.first.routes.size() + drawn.second.routes.size(); i < drawn.whole.routes.size(); ++i)
      CHECK(flows->add_route(drawn.whole.routes[i]) == i);
    flows->set_tie_order(drawn.whole.ranks);
    // What arrived by then has: those between them arrive later, or at this instant as the last.
    Problem rest = drawn.whole;
    rest.arrivals.clear();
    for (const auto& arrival : drawn.whole.arrivals)
      if (arrival.at > drawn.joined_at || arrival.id.collective == 2 * collectives) rest.arrivals.push_back(arrival);
    REQUIRE(rest.arrivals.size() + started == drawn.whole.arrivals.size());
    after += rest.arrivals.size();
    std::size_t next_of_all = 0;
    play_until(*flows, rest, next_of_all, kNever, 0, 0, done);

    sort(done), sort(expected);
    REQUIRE(done == expected);
    const Counters by = flows->counters() - plain_counters;
    REQUIRE((by.link_hops == 0 && by.ecn_marks == 0 && by.pauses == 0));
    CHECK(flows->drained());
  }
  CHECK((under_way > 2'000 && after > 5'000));  // many flows are under way when they meet, and many come later
}

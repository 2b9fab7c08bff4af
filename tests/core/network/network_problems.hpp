// Drawn problems for packet engines: links in layers, flows over them that start on a coarse grid.
#pragma once

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/network/flows/flows.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::tests {

using core::kMicrosecond;
using core::kNever;
using core::Time;
using core::network::Counters;
using core::network::FlowId;
using core::network::Flows;
using core::network::LinkSpec;
using core::network::Route;
using core::network::Transport;

inline constexpr std::int64_t kRate = 400'000'000'000;
inline constexpr Time kPacket = 83'200;  // 4,160 B at 400 Gb/s

inline LinkSpec spec(std::int64_t rate, Time latency, bool leaves, bool enters) {
  return {rate, latency, leaves, enters, false};
}

struct Completion {
  Time at;
  FlowId id;
  bool operator==(const Completion&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Completion& c) {
  return out << c.at << ":" << c.id.collective << "." << c.id.transfer;
}

// A drawn problem: links with routes over them, and flows with start times.
struct Problem {
  Transport transport;
  std::vector<LinkSpec> links;
  std::vector<Route> routes;
  struct Arrival {
    Time at;
    FlowId id;
    std::uint32_t route;
    std::int64_t bytes;
  };
  std::vector<Arrival> arrivals;  // by time
  std::vector<std::uint32_t> ranks;
};

/// `seen(flows)` is called whenever the flows have come to an instant.
template <class Seen>
std::vector<Completion> play(const Problem& problem, Flows& flows, Counters& counters, Seen seen) {
  for (const LinkSpec& link : problem.links) flows.add_link(link);
  for (const Route& route : problem.routes) flows.add_route(route);
  flows.set_tie_order(problem.ranks);
  std::vector<Completion> done;
  std::vector<FlowId> finished;
  const auto go = [&](Time limit) {
    do {
      finished.clear();
      flows.advance(limit, finished);
      seen(flows);
      for (const FlowId id : finished) done.push_back({flows.now(), id});
    } while (!finished.empty());
  };
  for (const auto& arrival : problem.arrivals) {
    if (flows.now() < arrival.at) go(arrival.at);
    flows.start(arrival.id, arrival.route, arrival.bytes);
  }
  go(kNever);
  counters = flows.counters();
  return done;
}
inline std::vector<Completion> play(const Problem& problem, Flows& flows, Counters& counters) {
  return play(problem, flows, counters, [](const Flows&) {});
}

/// Every transport that runs on pinned paths.
inline std::vector<std::string> transport_kinds() {
  std::vector<std::string> kinds;
  for (const auto& type : core::network::transports())
    if (type.make_engine != nullptr) kinds.push_back(type.name);
  return kinds;
}

// Layered switches so that routes never form a cycle: source NICs, a middle layer or two, sinks.
inline Problem draw(std::uint64_t seed, const std::vector<std::string>& kinds, std::int64_t times_larger = 1) {
  std::mt19937_64 random(seed);
  const auto any = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Problem problem;
  problem.transport.kind = kinds[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(kinds.size()) - 1))];
  problem.transport.window_bytes = any(1, 30) * 4160;
  problem.transport.pfc_xoff_bytes = any(1, 16) * 4160;
  problem.transport.pfc_xon_bytes = problem.transport.pfc_xoff_bytes / 2;
  problem.transport.ecn_kmin_bytes = any(1, 4) * 1000;
  problem.transport.ecn_kmax_bytes = problem.transport.ecn_kmin_bytes * any(2, 4);
  const std::int64_t layers = any(2, 4), width = any(1, 5);
  const Time latency = any(1, 3) * 250'000;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (std::int64_t i = 0; i < width; ++i)
      problem.links.push_back(spec(kRate / (any(0, 3) == 0 ? 2 : 1), latency, layer == 0, layer + 1 == layers));
  const std::int64_t flows = any(1, 12);
  for (std::int64_t i = 0; i < flows; ++i) {
    Route route;
    for (std::int64_t layer = 0; layer < layers; ++layer)
      route.push_back(static_cast<std::uint32_t>(layer * width + any(0, width - 1)));
    problem.routes.push_back(route);
    // Starts on a coarse grid, so that ties of every kind occur.
    problem.arrivals.push_back({any(0, 40) * kPacket * any(1, 4),
                                {static_cast<std::uint32_t>(any(0, 2)), static_cast<std::uint32_t>(i)},
                                static_cast<std::uint32_t>(i),
                                any(0, 80) * times_larger * 1024 + any(0, 3)});
  }
  std::sort(problem.arrivals.begin(), problem.arrivals.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  problem.ranks = {1, 0, 2};
  return problem;
}

}  // namespace manyworlds::tests

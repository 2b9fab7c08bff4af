#include "core/network/fabric/pfc_deadlock.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::core::network {

PauseDependencies relabeled(PauseDependencies waits, const std::vector<std::uint32_t>& names) {
  for (auto& [paused, holder] : waits) paused = names[paused], holder = names[holder];
  return waits;
}

std::vector<std::uint32_t> find_cycle(const std::vector<std::vector<std::uint32_t>>& waits) {
  enum class State : std::uint8_t { unseen, open, closed };
  std::vector<State> states(waits.size(), State::unseen);
  std::vector<std::pair<std::uint32_t, std::size_t>> path;  // (port, number of its dependencies visited)
  for (std::uint32_t first = 0; first < waits.size(); ++first) {
    if (states[first] != State::unseen) continue;
    path.assign(1, {first, 0});
    states[first] = State::open;
    while (!path.empty()) {
      auto& [port, seen] = path.back();
      if (seen == waits[port].size()) {
        states[port] = State::closed;
        path.pop_back();
        continue;
      }
      const std::uint32_t next = waits[port][seen++];
      if (states[next] == State::open) {
        std::vector<std::uint32_t> cycle;
        const auto from = std::find_if(path.begin(), path.end(), [&](const auto& at) { return at.first == next; });
        for (auto at = from; at != path.end(); ++at) cycle.push_back(at->first);
        std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
        return cycle;
      }
      if (states[next] == State::closed) continue;
      states[next] = State::open;
      path.emplace_back(next, 0);
    }
  }
  return {};
}

void throw_pfc_deadlock(const Graph& graph, const PauseDependencies& waits) {
  std::vector<std::vector<std::uint32_t>> by_link(graph.links.size());
  for (const auto& [paused, holder] : waits) by_link[paused].push_back(holder);
  for (auto& holders : by_link) std::sort(holders.begin(), holders.end());
  std::string ports;
  for (const std::uint32_t link : find_cycle(by_link)) {
    const Link& at = graph.links[link];
    ports += fmt::format("{}{}->{}", ports.empty() ? "" : ", ", graph.names[at.from], graph.names[at.to]);
  }
  MANYWORLDS_CHECK(!ports.empty(), "transfers stand still, but of {} waits for paused links none go round",
                   waits.size());
  throw InputError(fmt::format(
      "PFC deadlock: transfers stand still because these ports pause each other: {}; take another fabric or "
      "routing, or a larger transport.pfc_xoff_bytes and buffer_bytes",
      ports));
}

}  // namespace manyworlds::core::network

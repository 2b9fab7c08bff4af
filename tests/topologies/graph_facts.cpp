// Breadth-first search over the link list; nothing here knows how a fabric was built.
#include "tests/topologies/graph_facts.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include "core/base/error.hpp"

namespace manyworlds::topologies::tests {

using core::network::Graph;
using core::network::LinkKind;
using core::network::VertexKind;

namespace {

constexpr std::size_t kNone = SIZE_MAX;

struct Arc {
  std::size_t from, to;
  std::int64_t room;
};

/// Arcs come in pairs: arc i and arc i^1 are the two directions of one residual edge.
struct Residual {
  std::vector<Arc> arcs;
  std::vector<std::vector<std::size_t>> leaving;

  explicit Residual(std::size_t vertices) : leaving(vertices) {}
  void add(std::size_t from, std::size_t to, std::int64_t room) {
    leaving[from].push_back(arcs.size());
    arcs.push_back({from, to, room});
    leaving[to].push_back(arcs.size());
    arcs.push_back({to, from, 0});
  }
  /// Pushes what the shortest path with room can take; 0 when there is none.
  std::int64_t augment(std::size_t source, std::size_t sink) {
    std::vector<std::size_t> via(leaving.size(), kNone);
    std::deque<std::size_t> open{source};
    while (!open.empty() && via[sink] == kNone) {
      const std::size_t at = open.front();
      open.pop_front();
      for (const std::size_t arc : leaving[at])
        if (arcs[arc].room > 0 && via[arcs[arc].to] == kNone && arcs[arc].to != source) {
          via[arcs[arc].to] = arc;
          open.push_back(arcs[arc].to);
        }
    }
    if (via[sink] == kNone) return 0;
    std::int64_t least = INT64_MAX;
    for (std::size_t at = sink; at != source; at = arcs[via[at]].from) least = std::min(least, arcs[via[at]].room);
    for (std::size_t at = sink; at != source; at = arcs[via[at]].from) {
      arcs[via[at]].room -= least;
      arcs[via[at] ^ 1].room += least;
    }
    return least;
  }
};

}  // namespace

FabricSpec fabric_spec_of(std::int64_t nodes, std::int64_t gpus_per_node, core::compute::ScaleUp scale_up) {
  return {nodes, gpus_per_node, scale_up, kScaleUp, 500'000, kNic, 1'000'000};
}

std::vector<Topology> fabrics() {
  std::vector<Topology> built = registry();
  std::erase_if(built, [](const Topology& topology) { return topology.traits.from_file; });
  return built;
}

Graph build(const std::string& name, const core::OptionSet& options, const FabricSpec& spec) {
  for (const Topology& topology : registry())
    if (topology.name == name) return topology.build(options, spec);
  throw core::InternalError("no topology " + name);
}

bool connected(const Graph& graph, LinkKind kind, const std::function<bool(std::uint32_t, std::uint32_t)>& expected) {
  std::vector<std::vector<std::uint32_t>> next(graph.vertices.size());
  for (const core::network::Link& link : graph.links)
    if (link.kind == kind) next[link.from].push_back(link.to);
  for (std::uint32_t from = 0; from < graph.gpus; ++from) {
    std::vector<bool> seen(graph.vertices.size());
    std::deque<std::uint32_t> open{from};
    seen[from] = true;
    while (!open.empty()) {
      const std::uint32_t at = open.front();
      open.pop_front();
      if (at != from && graph.vertices[at] == VertexKind::gpu) continue;  // GPUs do not forward
      for (const std::uint32_t to : next[at])
        if (!seen[to]) seen[to] = true, open.push_back(to);
    }
    for (std::uint32_t to = 0; to < graph.gpus; ++to)
      if (to != from && seen[to] != expected(from, to)) return false;
  }
  return true;
}

std::int64_t bisection(const Graph& graph, const std::function<bool(std::uint32_t)>& source) {
  const std::size_t from = graph.vertices.size(), to = from + 1;
  Residual residual(graph.vertices.size() + 2);
  for (const core::network::Link& link : graph.links)
    if (link.kind == LinkKind::network) residual.add(link.from, link.to, link.bits_per_second);
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    source(gpu) ? residual.add(from, gpu, INT64_MAX / 2) : residual.add(gpu, to, INT64_MAX / 2);
  std::int64_t flow = 0;
  while (const std::int64_t more = residual.augment(from, to)) flow += more;
  return flow;
}

std::vector<core::network::Route> all_routes(const Graph& graph, core::network::Routing routing) {
  core::network::Router router(std::make_shared<const Graph>(graph), routing, 7);
  std::vector<core::network::Route> routes;
  for (std::uint32_t to = 0; to < graph.gpus; ++to)
    for (std::uint32_t from = 0; from < graph.gpus; ++from)
      if (from != to) routes.push_back(router.route(from, to, routes.size()));
  return routes;
}

bool waits_in_cycle(const Graph& graph, const std::vector<core::network::Route>& routes) {
  std::vector<std::set<std::uint32_t>> next(graph.links.size());
  std::vector<std::uint32_t> waiting(graph.links.size());
  for (const auto& route : routes)
    for (std::size_t i = 0; i + 1 < route.size(); ++i)
      if (next[route[i]].insert(route[i + 1]).second) ++waiting[route[i + 1]];
  std::vector<std::uint32_t> open;  // links that nothing waits for are taken away until none is left
  for (std::uint32_t link = 0; link < waiting.size(); ++link)
    if (waiting[link] == 0) open.push_back(link);
  std::size_t taken = 0;
  while (!open.empty()) {
    const std::uint32_t link = open.back();
    open.pop_back();
    ++taken;
    for (const std::uint32_t after : next[link])
      if (--waiting[after] == 0) open.push_back(after);
  }
  return taken < graph.links.size();
}

std::vector<std::string> names_on(const Graph& graph, const core::network::Route& route) {
  std::vector<std::string> names{graph.names[graph.links[route.front()].from]};
  for (const std::uint32_t link : route) names.push_back(graph.names[graph.links[link].to]);
  return names;
}

std::int64_t count(const Graph& graph, const std::string& prefix) {
  return std::count_if(graph.names.begin(), graph.names.end(),
                       [&](const std::string& name) { return name.compare(0, prefix.size(), prefix) == 0; });
}

std::int64_t trunk_cables(const Graph& graph) {
  return std::count_if(graph.links.begin(), graph.links.end(),
                       [&](const core::network::Link& link) {
                         return graph.vertices[link.from] == VertexKind::network_switch &&
                                graph.vertices[link.to] == VertexKind::network_switch;
                       }) /
         2;
}

}  // namespace manyworlds::topologies::tests

#include "topologies/parts/reach.hpp"

#include <algorithm>
#include <vector>

#include "core/sharing/union_find.hpp"

namespace manyworlds::topologies {

using core::network::Graph;
using core::network::Link;
using core::network::LinkKind;

namespace {

using Sets = std::vector<std::vector<std::uint32_t>>;  // by GPU, ascending

void sort_sets(Sets& sets) {
  for (auto& set : sets) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
}

bool meet(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) return true;
    a[i] < b[j] ? ++i : ++j;
  }
  return false;
}

}  // namespace

std::optional<std::pair<std::uint32_t, std::uint32_t>> unconnected(const Graph& graph) {
  // Switches that are cabled to each other are one island. A cable between two GPUs is an island of its own.
  core::sharing::UnionFind islands(graph.vertices.size() + graph.links.size());
  const auto between = [&](const Link& link) { return (link.from < graph.gpus) + (link.to < graph.gpus); };
  for (const Link& link : graph.links)
    if (between(link) == 0) islands.join(link.from, link.to);
  Sets into(graph.gpus);  // the islands a GPU is on
  std::vector<std::vector<std::uint32_t>> scale_up(islands.size());
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    if (link.to >= graph.gpus) continue;
    const auto cable = static_cast<std::uint32_t>(graph.vertices.size() + i / 2 * 2);
    const std::uint32_t island = between(link) == 2 ? cable : islands.root(link.from);
    into[link.to].push_back(island);
    if (link.kind == LinkKind::scale_up) scale_up[island].push_back(link.to);
  }
  sort_sets(into);
  Sets from = into;  // the islands it can send to: where GPUs relay, also those of its scale-up peers
  if (graph.gpus_relay)
    for (const auto& peers : scale_up)
      for (const std::uint32_t gpu : peers)
        for (const std::uint32_t peer : peers) from[gpu].insert(from[gpu].end(), into[peer].begin(), into[peer].end());
  sort_sets(from);
  // Most fabrics have an island that everybody is on.
  if (graph.gpus == 0) return std::nullopt;
  for (const std::uint32_t island : into.front())
    if (std::all_of(into.begin(), into.end(),
                    [&](const auto& set) { return std::binary_search(set.begin(), set.end(), island); }))
      return std::nullopt;
  for (std::uint32_t source = 0; source < graph.gpus; ++source)
    for (std::uint32_t destination = 0; destination < graph.gpus; ++destination)
      if (source != destination && !meet(from[source], into[destination])) return std::pair{source, destination};
  return std::nullopt;
}

}  // namespace manyworlds::topologies

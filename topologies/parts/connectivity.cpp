#include "topologies/parts/connectivity.hpp"

#include <algorithm>
#include <vector>

#include "core/sharing/union_find.hpp"

namespace manyworlds::topologies {

using core::network::Graph;
using core::network::Link;
using core::network::LinkKind;

namespace {

using IslandSets = std::vector<std::vector<std::uint32_t>>;  // by GPU: its islands, ascending

void sort_sets(IslandSets& sets) {
  for (auto& set : sets) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
}

bool intersects(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) return true;
    a[i] < b[j] ? ++i : ++j;
  }
  return false;
}

}  // namespace

std::optional<std::pair<std::uint32_t, std::uint32_t>> find_unreachable_pair(const Graph& graph) {
  // Switches that are connected to each other are one island. A cable between two GPUs is an island of its own.
  core::sharing::UnionFind islands(graph.vertices.size() + graph.links.size());
  const auto gpu_ends = [&](const Link& link) { return (link.from < graph.gpus) + (link.to < graph.gpus); };
  for (const Link& link : graph.links)
    if (gpu_ends(link) == 0) islands.join(link.from, link.to);
  IslandSets receivable(graph.gpus);  // islands from which a GPU can receive
  std::vector<std::vector<std::uint32_t>> scale_up(islands.size());
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    if (link.to >= graph.gpus) continue;
    const auto cable = static_cast<std::uint32_t>(graph.vertices.size() + i / 2 * 2);
    const std::uint32_t island = gpu_ends(link) == 2 ? cable : islands.root(link.from);
    receivable[link.to].push_back(island);
    if (link.kind == LinkKind::scale_up) scale_up[island].push_back(link.to);
  }
  sort_sets(receivable);
  IslandSets from = receivable;  // islands to which a GPU can send: if GPUs relay, also those of its scale-up peers
  if (graph.gpus_relay)
    for (const auto& peers : scale_up)
      for (const std::uint32_t gpu : peers)
        for (const std::uint32_t peer : peers)
          from[gpu].insert(from[gpu].end(), receivable[peer].begin(), receivable[peer].end());
  sort_sets(from);
  // Fast path: in most fabrics there is an island with all GPUs.
  if (graph.gpus == 0) return std::nullopt;
  for (const std::uint32_t island : receivable.front())
    if (std::all_of(receivable.begin(), receivable.end(),
                    [&](const auto& set) { return std::binary_search(set.begin(), set.end(), island); }))
      return std::nullopt;
  for (std::uint32_t source = 0; source < graph.gpus; ++source)
    for (std::uint32_t destination = 0; destination < graph.gpus; ++destination)
      if (source != destination && !intersects(from[source], receivable[destination]))
        return std::pair{source, destination};
  return std::nullopt;
}

}  // namespace manyworlds::topologies

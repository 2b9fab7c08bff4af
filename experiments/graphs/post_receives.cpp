// Receives that are posted before a rank comes to them, as messages that are sent without asking arrive all the same.
#include <map>

#include "experiments/graphs/rank_graph.hpp"

namespace manyworlds::experiments::graphs {

void post_receives(RankGraph& graph, std::int64_t most_bytes) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> queues;  // by sender and tag
  const std::size_t given = graph.nodes.size();
  for (std::size_t i = 0; i < given; ++i) {
    const auto* transfer = std::get_if<Transfer>(&graph.nodes[i].work);
    if (transfer == nullptr || !transfer->receives || transfer->bytes > most_bytes) continue;
    GraphNode posted;
    posted.id = graph.nodes[i].id;
    posted.name = graph.nodes[i].name;
    posted.work = *transfer;
    posted.us = graph.nodes[i].us;
    posted.queue =
        queues.try_emplace({transfer->peer, transfer->tag}, static_cast<std::uint32_t>(queues.size())).first->second;
    graph.nodes[i].parents.push_back(static_cast<std::uint32_t>(graph.nodes.size()));
    graph.nodes[i].work = std::monostate{};
    graph.nodes[i].resource = kNoResource;
    graph.nodes.push_back(std::move(posted));
  }
}

}  // namespace manyworlds::experiments::graphs

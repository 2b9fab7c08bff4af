#include "core/network/fabric/forwarding_tables.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::core::network {

ForwardingTables::ForwardingTables(std::shared_ptr<const Graph> graph, std::vector<std::uint32_t> numbers,
                                   DistanceMethod method)
    : graph_(std::move(graph)),
      numbers_(std::move(numbers)),
      distances_(*graph_, method),
      first_forwarding_vertex_(graph_->gpus_relay ? 0 : graph_->gpus),
      destination_class_(graph_->vertices.size(), UINT32_MAX),
      interned_sets_(graph_->vertices.size()) {
  for (std::uint32_t id = 0; id < graph_->links.size(); ++id)
    next_hop_pool_.insert(next_hop_pool_.end(), {1, named(id)});
  next_hop_pool_.push_back(0);
  const auto preference = [&](std::uint32_t id) {
    const Link& link = graph_->links[id];
    return std::tuple(link.from, weight(link), link.order);
  };
  for (std::uint32_t gpu = 0; gpu <= graph_->gpus; ++gpu) {
    last_hop_begin_.push_back(static_cast<std::uint32_t>(last_hop_link_.size()));
    if (gpu == graph_->gpus) break;
    std::vector<std::uint32_t> in(distances_.in(gpu).begin(), distances_.in(gpu).end());
    std::stable_sort(in.begin(), in.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return preference(a) < preference(b); });
    for (std::size_t i = 0, best = 0; i < in.size(); ++i) {  // of parallel links from one vertex, the preferred ones
      if (graph_->links[in[i]].from != graph_->links[in[best]].from) best = i;
      if (preference(in[i]) != preference(in[best])) continue;
      last_hop_from_.push_back(graph_->links[in[i]].from);
      last_hop_link_.push_back(named(in[i]));
    }
  }
}

std::vector<std::uint32_t> ForwardingTables::first_hop_links(std::uint32_t source, std::uint32_t destination) {
  distances_.set_destination(destination);
  if (source == destination || distances_.from(source) == Distances::kUnreachable)
    throw InputError(fmt::format("no path from GPU {} to GPU {} on this topology", source, destination));
  if (destination_class_[destination] == UINT32_MAX) {
    std::vector<Attachment> attached;
    const bool forwards = graph_->gpus_relay || destination >= graph_->gpus;
    if (forwards) attached.push_back({destination, 0});  // a forwarding destination shares its rows with no other
    for (const std::uint32_t id : distances_.in(destination))
      attached.push_back({graph_->links[id].from, weight(graph_->links[id])});
    const auto [position, inserted] =
        destination_classes_.emplace(std::move(attached), static_cast<std::uint32_t>(destination_classes_.size()));
    if (inserted) add_rows(destination);
    destination_class_[destination] = position->second;
  }
  std::vector<std::uint32_t> links;
  distances_.find_next_hops(
      source, [&](std::uint32_t vertex) { return distances_.from(vertex); }, links);
  for (std::uint32_t& link : links) link = named(link);
  return links;
}

void ForwardingTables::add_rows(std::uint32_t destination) {
  row_begin_.push_back(next_hop_table_.size());
  std::vector<std::uint32_t> distances(graph_->vertices.size());
  for (std::uint32_t vertex = first_forwarding_vertex_; vertex < distances.size(); ++vertex)
    distances[vertex] = distances_.from(vertex);
  const auto distance_of = [&](std::uint32_t vertex) { return distances[vertex]; };
  std::vector<std::uint32_t> found;
  for (std::uint32_t vertex = first_forwarding_vertex_; vertex < graph_->vertices.size(); ++vertex) {
    if (vertex == destination)
      found.clear();
    else
      distances_.find_next_hops(vertex, distance_of, found);
    const auto arrives = [&](std::uint32_t id) { return graph_->links[id].to == destination; };
    if (found.empty())
      next_hop_table_.push_back(static_cast<std::uint32_t>(2 * graph_->links.size()));
    else if (destination < graph_->gpus && std::all_of(found.begin(), found.end(), arrives))
      next_hop_table_.push_back(kDirectlyAttached);
    else
      next_hop_table_.push_back(intern(vertex, found));
  }
}

std::uint32_t ForwardingTables::intern(std::uint32_t vertex, const std::vector<std::uint32_t>& links) {
  if (links.size() == 1) return 2 * links.front();
  const auto is_same = [&](std::uint32_t link, std::uint32_t number) { return named(link) == number; };
  for (const std::uint32_t set : interned_sets_[vertex])
    if (next_hop_pool_[set] == links.size() &&
        std::equal(links.begin(), links.end(), next_hop_pool_.begin() + set + 1, is_same))
      return set;
  const auto set = static_cast<std::uint32_t>(next_hop_pool_.size());
  next_hop_pool_.push_back(static_cast<std::uint32_t>(links.size()));
  for (const std::uint32_t link : links) next_hop_pool_.push_back(named(link));
  interned_sets_[vertex].push_back(set);
  return set;
}

std::size_t ForwardingTables::bytes() const {
  return sizeof(std::uint32_t) *
         (destination_class_.size() + next_hop_table_.size() + next_hop_pool_.size() + 2 * last_hop_link_.size());
}

}  // namespace manyworlds::core::network

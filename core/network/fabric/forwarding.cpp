#include "core/network/fabric/forwarding.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::core::network {

Forwarding::Forwarding(std::shared_ptr<const Graph> graph)
    : graph_(std::move(graph)),
      distances_(*graph_),
      first_(graph_->gpus_relay ? 0 : graph_->gpus),
      class_of_(graph_->vertices.size(), UINT32_MAX),
      sets_(graph_->vertices.size()) {
  for (std::uint32_t id = 0; id < graph_->links.size(); ++id) pool_.insert(pool_.end(), {1, id});
  const auto rank = [&](std::uint32_t id) {
    const Link& link = graph_->links[id];
    return std::tuple(link.from, weight(link), link.order);
  };
  for (std::uint32_t gpu = 0; gpu <= graph_->gpus; ++gpu) {
    entry_begin_.push_back(static_cast<std::uint32_t>(entry_link_.size()));
    if (gpu == graph_->gpus) break;
    std::vector<std::uint32_t> in(distances_.in(gpu).begin(), distances_.in(gpu).end());
    std::stable_sort(in.begin(), in.end(), [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
    for (std::size_t i = 0, best = 0; i < in.size(); ++i) {  // of several from one vertex, those that routes take
      if (graph_->links[in[i]].from != graph_->links[in[best]].from) best = i;
      if (rank(in[i]) != rank(in[best])) continue;
      entry_from_.push_back(graph_->links[in[i]].from);
      entry_link_.push_back(in[i]);
    }
  }
}

template <class Far>
std::vector<std::uint32_t> Forwarding::choices(std::uint32_t vertex, std::uint32_t destination, const Far& far) const {
  std::vector<std::uint32_t> found;
  const std::uint32_t here = far(vertex);
  if (here == Distances::kUnreachable) return found;
  for (const std::uint32_t id : distances_.out(vertex)) {
    const Link& link = graph_->links[id];
    const bool relays = graph_->gpus_relay && link.kind == LinkKind::scale_up;
    if (link.to != destination && graph_->vertices[link.to] == VertexKind::gpu && !relays) continue;
    const std::uint32_t rest = link.to == destination ? 0 : far(link.to);
    if (rest != Distances::kUnreachable && rest + weight(link) == here) found.push_back(id);
  }
  std::uint8_t least = UINT8_MAX;
  for (const std::uint32_t id : found) least = std::min(least, graph_->links[id].order);
  std::erase_if(found, [&](std::uint32_t id) { return graph_->links[id].order > least; });
  return found;
}

std::vector<std::uint32_t> Forwarding::first_links(std::uint32_t source, std::uint32_t destination) {
  distances_.aim_at(destination);
  if (source == destination || distances_.from(source) == Distances::kUnreachable)
    throw InputError(fmt::format("no path from GPU {} to GPU {} on this topology", source, destination));
  if (class_of_[destination] == UINT32_MAX) {
    std::vector<Attachment> attached;
    const bool forwards = graph_->gpus_relay || destination >= graph_->gpus;
    if (forwards) attached.push_back({destination, 0});  // what forwards is a place of its own
    for (const std::uint32_t id : distances_.in(destination))
      attached.push_back({graph_->links[id].from, weight(graph_->links[id])});
    const auto [known, fresh] = classes_.emplace(std::move(attached), static_cast<std::uint32_t>(classes_.size()));
    if (fresh) add_rows(destination);
    class_of_[destination] = known->second;
  }
  return choices(source, destination, [&](std::uint32_t vertex) { return distances_.from(vertex); });
}

void Forwarding::add_rows(std::uint32_t destination) {
  row_begin_.push_back(sets_of_.size());
  std::vector<std::uint32_t> distances(graph_->vertices.size());
  for (std::uint32_t vertex = first_; vertex < distances.size(); ++vertex) distances[vertex] = distances_.from(vertex);
  const auto far = [&](std::uint32_t vertex) { return distances[vertex]; };
  for (std::uint32_t vertex = first_; vertex < graph_->vertices.size(); ++vertex) {
    const std::vector<std::uint32_t> found =
        vertex == destination ? std::vector<std::uint32_t>{} : choices(vertex, destination, far);
    const auto arrives = [&](std::uint32_t id) { return graph_->links[id].to == destination; };
    if (found.empty())
      sets_of_.push_back(kNoWay);
    else if (destination < graph_->gpus && std::all_of(found.begin(), found.end(), arrives))
      sets_of_.push_back(kAttached);
    else
      sets_of_.push_back(set_of(vertex, found));
  }
}

std::uint32_t Forwarding::set_of(std::uint32_t vertex, const std::vector<std::uint32_t>& links) {
  if (links.size() == 1) return 2 * links.front();
  for (const std::uint32_t set : sets_[vertex])
    if (pool_[set] == links.size() && std::equal(links.begin(), links.end(), pool_.begin() + set + 1)) return set;
  const auto set = static_cast<std::uint32_t>(pool_.size());
  pool_.push_back(static_cast<std::uint32_t>(links.size()));
  pool_.insert(pool_.end(), links.begin(), links.end());
  sets_[vertex].push_back(set);
  return set;
}

std::size_t Forwarding::bytes() const {
  return sizeof(std::uint32_t) * (class_of_.size() + sets_of_.size() + pool_.size() + 2 * entry_link_.size());
}

}  // namespace manyworlds::core::network

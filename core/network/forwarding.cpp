#include "core/network/forwarding.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "core/error.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();

// As Router: a scale-up hop is always preferred over leaving the node.
std::uint32_t weight(const Link& link) {
  return link.kind == LinkKind::scale_up ? 1 : 1'000;
}

/// Link ids grouped by one of their ends, as offsets and one list.
template <class End>
void group(const Graph& graph, End end, std::vector<std::uint32_t>& begin, std::vector<std::uint32_t>& ids) {
  begin.assign(graph.vertices.size() + 1, 0);
  for (const Link& link : graph.links) ++begin[end(link) + 1];
  for (std::size_t vertex = 1; vertex < begin.size(); ++vertex) begin[vertex] += begin[vertex - 1];
  ids.resize(graph.links.size());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (std::uint32_t id = 0; id < graph.links.size(); ++id) ids[next[end(graph.links[id])]++] = id;
}

}  // namespace

Forwarding::Forwarding(std::shared_ptr<const Graph> graph)
    : graph_(std::move(graph)), class_of_(graph_->gpus, kUnreachable), sets_(graph_->vertices.size()) {
  const auto& links = graph_->links;
  group(*graph_, [](const Link& link) { return link.from; }, out_begin_, out_);
  group(*graph_, [](const Link& link) { return link.to; }, in_begin_, in_);
  for (std::size_t vertex = 0; vertex + 1 < in_begin_.size(); ++vertex)
    std::stable_sort(in_.begin() + in_begin_[vertex], in_.begin() + in_begin_[vertex + 1],
                     [&](std::uint32_t a, std::uint32_t b) { return links[a].from < links[b].from; });
  for (std::uint32_t id = 0; id < links.size(); ++id) pool_.insert(pool_.end(), {1, id});
}

void Forwarding::prepare(std::uint32_t destination) {
  if (class_of_[destination] != kUnreachable) return;
  std::vector<Attachment> attached;
  for (std::uint32_t i = in_begin_[destination]; i < in_begin_[destination + 1]; ++i)
    attached.emplace_back(graph_->links[in_[i]].from, graph_->links[in_[i]].kind);
  const auto [known, fresh] = classes_.emplace(std::move(attached), static_cast<std::uint32_t>(classes_.size()));
  if (fresh) add_rows(destination);
  class_of_[destination] = known->second;
}

/// Of switches, by number past the GPUs.
std::vector<std::uint32_t> Forwarding::distances_to(std::uint32_t destination) const {
  const std::uint32_t gpus = graph_->gpus;
  std::vector<std::uint32_t> distances(graph_->vertices.size() - gpus, kUnreachable);
  using Item = std::pair<std::uint32_t, std::uint32_t>;  // (distance, vertex)
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  const auto relax = [&](std::uint32_t vertex, std::uint32_t far) {
    for (std::uint32_t i = in_begin_[vertex]; i < in_begin_[vertex + 1]; ++i) {
      const Link& link = graph_->links[in_[i]];
      const std::uint32_t farther = far + weight(link);
      if (link.from < gpus || farther >= distances[link.from - gpus]) continue;
      distances[link.from - gpus] = farther;
      open.emplace(farther, link.from);
    }
  };
  relax(destination, 0);
  while (!open.empty()) {
    const auto [far, vertex] = open.top();
    open.pop();
    if (far == distances[vertex - gpus]) relax(vertex, far);
  }
  return distances;
}

void Forwarding::add_rows(std::uint32_t destination) {
  const std::vector<std::uint32_t> distances = distances_to(destination);
  const std::uint32_t gpus = graph_->gpus;
  row_begin_.push_back(sets_of_.size());
  std::vector<std::uint32_t> choices;
  for (std::uint32_t number = 0; number < distances.size(); ++number) {
    const std::uint32_t vertex = number + gpus;
    choices.clear();
    bool attached = false;
    for (std::uint32_t i = out_begin_[vertex]; i < out_begin_[vertex + 1]; ++i) {
      const Link& link = graph_->links[out_[i]];
      attached |= link.to == destination && weight(link) == distances[number];
      if (link.to < gpus || distances[link.to - gpus] == kUnreachable) continue;
      if (distances[link.to - gpus] + weight(link) == distances[number]) choices.push_back(out_[i]);
    }
    sets_of_.push_back(attached ? kAttached : choices.empty() ? kNoWay : set_of(vertex, choices));
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

std::span<const std::uint32_t> Forwarding::last_links(std::uint32_t vertex, std::uint32_t destination) const {
  std::uint32_t first = in_begin_[destination];
  while (graph_->links[in_[first]].from != vertex) ++first;
  std::uint32_t last = first + 1;
  while (last < in_begin_[destination + 1] && graph_->links[in_[last]].from == vertex) ++last;
  return {&in_[first], last - first};
}

std::uint64_t Forwarding::distance(std::uint32_t vertex, std::uint32_t destination) const {
  std::uint64_t sum = 0;
  while (vertex != destination) {
    if (vertex < graph_->gpus) return kUnreachable;
    if (sets_of_[row_begin_[class_of_[destination]] + vertex - graph_->gpus] == kNoWay) return kUnreachable;
    const Link& link = graph_->links[onward(vertex, destination).front()];
    sum += weight(link);
    vertex = link.to;
  }
  return sum;
}

std::vector<std::uint32_t> Forwarding::first_links(std::uint32_t source, std::uint32_t destination) {
  prepare(destination);
  std::vector<std::uint32_t> best;
  std::uint64_t least = kUnreachable;
  for (std::uint32_t i = out_begin_[source]; i < out_begin_[source + 1] && source != destination; ++i) {
    const Link& link = graph_->links[out_[i]];
    const std::uint64_t far = distance(link.to, destination);
    if (far == kUnreachable || far + weight(link) > least) continue;
    if (far + weight(link) < least) best.clear();
    least = far + weight(link);
    best.push_back(out_[i]);
  }
  if (best.empty()) throw InputError(fmt::format("no path from GPU {} to GPU {} on this topology", source, destination));
  return best;
}

std::size_t Forwarding::bytes() const {
  return sizeof(std::uint32_t) * (out_begin_.size() + out_.size() + in_begin_.size() + in_.size() + class_of_.size() +
                                  sets_of_.size() + pool_.size());
}

}  // namespace manyworlds::core::network

#include "core/network/fabric/fabric.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::core::network {
LinkSpec spec_of(const Graph& graph, std::uint32_t link) {
  const Link& from = graph.links[link];
  LinkSpec spec;
  spec.bits_per_second = from.bits_per_second;
  spec.latency_ps = from.latency_ps;
  spec.leaves_gpu = graph.vertices[from.from] == VertexKind::gpu;
  spec.enters_gpu = graph.vertices[from.to] == VertexKind::gpu;
  spec.scale_up = from.kind == LinkKind::scale_up;
  return spec;
}

Router::Router(std::shared_ptr<const Graph> graph, Routing routing, std::uint64_t seed)
    : graph_(std::move(graph)), routing_(routing), seed_(seed), distances_(*graph_) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_leaf;  // (first network switch of the GPU, GPU)
  for (std::uint32_t gpu = 0; gpu < graph_->gpus; ++gpu) {
    std::uint32_t leaf = UINT32_MAX;
    for (const std::uint32_t id : distances_.out(gpu))
      if (graph_->links[id].kind == LinkKind::network) leaf = std::min(leaf, graph_->links[id].to);
    by_leaf.emplace_back(leaf, gpu);
  }
  std::sort(by_leaf.begin(), by_leaf.end());
  number_.resize(graph_->vertices.size());
  std::iota(number_.begin(), number_.end(), 0u);
  for (std::uint32_t i = 0; i < by_leaf.size(); ++i) number_[by_leaf[i].second] = i;
}

/// Links out of `vertex` that begin a shortest path to `dst`, ascending; of these, those of least order.
void Router::find_choices(std::uint32_t vertex, std::uint32_t dst) {
  choices_.clear();
  const std::uint32_t far = distances_.from(vertex);
  for (const std::uint32_t id : distances_.in(dst))
    if (graph_->links[id].from == vertex && weight(graph_->links[id]) == far) choices_.push_back(id);
  const std::size_t last_hops = choices_.size();
  for (const std::uint32_t id : distances_.onward(vertex)) {
    const Link& link = graph_->links[id];
    const std::uint32_t rest = distances_.from(link.to);
    if (link.to != dst && rest != Distances::kUnreachable && rest + weight(link) == far) choices_.push_back(id);
  }
  if (last_hops > 0) std::sort(choices_.begin(), choices_.end());
  std::uint8_t least = UINT8_MAX;
  for (const std::uint32_t id : choices_) least = std::min(least, graph_->links[id].order);
  std::erase_if(choices_, [&](std::uint32_t id) { return graph_->links[id].order > least; });
}

Route Router::route(std::uint32_t src, std::uint32_t dst, std::uint64_t entropy) {
  distances_.aim_at(dst);
  if (src == dst || distances_.from(src) == Distances::kUnreachable)
    throw InputError(fmt::format("no path from GPU {} to GPU {} on this topology", src, dst));
  Route route;
  std::uint32_t digits = number_[dst];
  for (std::uint32_t vertex = src; vertex != dst;) {
    find_choices(vertex, dst);
    MANYWORLDS_CHECK(!choices_.empty(), "vertex {} has no way on to {}", vertex, dst);
    const auto count = static_cast<std::uint32_t>(choices_.size());
    std::uint32_t pick = 0;
    if (count > 1 && routing_ == Routing::destination_mod_k && graph_->links[choices_[0]].kind == LinkKind::scale_up) {
      pick = dst % count;  // inside a domain GPUs follow each other, whatever leaves they hang off
    } else if (count > 1 && routing_ == Routing::destination_mod_k) {
      pick = digits % count;
      digits /= count;
    } else if (count > 1) {
      pick = static_cast<std::uint32_t>(decision_hash(seed_, entropy, route.size()) % count);
    }
    route.push_back(choices_[pick]);
    vertex = graph_->links[choices_[pick]].to;
  }
  if (route.size() > kMaxHops)
    throw InputError(fmt::format("the path from GPU {} to GPU {} has {} links; at most {} are supported", src, dst,
                                 route.size(), kMaxHops));
  return route;
}

}  // namespace manyworlds::core::network

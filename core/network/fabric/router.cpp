#include "core/network/fabric/router.hpp"

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

Router::Router(std::shared_ptr<const Graph> graph, const PathChoice& choice, DistanceMethod method)
    : graph_(std::move(graph)), choice_(choice), distances_(*graph_, method), weights_(*graph_, distances_) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_leaf;  // (first network switch of the GPU, GPU)
  for (std::uint32_t gpu = 0; gpu < graph_->gpus; ++gpu) {
    std::uint32_t leaf = UINT32_MAX;
    for (const std::uint32_t id : distances_.out(gpu))
      if (graph_->links[id].kind == LinkKind::network) leaf = std::min(leaf, graph_->links[id].to);
    by_leaf.emplace_back(leaf, gpu);
  }
  std::sort(by_leaf.begin(), by_leaf.end());
  leaf_major_index_.resize(graph_->vertices.size());
  std::iota(leaf_major_index_.begin(), leaf_major_index_.end(), 0u);
  for (std::uint32_t i = 0; i < by_leaf.size(); ++i) leaf_major_index_[by_leaf[i].second] = i;
}

/// Returns the position of the first link of the highest rate, and among these of the lowest latency.
std::uint32_t Router::fastest_of(const std::vector<std::uint32_t>& candidates) const {
  const auto is_faster = [&](std::uint32_t a, std::uint32_t b) {
    const Link &first = graph_->links[a], &second = graph_->links[b];
    return std::pair(-first.bits_per_second, first.latency_ps) < std::pair(-second.bits_per_second, second.latency_ps);
  };
  return static_cast<std::uint32_t>(std::min_element(candidates.begin(), candidates.end(), is_faster) -
                                    candidates.begin());
}

/// Returns what a vertex decides by. GPUs have no number in common with switches, nor hops with vertices.
std::uint64_t Router::hash_at(std::uint32_t vertex, std::uint64_t entropy, std::size_t hop) const {
  constexpr std::uint64_t kSwitches = std::uint64_t{1} << 32;
  if (choice_.seeds == HashSeeds::per_hop || graph_->vertices[vertex] == VertexKind::gpu)
    return decision_hash(choice_.seed, entropy, hop);
  return decision_hash(choice_.seed, entropy, choice_.seeds == HashSeeds::same ? kSwitches : kSwitches + 1 + vertex);
}

Route Router::route(std::uint32_t src, std::uint32_t dst, std::uint64_t entropy) {
  distances_.set_destination(dst);
  if (src == dst || distances_.from(src) == Distances::kUnreachable)
    throw InputError(fmt::format("no path from GPU {} to GPU {} on this topology", src, dst));
  const auto distance_of = [this](std::uint32_t vertex) { return distances_.from(vertex); };
  Route route;
  std::uint32_t digits = leaf_major_index_[dst];
  for (std::uint32_t vertex = src; vertex != dst;) {
    distances_.find_next_hops(vertex, distance_of, candidates_);
    MANYWORLDS_CHECK(!candidates_.empty(), "vertex {} has no way on to {}", vertex, dst);
    const auto count = static_cast<std::uint32_t>(candidates_.size());
    std::uint32_t pick = 0;
    if (count > 1 && choice_.routing == Routing::destination_mod_k &&
        graph_->links[candidates_[0]].kind == LinkKind::scale_up) {
      pick = dst % count;  // within a scale-up domain the GPU number itself, whatever the leaves are
    } else if (count > 1 && choice_.routing == Routing::destination_mod_k) {
      pick = digits % count;
      digits /= count;
    } else if (count > 1 && choice_.routing == Routing::ecmp_hash) {
      const std::uint64_t hash = hash_at(vertex, entropy, route.size());
      pick = choice_.weights == PathWeights::equal ? static_cast<std::uint32_t>(hash % count)
                                                   : weights_.pick(candidates_, dst, hash);
    } else if (count > 1) {
      pick = fastest_of(candidates_);
    }
    route.push_back(candidates_[pick]);
    vertex = graph_->links[candidates_[pick]].to;
  }
  if (route.size() > kMaxHops)
    throw InputError(fmt::format("the path from GPU {} to GPU {} has {} links; at most {} are supported", src, dst,
                                 route.size(), kMaxHops));
  return route;
}

}  // namespace manyworlds::core::network

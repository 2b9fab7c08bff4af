#include "experiments/graphs/chain_cover.hpp"

#include <algorithm>
#include <map>

namespace manyworlds::experiments::graphs {
namespace {

constexpr std::size_t kMaxKept = std::size_t{1} << 26;

/// By chain, how many of its nodes come before or are the node whose clock it is.
using Clock = std::vector<std::uint32_t>;

std::uint32_t at(const Clock& clock, std::uint32_t chain) {
  return chain < clock.size() ? clock[chain] : 0;
}

/// Chains are of kernels, copies, what a host does, or communication of either sort; a resource may do several.
std::size_t sort_of(const GraphNode& node) {
  return std::min<std::size_t>(node.work.index(), NodeWork(GroupCall{}).index());
}

void raise(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

class Cover {
 public:
  Cover(const RankGraph& graph, const std::vector<std::uint32_t>& order)
      : graph_(graph),
        order_(order),
        clocks_(graph.nodes.size()),
        children_(graph.nodes.size()),
        place_(graph.nodes.size()) {
    result_.chain.assign(graph.nodes.size(), kNoChain);
    result_.after.resize(graph.nodes.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) place_[order[i]] = i;
    for (const GraphNode& node : graph.nodes)
      for (const std::uint32_t parent : node.parents) ++children_[parent];
  }

  ChainCover run() {
    for (const std::uint32_t node : order_) add(node);
    return std::move(result_);
  }

 private:
  void add(std::uint32_t node) {
    const GraphNode& of = graph_.nodes[node];
    Clock clock = clock_before(of);
    if (of.work.index() == 0) {
      clocks_[node] = std::move(clock);
    } else {
      const std::uint32_t chain = chain_of(of, clock);
      if (!nodes_[chain].empty()) {
        if (of.queue == kNoResource && at(clock, chain) < nodes_[chain].size()) ++result_.added;
        Clock& last = clocks_[nodes_[chain].back()];
        result_.after[node] = needed(clock, last, chain);
        raise(clock, last);
        if (children_[nodes_[chain].back()] == 0) drop(nodes_[chain].back());
      } else {
        result_.after[node] = needed(clock, {}, chain);
      }
      result_.chain[node] = chain;
      nodes_[chain].push_back(node);
      if (clock.size() <= chain) clock.resize(chain + 1);
      clock[chain] = static_cast<std::uint32_t>(nodes_[chain].size());
      clocks_[node] = std::move(clock);
    }
    kept_ += clocks_[node].size();
    for (const std::uint32_t parent : of.parents) forget(parent);
  }

  Clock clock_before(const GraphNode& of) const {
    std::vector<std::uint32_t> parents = of.parents;  // the latest first: it often implies the others
    std::sort(parents.begin(), parents.end(), [&](auto one, auto other) { return place_[one] > place_[other]; });
    Clock clock;
    for (const std::uint32_t parent : parents) {
      const std::uint32_t chain = result_.chain[parent];
      if (chain != kNoChain && at(clock, chain) >= at(clocks_[parent], chain)) continue;
      raise(clock, clocks_[parent]);
    }
    return clock;
  }

  std::uint32_t chain_of(const GraphNode& of, const Clock& clock) {
    if (of.resource != kNoResource || of.queue != kNoResource) {
      const auto [known, is_new] = of_resource_.try_emplace({of.resource, of.queue}, kNoChain);
      if (is_new) known->second = begin(of);
      return known->second;
    }
    std::uint32_t best = kNoChain;
    for (const std::uint32_t chain : of_sort_[sort_of(of)])
      if (at(clock, chain) == nodes_[chain].size() &&
          (best == kNoChain || place_[nodes_[chain].back()] > place_[nodes_[best].back()]))
        best = chain;
    if (best != kNoChain) return best;
    best = begin(of);
    of_sort_[sort_of(of)].push_back(best);
    return best;
  }

  std::uint32_t begin(const GraphNode& of) {
    nodes_.emplace_back();
    result_.is_host.push_back(std::holds_alternative<programs::HostWork>(of.work));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  /// Returns the latest nodes of other chains that come before by `clock`, without those that `implied` or another of
  /// them has before it.
  std::vector<std::uint32_t> needed(const Clock& clock, const Clock& implied, std::uint32_t own) const {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t chain = 0; chain < clock.size(); ++chain)
      if (chain != own && clock[chain] > at(implied, chain)) nodes.push_back(nodes_[chain][clock[chain] - 1]);
    std::vector<std::uint32_t> result;
    for (const std::uint32_t one : nodes) {
      const std::uint32_t chain = result_.chain[one];
      const bool is_implied = std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t other) {
        return other != one && at(clocks_[other], chain) >= clock[chain];
      });
      if (!is_implied) result.push_back(one);
    }
    return result;
  }

  void forget(std::uint32_t node) {
    if (--children_[node] > 0) return;
    const std::uint32_t chain = result_.chain[node];
    if (chain == kNoChain || nodes_[chain].back() != node) drop(node);
  }

  /// Frees the clock of a node that is needed for nothing but to see that others imply it, if memory is short: then
  /// some dependencies are stated twice.
  void drop(std::uint32_t node) {
    if (kept_ < kMaxKept) return;
    kept_ -= clocks_[node].size();
    Clock().swap(clocks_[node]);
  }

  const RankGraph& graph_;
  const std::vector<std::uint32_t>& order_;
  std::vector<Clock> clocks_;
  std::vector<std::uint32_t> children_;            // that are not placed yet, by node
  std::vector<std::uint32_t> place_;               // in the order, by node
  std::vector<std::vector<std::uint32_t>> nodes_;  // by chain
  std::map<std::size_t, std::vector<std::uint32_t>> of_sort_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> of_resource_;  // chains, of queues too
  std::size_t kept_ = 0;                                                          // numbers in clocks
  ChainCover result_;
};

}  // namespace

ChainCover cover_by_chains(const RankGraph& graph, const std::vector<std::uint32_t>& order) {
  return Cover(graph, order).run();
}

}  // namespace manyworlds::experiments::graphs

#include "experiments/graphs/chain_cover.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace manyworlds::experiments::graphs {
namespace {

constexpr std::size_t kMaxKept = std::size_t{1} << 26;
constexpr std::size_t kManyQueues = 1024;  // of which on a node names those that it waits for, implied or not

/// By slot of a chain, how many of its nodes come before or are the node whose clock it is. Chains that nothing waits
/// for have no slot.
using Clock = std::vector<std::uint32_t>;

std::uint32_t at(const Clock& clock, std::uint32_t slot) {
  return slot < clock.size() ? clock[slot] : 0;
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
        has_children_(graph.nodes.size()),
        place_(graph.nodes.size()) {
    result_.chain.assign(graph.nodes.size(), kNoChain);
    result_.after.resize(graph.nodes.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) place_[order[i]] = i;
    std::set<std::uint32_t> queues;
    for (const GraphNode& node : graph.nodes) {
      for (const std::uint32_t parent : node.parents) ++children_[parent];
      if (node.queue != kNoResource) queues.insert(node.queue);
    }
    for (std::size_t i = 0; i < children_.size(); ++i) has_children_[i] = children_[i] > 0;
    has_many_queues_ = queues.size() > kManyQueues;
    if (has_many_queues_) named_.resize(graph.nodes.size());
  }

  ChainCover run() {
    for (const std::uint32_t node : order_) add(node);
    return std::move(result_);
  }

 private:
  /// Whether what waits for a node names it itself: of many receives that are posted from the beginning, each in a
  /// queue of its own, all that follow would have all in their clocks.
  bool is_named(const GraphNode& of) const { return has_many_queues_ && of.queue != kNoResource; }

  void add(std::uint32_t node) {
    const GraphNode& of = graph_.nodes[node];
    Clock clock = clock_before(of);
    std::vector<std::uint32_t> named = named_before(of);
    if (of.work.index() == 0) {
      if (has_many_queues_) named_[node] = std::move(named);
      clocks_[node] = std::move(clock);
    } else {
      place(node, clock);
      std::vector<std::uint32_t>& after = result_.after[node];
      for (const std::uint32_t before : named)
        if (result_.chain[before] != result_.chain[node]) after.push_back(before);
      if (!is_named(of) && slot_[result_.chain[node]] != kNoChain) clocks_[node] = std::move(clock);
    }
    kept_ += clocks_[node].size();
    for (const std::uint32_t parent : of.parents) forget(parent);
  }

  /// Lets a node continue its chain, and its clock be that of its end.
  void place(std::uint32_t node, Clock& clock) {
    const GraphNode& of = graph_.nodes[node];
    const std::uint32_t chain = chain_of(node, clock), slot = slot_[chain];
    if (!nodes_[chain].empty()) {
      if (of.queue == kNoResource && at(clock, slot) < nodes_[chain].size()) ++result_.added;
      const Clock& last = clocks_[nodes_[chain].back()];
      result_.after[node] = needed(clock, last, slot);
      raise(clock, last);
      if (children_[nodes_[chain].back()] == 0) drop(nodes_[chain].back());
    } else {
      result_.after[node] = needed(clock, {}, slot);
    }
    result_.chain[node] = chain;
    nodes_[chain].push_back(node);
    if (slot == kNoChain) return;
    if (clock.size() <= slot) clock.resize(slot + 1);
    clock[slot] = static_cast<std::uint32_t>(nodes_[chain].size());
  }

  std::uint32_t slot_of(std::uint32_t node) const {
    return result_.chain[node] == kNoChain ? kNoChain : slot_[result_.chain[node]];
  }

  Clock clock_before(const GraphNode& of) const {
    std::vector<std::uint32_t> parents = of.parents;  // the latest first: it often implies the others
    std::sort(parents.begin(), parents.end(), [&](auto one, auto other) { return place_[one] > place_[other]; });
    Clock clock;
    for (const std::uint32_t parent : parents) {
      const std::uint32_t slot = slot_of(parent);
      if (slot != kNoChain && at(clock, slot) >= at(clocks_[parent], slot)) continue;
      raise(clock, clocks_[parent]);
    }
    return clock;
  }

  /// Returns the nodes that a node names itself, the last of each chain.
  std::vector<std::uint32_t> named_before(const GraphNode& of) const {
    if (!has_many_queues_) return {};
    std::map<std::uint32_t, std::uint32_t> last;  // by chain
    const auto keep = [&](std::uint32_t node) {
      const auto [known, is_new] = last.try_emplace(result_.chain[node], node);
      if (!is_new && place_[node] > place_[known->second]) known->second = node;
    };
    for (const std::uint32_t parent : of.parents) {
      if (is_named(graph_.nodes[parent]) && result_.chain[parent] != kNoChain) keep(parent);
      for (const std::uint32_t before : named_[parent]) keep(before);
    }
    std::vector<std::uint32_t> nodes;
    for (const auto& [chain, node] : last) nodes.push_back(node);
    return nodes;
  }

  std::uint32_t chain_of(std::uint32_t node, const Clock& clock) {
    const GraphNode& of = graph_.nodes[node];
    if (of.resource != kNoResource || of.queue != kNoResource) {
      const auto [known, is_new] = of_resource_.try_emplace({of.resource, of.queue}, kNoChain);
      if (is_new) known->second = begin(of, !is_named(of));
      return known->second;
    }
    std::uint32_t best = kNoChain;
    for (const std::uint32_t chain : of_sort_[sort_of(of)])
      if (at(clock, slot_[chain]) == nodes_[chain].size() &&
          (best == kNoChain || place_[nodes_[chain].back()] > place_[nodes_[best].back()]))
        best = chain;
    if (best != kNoChain) return best;
    best = begin(of, has_children_[node]);
    if (has_children_[node]) of_sort_[sort_of(of)].push_back(best);
    return best;
  }

  /// `is_awaited`: something may wait for its nodes by their clocks.
  std::uint32_t begin(const GraphNode& of, bool is_awaited) {
    nodes_.emplace_back();
    slot_.push_back(is_awaited ? static_cast<std::uint32_t>(chain_of_slot_.size()) : kNoChain);
    if (is_awaited) chain_of_slot_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
    result_.is_host.push_back(std::holds_alternative<programs::HostWork>(of.work));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  /// Returns the latest nodes of other chains that come before by `clock`, without those that `implied` or another of
  /// them has before it.
  std::vector<std::uint32_t> needed(const Clock& clock, const Clock& implied, std::uint32_t own) const {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t slot = 0; slot < clock.size(); ++slot)
      if (slot != own && clock[slot] > at(implied, slot))
        nodes.push_back(nodes_[chain_of_slot_[slot]][clock[slot] - 1]);
    std::vector<std::uint32_t> result;
    for (const std::uint32_t one : nodes) {
      const std::uint32_t slot = slot_of(one);
      const bool is_implied = std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t other) {
        return other != one && at(clocks_[other], slot) >= clock[slot];
      });
      if (!is_implied) result.push_back(one);
    }
    return result;
  }

  void forget(std::uint32_t node) {
    if (--children_[node] > 0) return;
    const std::uint32_t chain = result_.chain[node];
    if (chain == kNoChain || nodes_[chain].back() != node) drop(node);
    if (has_many_queues_ && chain == kNoChain) std::vector<std::uint32_t>().swap(named_[node]);
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
  std::vector<std::uint32_t> children_;              // that are not placed yet, by node
  std::vector<bool> has_children_;                   // at all, by node
  std::vector<std::uint32_t> place_;                 // in the order, by node
  std::vector<std::vector<std::uint32_t>> nodes_;    // by chain
  std::vector<std::uint32_t> slot_, chain_of_slot_;  // by chain; kNoChain: none
  bool has_many_queues_ = false;
  std::vector<std::vector<std::uint32_t>> named_;  // by node without a chain: whom those that wait for it name
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

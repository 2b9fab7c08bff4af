// The order in which a rank alone would start the nodes of its graph.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "core/base/error.hpp"
#include "experiments/graphs/rank_graph.hpp"

namespace manyworlds::experiments::graphs {
namespace {

/// Runs a rank by itself: every resource takes the ready node with the smallest id; other nodes start when ready.
class SoloRun {
 public:
  explicit SoloRun(const RankGraph& graph)
      : graph_(graph), missing_(graph.nodes.size()), children_begin_(graph.nodes.size() + 1) {
    for (const GraphNode& node : graph.nodes)
      for (const std::uint32_t parent : node.parents) ++children_begin_[parent + 1];
    for (std::size_t i = 1; i < children_begin_.size(); ++i) children_begin_[i] += children_begin_[i - 1];
    children_.resize(children_begin_.back());
    std::vector<std::size_t> next(children_begin_.begin(), children_begin_.end() - 1);
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      missing_[i] = static_cast<std::uint32_t>(graph.nodes[i].parents.size());
      for (const std::uint32_t parent : graph.nodes[i].parents) children_[next[parent]++] = i;
    }
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
      if (missing_[i] == 0) ready(i);
    start_all(0);
    while (!running_.empty()) {
      const double at = running_.top().at;
      while (!running_.empty() && running_.top().at == at) {
        const std::uint32_t node = running_.top().node;
        running_.pop();
        end(node);
      }
      start_all(at);
    }
    if (order_.size() < graph_.nodes.size()) throw_circle();
    return std::move(order_);
  }

 private:
  struct Running {
    double at;
    std::uint64_t id;
    std::uint32_t node;
    bool operator>(const Running& other) const { return at != other.at ? at > other.at : id > other.id; }
  };
  using ById = std::priority_queue<std::pair<std::uint64_t, std::uint32_t>,
                                   std::vector<std::pair<std::uint64_t, std::uint32_t>>, std::greater<>>;
  struct Resource {
    ById ready;
    bool is_busy = false;
  };

  void ready(std::uint32_t node) {
    const GraphNode& of = graph_.nodes[node];
    (of.resource == kNoResource ? free_ : resources_[of.resource].ready).emplace(of.id, node);
  }

  /// Starts what is ready, by id over all resources. What takes no time ends at once, as others may wait for it.
  void start_all(double at) {
    while (true) {
      ById* next = free_.empty() ? nullptr : &free_;
      Resource* from = nullptr;
      for (auto& [number, resource] : resources_)
        if (!resource.is_busy && !resource.ready.empty() && (next == nullptr || resource.ready.top() < next->top()))
          next = &resource.ready, from = &resource;
      if (next == nullptr) return;
      const std::uint32_t node = next->top().second;
      next->pop();
      order_.push_back(node);
      const GraphNode& of = graph_.nodes[node];
      if (std::holds_alternative<std::monostate>(of.work)) {
        release(node);
        continue;
      }
      if (from != nullptr) from->is_busy = true;
      running_.push({at + of.us, of.id, node});
    }
  }

  void end(std::uint32_t node) {
    const GraphNode& of = graph_.nodes[node];
    if (of.resource != kNoResource) resources_[of.resource].is_busy = false;
    release(node);
  }

  void release(std::uint32_t node) {
    for (std::size_t i = children_begin_[node]; i < children_begin_[node + 1]; ++i)
      if (--missing_[children_[i]] == 0) ready(children_[i]);
  }

  [[noreturn]] void throw_circle() const {
    std::uint32_t at = 0;
    while (missing_[at] == 0) ++at;
    std::vector<bool> seen(graph_.nodes.size());
    std::vector<std::uint32_t> path;
    while (!seen[at]) {  // from a node that waits to one that it waits for, until one comes again
      seen[at] = true;
      path.push_back(at);
      for (const std::uint32_t parent : graph_.nodes[at].parents)
        if (missing_[parent] > 0) {
          at = parent;
          break;
        }
    }
    std::string text;
    std::size_t begin = 0;
    while (path[begin] != at) ++begin;
    for (std::size_t i = begin; i < std::min(path.size(), begin + 8); ++i)
      text += fmt::format("node {} waits for ", graph_.nodes[path[i]].id);
    throw core::InputError(fmt::format("has a circle of {} dependencies: {}node {}", path.size() - begin, text,
                                       graph_.nodes[path.size() - begin > 8 ? path[begin + 8] : at].id),
                           graph_.name);
  }

  const RankGraph& graph_;
  std::vector<std::uint32_t> missing_;  // parents that have not ended, by node
  std::vector<std::size_t> children_begin_;
  std::vector<std::uint32_t> children_;
  ById free_;
  std::map<std::uint32_t, Resource> resources_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<std::uint32_t> execution_order(const RankGraph& graph) {
  // Without resources the times say nothing: nodes then start by their ids alone.
  for (const GraphNode& node : graph.nodes)
    if (node.resource != kNoResource) return SoloRun(graph).run();
  RankGraph untimed{graph.name, {}};
  for (const GraphNode& node : graph.nodes) untimed.nodes.push_back({node.id, {}, node.parents, {}});
  return SoloRun(untimed).run();
}

}  // namespace manyworlds::experiments::graphs

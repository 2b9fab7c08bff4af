// Which links lead on from a switch towards a destination: tables shared by all flows, for packets that choose their
// way hop by hop. Destinations that hang off the same switches share a class, so rows count (class, switch), not
// (pair).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/network/fabric/distances.hpp"
#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// Shortest paths as Router finds them, of links that lead on equally fast those of least order. Candidates stand in
/// ascending order of link, the order in which every policy indexes them. Not thread-safe while it is being prepared;
/// afterwards only read.
class Forwarding {
 public:
  explicit Forwarding(std::shared_ptr<const Graph> graph);

  const Graph& graph() const { return *graph_; }

  /// Links out of `source` on a shortest path to `destination`, whose rows are made if need be. Both are GPUs, or one
  /// is a switch that reduces or replicates. Throws InputError if there are none.
  std::vector<std::uint32_t> first_links(std::uint32_t source, std::uint32_t destination);

  /// Links out of `vertex`, which forwards, on a shortest path to `destination`, whose rows are made. There is at least
  /// one wherever a packet to it can come.
  std::span<const std::uint32_t> onward(std::uint32_t vertex, std::uint32_t destination) const {
    const std::uint32_t set = sets_of_[row_begin_[class_of_[destination]] + vertex - first_];
    if (set == kAttached) return last_links(vertex, destination);
    return {&pool_[set + 1], pool_[set]};
  }

  /// Every link that a packet from `source` to `destination` may take, each once, in the order of a breadth-first walk
  /// that takes candidates in their order; `visit(number of the link its switch was first reached by, candidates)` is
  /// told of every choice on the way. It depends on the fabric up to renaming only, so keys can be written from it.
  template <class Visit>
  std::vector<std::uint32_t> walk(std::uint32_t source, std::uint32_t destination, Visit visit);

  std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kAttached = UINT32_MAX, kNoWay = UINT32_MAX - 1;
  struct Attachment {  // what a destination's links are, as far as the way to them depends on it
    std::uint32_t from = 0, weight = 0;
    auto operator<=>(const Attachment&) const = default;
  };

  /// Links from `vertex` straight into `destination`.
  std::span<const std::uint32_t> last_links(std::uint32_t vertex, std::uint32_t destination) const {
    std::uint32_t first = entry_begin_[destination];
    while (entry_from_[first] != vertex) ++first;
    std::uint32_t last = first + 1;
    while (last < entry_begin_[destination + 1] && entry_from_[last] == vertex) ++last;
    return {&entry_link_[first], last - first};
  }
  void add_rows(std::uint32_t destination);
  std::uint32_t set_of(std::uint32_t vertex, const std::vector<std::uint32_t>& links);
  /// Links out of `vertex` that begin a shortest path, where far(v) is how far v is from `destination`.
  template <class Far>
  std::vector<std::uint32_t> choices(std::uint32_t vertex, std::uint32_t destination, const Far& far) const;

  std::shared_ptr<const Graph> graph_;
  Distances distances_;
  std::uint32_t first_;  // vertex that forwards
  std::map<std::vector<Attachment>, std::uint32_t> classes_;
  std::vector<std::uint32_t> class_of_;           // by vertex that is a destination
  std::vector<std::size_t> row_begin_;            // by class
  std::vector<std::uint32_t> sets_of_;            // by class and vertex: where its candidates begin in pool_
  std::vector<std::uint32_t> pool_;               // count, links, count, links, …; the set {link} stands at 2 link
  std::vector<std::vector<std::uint32_t>> sets_;  // by vertex: its sets of several links
  // Links into GPUs: where each GPU's begin, and what they are, by (from, link).
  std::vector<std::uint32_t> entry_begin_, entry_from_, entry_link_;
};

template <class Visit>
std::vector<std::uint32_t> Forwarding::walk(std::uint32_t source, std::uint32_t destination, Visit visit) {
  std::vector<std::uint32_t> order = first_links(source, destination);
  visit(UINT32_MAX, std::span<const std::uint32_t>(order));
  std::map<std::uint32_t, std::uint32_t> seen;  // vertex -> number of the link it was first reached by
  for (std::uint32_t next = 0; next < order.size(); ++next) {
    const std::uint32_t vertex = graph_->links[order[next]].to;
    if (vertex == destination || !seen.emplace(vertex, next).second) continue;
    const auto candidates = onward(vertex, destination);
    visit(next, candidates);
    order.insert(order.end(), candidates.begin(), candidates.end());
  }
  return order;
}

}  // namespace manyworlds::core::network

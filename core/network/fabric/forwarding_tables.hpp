// The forwarding tables of switches: next-hop links towards a destination, shared by all flows, for packets that are
// routed hop by hop. Destinations attached to the same switches by links of equal weight form a class and share rows,
// so the tables have one entry per class and switch, not one per pair of GPUs.
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

/// The candidates are the links that begin a shortest path, as in Router: among links of equal distance, those with the
/// minimum Link::order. They are sorted by link id, the order in which every routing policy indexes them. Adding rows
/// is not thread-safe; afterwards the tables are read-only.
class ForwardingTables {
 public:
  explicit ForwardingTables(std::shared_ptr<const Graph> graph, DistanceMethod method = DistanceMethod::structure)
      : ForwardingTables(std::move(graph), {}, method) {}
  /// The same, but that links are called by other, ascending numbers: those that they have in a larger fabric, of which
  /// the graph is what is left. Empty: as in the graph.
  ForwardingTables(std::shared_ptr<const Graph> graph, std::vector<std::uint32_t> numbers,
                   DistanceMethod method = DistanceMethod::structure);

  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }

  /// Returns the links out of `source` on a shortest path to `destination`, and adds the destination's rows if they are
  /// missing. Both are GPUs, or one is a switch that reduces or replicates. Throws InputError if there is no path.
  std::vector<std::uint32_t> first_hop_links(std::uint32_t source, std::uint32_t destination);

  /// Returns the links out of `vertex`, which forwards packets, on a shortest path to `destination`; none if there is
  /// no path. first_hop_links() has added the rows.
  std::span<const std::uint32_t> next_hops(std::uint32_t vertex, std::uint32_t destination) const {
    const std::uint32_t set =
        next_hop_table_[row_begin_[destination_class_[destination]] + vertex - first_forwarding_vertex_];
    if (set == kDirectlyAttached) return last_hop_links(vertex, destination);
    return {&next_hop_pool_[set + 1], next_hop_pool_[set]};
  }

  /// Returns the number of the class of a destination: those of one class have the same next hops everywhere, but for
  /// their last links. first_hop_links() has added the rows.
  std::uint32_t destination_class(std::uint32_t destination) const { return destination_class_[destination]; }

  /// Returns every link that a packet from `source` to `destination` may take, once each, in breadth-first order with
  /// candidates in ascending order. For every switch on the way it calls visit(n, candidates), where n is the position
  /// in the result of the link over which the switch was first reached (UINT32_MAX for the source). The result is
  /// independent of the fabric's numbering, so cache keys can be derived from it. Links must be numbered as in the
  /// graph.
  template <class Visit>
  std::vector<std::uint32_t> walk(std::uint32_t source, std::uint32_t destination, Visit visit);

  /// Returns the approximate size of the tables in memory, in bytes.
  std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kDirectlyAttached = UINT32_MAX;
  struct Attachment {  // one last hop of a destination: destinations with equal attachments form a class
    std::uint32_t from = 0, weight = 0;
    auto operator<=>(const Attachment&) const = default;
  };

  /// Returns the links from `vertex` directly into `destination`.
  std::span<const std::uint32_t> last_hop_links(std::uint32_t vertex, std::uint32_t destination) const {
    std::uint32_t first = last_hop_begin_[destination];
    while (last_hop_from_[first] != vertex) ++first;
    std::uint32_t last = first + 1;
    while (last < last_hop_begin_[destination + 1] && last_hop_from_[last] == vertex) ++last;
    return {&last_hop_link_[first], last - first};
  }
  /// Returns the number of a link of the graph.
  std::uint32_t named(std::uint32_t link) const { return numbers_.empty() ? link : numbers_[link]; }
  void add_rows(std::uint32_t destination);
  /// Returns the position in next_hop_pool_ of this set of links, which is added if it is new.
  std::uint32_t intern(std::uint32_t vertex, const std::vector<std::uint32_t>& links);

  std::shared_ptr<const Graph> graph_;
  std::vector<std::uint32_t> numbers_;  // by link of the graph; empty: its own
  Distances distances_;
  std::uint32_t first_forwarding_vertex_;  // the first vertex that forwards packets
  std::map<std::vector<Attachment>, std::uint32_t> destination_classes_;
  std::vector<std::uint32_t> destination_class_;  // by destination vertex
  std::vector<std::size_t> row_begin_;            // by class: where its rows begin in next_hop_table_
  std::vector<std::uint32_t> next_hop_table_;     // by class and vertex: where its links begin in the pool
  std::vector<std::uint32_t>
      next_hop_pool_;  // count, links, count, links, …; the set {link} is at 2 * link, none behind them
  std::vector<std::vector<std::uint32_t>> interned_sets_;  // by vertex: positions of its sets of two or more links
  // The last hops into GPUs, in compressed rows by GPU: the vertex that each link comes from and the link, sorted.
  std::vector<std::uint32_t> last_hop_begin_, last_hop_from_, last_hop_link_;
};

template <class Visit>
std::vector<std::uint32_t> ForwardingTables::walk(std::uint32_t source, std::uint32_t destination, Visit visit) {
  std::vector<std::uint32_t> order = first_hop_links(source, destination);
  visit(UINT32_MAX, std::span<const std::uint32_t>(order));
  std::map<std::uint32_t, std::uint32_t> seen;  // vertex -> position of the link over which it was first reached
  for (std::uint32_t next = 0; next < order.size(); ++next) {
    const std::uint32_t vertex = graph_->links[order[next]].to;
    if (vertex == destination || !seen.emplace(vertex, next).second) continue;
    const auto candidates = next_hops(vertex, destination);
    visit(next, candidates);
    order.insert(order.end(), candidates.begin(), candidates.end());
  }
  return order;
}

}  // namespace manyworlds::core::network

// Which links lead on from a switch towards a destination: tables shared by all flows, for packets that choose their way
// hop by hop. Destinations that hang off the same switches share a class, so rows count (class, switch), not (pair).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/network/graph.hpp"

namespace manyworlds::core::network {

/// Shortest paths as Router finds them: GPUs carry no transit traffic, and a scale-up path wins over a network path.
/// Candidates stand in ascending order of link, the order in which every policy indexes them. Not thread-safe while it
/// is being prepared; afterwards only read.
class Forwarding {
 public:
  explicit Forwarding(std::shared_ptr<const Graph> graph);

  const Graph& graph() const { return *graph_; }

  /// Makes the rows towards GPU `destination`, once per class.
  void prepare(std::uint32_t destination);

  /// Links out of GPU `source` on a shortest path to `destination`, which is prepared if need be. Throws InputError if
  /// there are none.
  std::vector<std::uint32_t> first_links(std::uint32_t source, std::uint32_t destination);

  /// Links out of switch `vertex` on a shortest path to `destination`; there is at least one for every switch that a
  /// packet to it can come to.
  std::span<const std::uint32_t> onward(std::uint32_t vertex, std::uint32_t destination) const {
    const std::uint32_t set = sets_of_[row_begin_[class_of_[destination]] + vertex - graph_->gpus];
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
  using Attachment = std::pair<std::uint32_t, LinkKind>;  // what a destination's links come from

  std::span<const std::uint32_t> last_links(std::uint32_t vertex, std::uint32_t destination) const;
  std::vector<std::uint32_t> distances_to(std::uint32_t destination) const;
  void add_rows(std::uint32_t destination);
  std::uint32_t set_of(std::uint32_t vertex, const std::vector<std::uint32_t>& links);
  std::uint64_t distance(std::uint32_t vertex, std::uint32_t destination) const;

  std::shared_ptr<const Graph> graph_;
  std::vector<std::uint32_t> out_begin_, out_, in_begin_, in_;  // link ids by vertex; ascending, by (from, id) if in
  std::map<std::vector<Attachment>, std::uint32_t> classes_;
  std::vector<std::uint32_t> class_of_;           // by GPU; UINT32_MAX: not prepared
  std::vector<std::size_t> row_begin_;            // by class
  std::vector<std::uint32_t> sets_of_;            // by class and switch: where its candidates begin in pool_
  std::vector<std::uint32_t> pool_;               // count, links, count, links, …; the set {link} stands at 2 link
  std::vector<std::vector<std::uint32_t>> sets_;  // by vertex: its sets of several links
};

template <class Visit>
std::vector<std::uint32_t> Forwarding::walk(std::uint32_t source, std::uint32_t destination, Visit visit) {
  std::vector<std::uint32_t> order = first_links(source, destination);
  visit(UINT32_MAX, std::span<const std::uint32_t>(order));
  std::map<std::uint32_t, std::uint32_t> seen;  // vertex -> number of the link it was first reached by
  for (std::uint32_t next = 0; next < order.size(); ++next) {
    const std::uint32_t vertex = graph_->links[order[next]].to;
    if (vertex < graph_->gpus || !seen.emplace(vertex, next).second) continue;
    const auto candidates = onward(vertex, destination);
    visit(next, candidates);
    order.insert(order.end(), candidates.begin(), candidates.end());
  }
  return order;
}

}  // namespace manyworlds::core::network

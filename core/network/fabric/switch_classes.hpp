// Distances between switches, computed once for all that are interchangeable. Switches whose cables lead to the same
// neighbours at the same weights have equal distances to and from every other vertex, so they form a class (false twins
// of graph theory); with classes in place of switches more may become interchangeable. A Clos shrinks to a few vertices
// for each pod, a rail-optimized fabric to two in all. A fabric of which nothing is interchangeable keeps a class for
// each switch, and a table for each that is a destination.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace manyworlds::core::network {

inline constexpr std::uint32_t kUnreachable = UINT32_MAX;

/// A link that transit traffic may cross, between two vertices that forward packets.
struct TransitLink {
  std::uint32_t from = 0, to = 0, weight = 0;
  auto operator<=>(const TransitLink&) const = default;
};

/// Distances from all classes to one. Few of them are kept as pairs, such as those to a switch inside a node.
class DistanceTable {
 public:
  DistanceTable(std::size_t classes, std::vector<std::pair<std::uint32_t, std::uint32_t>> reached);
  std::uint32_t from(std::uint32_t from_class) const {
    return dense_.empty() ? from_few(from_class) : dense_[from_class];
  }

 private:
  std::uint32_t from_few(std::uint32_t from_class) const;
  std::vector<std::uint32_t> dense_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> few_;  // (class, distance), ascending
};

class SwitchClasses {
 public:
  /// For `vertices` vertices. Without `merge` every vertex is a class of its own: one plain Dijkstra per destination.
  SwitchClasses(std::size_t vertices, std::vector<TransitLink> links, bool merge);

  std::uint32_t class_of(std::uint32_t vertex) const { return class_of_[vertex]; }
  std::size_t size() const { return classes_; }
  /// Returns the distances from all classes to a vertex of this class, computed on first use; that of the class itself
  /// is the distance between two different vertices of it. Not thread-safe; the result lives as long as this object.
  const DistanceTable& to(std::uint32_t destination_class);

 private:
  /// Merges interchangeable classes; returns whether there were any.
  bool merge(std::vector<TransitLink>& links);
  DistanceTable table_to(std::uint32_t destination_class);

  std::size_t classes_;
  std::vector<std::uint32_t> class_of_;      // by vertex
  std::vector<std::uint32_t> in_begin_;      // by class: where its links in `in_` begin
  std::vector<TransitLink> in_;              // links between classes, by the class that they enter
  std::vector<std::uint32_t> distance_;      // scratch of table_to(), by class
  std::vector<std::uint32_t> table_number_;  // by class: its place in `tables_`, or kUnreachable
  std::deque<DistanceTable> tables_;
};

}  // namespace manyworlds::core::network

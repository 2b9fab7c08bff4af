// Disjoint sets of small integers (union-find with path halving; Tarjan and van Leeuwen, JACM 1984).
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace manyworlds::core::sharing {

class UnionFind {
 public:
  explicit UnionFind(std::size_t size = 0) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }

  std::size_t size() const { return parent_.size(); }
  /// Adds a set with one new element and returns the element.
  std::uint32_t add() {
    parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
    return parent_.back();
  }
  std::uint32_t root(std::uint32_t element) {
    while (parent_[element] != element) element = parent_[element] = parent_[parent_[element]];
    return element;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[root(a)] = root(b); }
  /// Makes `element` a set of its own; it must not be the root of another element.
  void detach(std::uint32_t element) { parent_[element] = element; }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace manyworlds::core::sharing

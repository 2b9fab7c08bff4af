// Disjoint sets of small numbers, with path halving.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace manyworlds::core::sharing {

class UnionFind {
 public:
  explicit UnionFind(std::size_t size = 0) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }

  std::size_t size() const { return parent_.size(); }
  std::uint32_t add() {
    parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
    return parent_.back();
  }
  std::uint32_t root(std::uint32_t of) {
    while (parent_[of] != of) of = parent_[of] = parent_[parent_[of]];
    return of;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[root(a)] = root(b); }
  /// Makes `alone` a set of its own; nothing else may have it as its root.
  void detach(std::uint32_t alone) { parent_[alone] = alone; }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace manyworlds::core::sharing

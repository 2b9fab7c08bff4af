#include "core/workload/strategy/contiguous_split.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/units.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

class LeastLargest {
 public:
  LeastLargest(std::int64_t items, const std::vector<std::int64_t>& least, const PartCost& cost)
      : items_(items),
        least_(least),
        cost_(cost),
        parts_(least.size()),
        best_(parts_ + 1, std::vector<std::int64_t>(static_cast<std::size_t>(items) + 1, kNone)) {
    best_.back().back() = 0;
    std::int64_t behind = 0;
    std::int64_t before = std::accumulate(least.begin(), least.end(), std::int64_t{0});
    for (std::size_t part = parts_; part-- > 0;) {
      behind += least[part], before -= least[part];
      const std::int64_t last = part == 0 ? 0 : items - behind;
      for (std::int64_t begin = before; begin <= last; ++begin) find_best(part, begin);
    }
  }

  /// Returns kNone if there is no split.
  std::int64_t largest() const { return best_.front().front(); }

  /// Returns the first split in lexicographic order; there is one.
  std::vector<std::int64_t> split() const {
    const std::int64_t largest = this->largest();
    std::vector<std::int64_t> result;
    std::int64_t begin = 0;
    for (std::size_t part = 0; part < parts_; ++part) {
      std::int64_t end = begin + least_[part];
      while (best_of(part + 1, end) > largest || cost_(part, begin, end) > largest) ++end;
      result.push_back(end - begin);
      begin = end;
    }
    return result;
  }

 private:
  std::int64_t best_of(std::size_t part, std::int64_t begin) const {
    return best_[part][static_cast<std::size_t>(begin)];
  }

  /// Sets the least largest cost of `part` and those behind it if they have the items from `begin` on.
  void find_best(std::size_t part, std::int64_t begin) {
    std::int64_t& best = best_[part][static_cast<std::size_t>(begin)];
    for (std::int64_t end = begin + least_[part]; end <= items_; ++end) {
      if (best_of(part + 1, end) == kNone) continue;
      const std::int64_t own = cost_(part, begin, end);
      if (own >= best) return;  // nor are more items better
      best = std::min(best, std::max(own, best_of(part + 1, end)));
    }
  }

  const std::int64_t items_;
  const std::vector<std::int64_t>& least_;
  const PartCost& cost_;
  std::size_t parts_;
  std::vector<std::vector<std::int64_t>> best_;  // by part and items before it
};

/// Splits whose sum of squared costs is least among those that have no cost kNone.
class LeastSquares {
 public:
  LeastSquares(std::int64_t items, const std::vector<std::int64_t>& least, const PartCost& cost)
      : items_(items),
        least_(least),
        cost_(cost),
        best_(least.size() + 1, std::vector<Best>(static_cast<std::size_t>(items) + 1)) {
    best_.back().back().exists = true;
    std::int64_t behind = 0;
    std::int64_t before = std::accumulate(least.begin(), least.end(), std::int64_t{0});
    for (std::size_t part = least.size(); part-- > 0;) {
      behind += least[part], before -= least[part];
      const std::int64_t last = part == 0 ? 0 : items - behind;
      for (std::int64_t begin = before; begin <= last; ++begin) find_best(part, begin);
    }
  }

  /// Returns the first such split in lexicographic order; there is one.
  std::vector<std::int64_t> split() const {
    std::vector<std::int64_t> result;
    std::int64_t begin = 0;
    for (std::size_t part = 0; part < least_.size(); ++part) {
      result.push_back(best_[part][static_cast<std::size_t>(begin)].items);
      begin += result.back();
    }
    return result;
  }

 private:
  struct Best {
    Int128 squares = 0;  // of this part and those behind it
    std::int64_t items = 0;
    bool exists = false;
  };

  void find_best(std::size_t part, std::int64_t begin) {
    Best& best = best_[part][static_cast<std::size_t>(begin)];
    for (std::int64_t end = begin + least_[part]; end <= items_; ++end) {
      const Best& behind = best_[part + 1][static_cast<std::size_t>(end)];
      if (!behind.exists) continue;
      const std::int64_t own = cost_(part, begin, end);
      if (own == kNone) return;  // nor can it have more items
      const Int128 squares = static_cast<Int128>(own) * own + behind.squares;
      if (!best.exists || squares < best.squares) best = {squares, end - begin, true};
    }
  }

  const std::int64_t items_;
  const std::vector<std::int64_t>& least_;
  const PartCost& cost_;
  std::vector<std::vector<Best>> best_;  // by part and items before it
};

/// Returns `cost` where `bounded` is no more than `most`, otherwise kNone.
PartCost where_at_most(const PartCost& bounded, std::int64_t most, const PartCost& cost) {
  return [&bounded, most, &cost](std::size_t part, std::int64_t begin, std::int64_t end) {
    return bounded(part, begin, end) > most ? kNone : cost(part, begin, end);
  };
}

bool has_splits(std::int64_t items, const std::vector<std::int64_t>& least) {
  return !least.empty() && std::accumulate(least.begin(), least.end(), std::int64_t{0}) <= items;
}

}  // namespace

bool is_weighed(LayerSplit split) {
  return split == LayerSplit::by_parameters || split == LayerSplit::by_time || split == LayerSplit::by_memory;
}

std::optional<std::vector<std::int64_t>> contiguous_split(std::int64_t items, const std::vector<std::int64_t>& least,
                                                          const PartCost& cost) {
  if (!has_splits(items, least)) return std::nullopt;
  return LeastLargest(items, least, cost).split();
}

std::optional<std::vector<std::int64_t>> contiguous_split(std::int64_t items, const std::vector<std::int64_t>& least,
                                                          const PartCost& cost, const PartCost& second) {
  if (!has_splits(items, least)) return std::nullopt;
  const PartCost first_best = where_at_most(cost, LeastLargest(items, least, cost).largest(), second);
  const std::int64_t largest_second = LeastLargest(items, least, first_best).largest();
  const PartCost both_best = where_at_most(second, largest_second, first_best);
  return LeastSquares(items, least, both_best).split();
}

}  // namespace manyworlds::core::workload

#include "core/workload/strategy/contiguous_split.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

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

  std::optional<std::vector<std::int64_t>> split() const {
    const std::int64_t largest = best_.front().front();
    if (largest == kNone) return std::nullopt;
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

}  // namespace

bool is_weighed(LayerSplit split) {
  return split == LayerSplit::by_parameters || split == LayerSplit::by_time || split == LayerSplit::by_memory;
}

std::optional<std::vector<std::int64_t>> contiguous_split(std::int64_t items, const std::vector<std::int64_t>& least,
                                                          const PartCost& cost) {
  if (least.empty() || std::accumulate(least.begin(), least.end(), std::int64_t{0}) > items) return std::nullopt;
  return LeastLargest(items, least, cost).split();
}

}  // namespace manyworlds::core::workload

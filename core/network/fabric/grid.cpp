#include "core/network/fabric/grid.hpp"

#include <algorithm>

namespace manyworlds::core::network {

GridDistances::GridDistances(const Graph& graph)
    : rows_(graph.grid.rows), first_(graph.grid.first), sizes_(graph.grid.sizes) {
  if (sizes_.empty()) return;
  std::uint32_t routers = 1;
  for (const std::uint32_t size : sizes_) routers *= size;
  const auto append = [&](std::uint32_t number,
                          std::size_t row_dimension) {  // digits of `number`, but not that of a row
    for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension) {
      coordinates_.push_back(dimension == row_dimension ? kAny
                                                        : static_cast<std::uint16_t>(number % sizes_[dimension]));
      if (dimension != row_dimension) number /= sizes_[dimension];
    }
  };
  for (std::uint32_t router = 0; router < routers; ++router) append(router, sizes_.size());
  if (rows_ == GridRows::switched)
    for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension)
      for (std::uint32_t row = 0; row < routers / sizes_[dimension]; ++row) append(row, dimension);
  count_ = static_cast<std::uint32_t>(coordinates_.size() / sizes_.size());
}

std::uint32_t GridDistances::hops(std::uint32_t a, std::uint32_t b) const {
  if (a == b) return 0;
  const std::uint16_t *from = coordinates(a), *to = coordinates(b);
  std::uint32_t sum = 0;
  for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension) {
    const std::uint32_t x = from[dimension], y = to[dimension];
    if (rows_ == GridRows::switched && (x == kAny || y == kAny)) {
      sum += (x == kAny) + (y == kAny);  // one hop between a switch and any server of its row
    } else if (rows_ == GridRows::complete || rows_ == GridRows::switched) {
      sum += rows_ == GridRows::switched ? 2 * (x != y) : x != y;
    } else {
      const std::uint32_t along = x > y ? x - y : y - x;
      sum += rows_ == GridRows::ring ? std::min(along, sizes_[dimension] - along) : along;
    }
  }
  return sum;
}

std::uint32_t GridDistances::neighbours(std::uint32_t vertex) const {
  const std::uint16_t* at = coordinates(vertex);
  std::uint32_t sum = 0;
  for (std::size_t dimension = 0; dimension < sizes_.size(); ++dimension) {
    const std::uint32_t size = sizes_[dimension];
    if (rows_ == GridRows::line) sum += (at[dimension] > 0) + (at[dimension] + 1u < size);
    if (rows_ == GridRows::ring) sum += std::min(size - 1, 2u);
    if (rows_ == GridRows::complete) sum += size - 1;
    if (rows_ == GridRows::switched && at[dimension] == kAny) return size;
    if (rows_ == GridRows::switched) ++sum;
  }
  return sum;
}

bool GridDistances::is_built_of(std::vector<TransitLink> links, std::uint32_t weight) const {
  if (count_ == 0) return false;
  std::erase_if(links, [&](const TransitLink& link) { return !contains(link.from) && !contains(link.to); });
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  std::vector<std::uint32_t> out(count_, 0), in(count_, 0);
  for (const TransitLink& link : links) {
    if (!contains(link.from) || !contains(link.to) || link.weight != weight || hops(link.from, link.to) != 1)
      return false;
    ++out[link.from - first_];
    ++in[link.to - first_];
  }
  for (std::uint32_t vertex = 0; vertex < count_; ++vertex)
    if (const std::uint32_t expected = neighbours(first_ + vertex); out[vertex] != expected || in[vertex] != expected)
      return false;
  return true;
}

}  // namespace manyworlds::core::network

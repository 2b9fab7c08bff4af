// Broadcast along a binomial tree: in every step those who have it send it to as many who have not, the farthest first
// (Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 4.3), counted from the root. A member sends to one after the
// other.
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/algorithms/rounds.hpp"

namespace manyworlds::core::collective {

void add_binomial_tree(DagBuilder& dag, const Shape& shape) {
  dag.cut(1);
  const std::uint32_t n = shape.members, count = slices(shape, shape.bytes);
  std::uint32_t top = 1;
  while (top < n) top *= 2;
  const auto member = [&](std::uint32_t i) { return (i + shape.root()) % n; };
  std::vector<std::uint32_t> busy(n, kNoNode);  // what a member sent last
  for (std::uint32_t slice = 0; slice < count; ++slice) {
    std::vector<std::uint32_t> received(n, kNoNode);
    for (std::uint32_t distance = top / 2; distance > 0; distance /= 2)
      for (std::uint32_t i = 0; i + distance < n; i += 2 * distance)
        busy[i] = received[i + distance] =
            dag.add(member(i), member(i + distance), {0, 1, 1, slice, count}, Effect::copy, {received[i], busy[i]});
  }
}

}  // namespace manyworlds::core::collective

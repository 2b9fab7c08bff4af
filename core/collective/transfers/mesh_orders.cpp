#include "core/collective/transfers/mesh_orders.hpp"

#include <algorithm>

namespace manyworlds::core::collective {
namespace {

/// Returns the numbers below n in the order 0, 1, -1, 2, -2, … modulo n, moved by `turn`: neighbours differ by every
/// difference once if n is even (Williams 1949, "Experimental designs balanced for residual effects").
std::vector<std::uint32_t> zigzag(std::uint32_t n, std::uint32_t turn) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < n; ++i) order.push_back((turn + (i % 2 == 1 ? (i + 1) / 2 : n - i / 2)) % n);
  return order;
}

}  // namespace

std::uint32_t mesh_rings(std::uint32_t members) {
  if (members < 3) return 1;
  return members % 2 == 0 ? 2 * (members - 1) : members - 1;
}

/// Walecki's cycles (Alspach 2008, "The wonderful Walecki construction"): one member stands apart, the others are
/// passed in a zigzag that is turned. Of an even number of others half of the turns have every link once, of an odd
/// number all turns have it twice.
std::vector<std::uint32_t> mesh_ring(std::uint32_t members, std::uint32_t ring) {
  const std::uint32_t cycles = std::max(1u, mesh_rings(members) / 2);
  std::vector<std::uint32_t> order = zigzag(members - 1, ring % cycles);
  order.insert(order.begin(), members - 1);
  if (ring >= cycles) std::reverse(order.begin(), order.end());
  return order;
}

std::uint32_t mesh_paths(std::uint32_t members) {
  return members % 2 == 0 || members < 3 ? members : 2 * members;
}

std::vector<std::uint32_t> mesh_path(std::uint32_t members, std::uint32_t path) {
  std::vector<std::uint32_t> order = zigzag(members, path % members);
  if (path >= members) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace manyworlds::core::collective

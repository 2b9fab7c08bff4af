#include "core/collective/dag/given_algorithm.hpp"

#include <iterator>

namespace manyworlds::core::collective {

bool GivenAlgorithm::divides(std::int64_t bytes) const {
  constexpr std::int64_t kMaxSteps = 1 << 24;
  if (bytes <= 0 || bytes % chunks != 0) return false;
  std::int64_t steps = 0;
  for (const ThreadBlock& block : blocks) steps += std::ssize(block.steps);
  return steps == 0 || loops_of(bytes / chunks, loop_bytes).count <= kMaxSteps / steps;
}

}  // namespace manyworlds::core::collective

#include "core/workload/mixers/mixer_parts.hpp"

namespace manyworlds::core::workload {

void convolve(OpList& ops, std::int64_t elements) {
  ops.push_back(kernel(compute::memory_bound("mixer_convolution", 4 * elements)));
}

void convolve_backward(OpList& ops, std::int64_t elements) {
  ops.push_back(kernel(compute::memory_bound("mixer_convolution_gradient", 6 * elements)));
}

Operator gated_norm(std::int64_t elements) {
  return elementwise("mixer_gated_norm", elements, 6, 10, 2 * elements);
}

}  // namespace manyworlds::core::workload

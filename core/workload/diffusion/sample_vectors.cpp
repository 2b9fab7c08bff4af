#include "core/workload/diffusion/sample_vectors.hpp"

#include <utility>

namespace manyworlds::core::workload {

using compute::gemm;
using compute::memory_bound;

Operator sample_linear(const RankShapes& shapes, std::string_view name, std::int64_t in, std::int64_t out,
                       bool input_gradient) {
  const std::int64_t rows = shapes.samples;
  Operator result;
  result.name = name;
  result.saved_bytes = 2 * rows * in;
  result.weight_gradient_input_bytes = 2 * rows * (in + out);
  result.forward.push_back(kernel(gemm(name, rows, out, in)));
  if (input_gradient) result.backward.push_back(kernel(gemm(name, rows, in, out)));
  add_weight_gradient(result.backward, shapes, compute::weight_gradient(name, out, in, rows));
  result.backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * rows * out)));
  return result;
}

Operator sample_silu(const RankShapes& shapes, std::int64_t width) {
  const std::int64_t elements = shapes.samples * width;
  return elementwise("vector_silu", elements, 4, 6, 2 * elements);
}

std::int64_t modulation_parameters(const ModulationVectors& vectors, std::int64_t hidden) {
  return vectors.count * hidden * (vectors.table ? 1 : hidden + 1);
}

void add_modulation(std::vector<Operator>& operators, const RankShapes& shapes, const ModulationVectors& vectors,
                    std::int64_t ranks) {
  const std::int64_t width = vectors.count * shapes.hidden, elements = shapes.samples * width;
  if (vectors.table) {
    operators.push_back(elementwise("modulation", elements, 4, 2, 2 * elements));
    operators.back().backward.push_back(weight_gradient_kernel(memory_bound("table_gradient", 2 * elements)));
    return;
  }
  operators.push_back(sample_silu(shapes, shapes.hidden));
  Operator linear = sample_linear(shapes, "modulation", shapes.hidden, width / ranks);
  linear.saved_bytes += 2 * elements;
  if (ranks > 1) {
    block_on(linear.forward, linear.name, collective::Kind::all_gather, 2 * elements);
    block_on(linear.backward, linear.name, collective::Kind::all_reduce, 2 * shapes.samples * shapes.hidden);
  }
  operators.push_back(std::move(linear));
}

}  // namespace manyworlds::core::workload

#include "core/workload/diffusion/modulated_norm.hpp"

#include <utility>

namespace manyworlds::core::workload {
namespace {

/// Norm, scale and shift as one kernel forward, and two backward.
Operator fused_norm(std::string_view name, const RankShapes& shapes, bool residual) {
  const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
  Operator result = chain(name, elements, {4}, {6, 4}, 2 * elements);
  if (residual) result.backward.push_back(kernel(compute::memory_bound("residual_gradient", 6 * elements)));
  return result;
}

}  // namespace

void add_modulated_norm(std::vector<Operator>& operators, std::string_view name, const Model& model,
                        const RankShapes& shapes, bool residual, Modules modules) {
  const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
  if (shapes.stack.norm_fusion) {
    operators.push_back(fused_norm(name, shapes, residual));
  } else {
    operators.push_back(residual ? branch_norm(name, model, shapes)
                                 : norm(name, model, shapes, shapes.sp_region_tokens, shapes.hidden));
    operators.back().in_modules = modules;
    operators.push_back(chain("modulate", elements, {4, 4}, {2, 4, 6, 2}, 2 * elements));
    mark_input_from(operators.back(), modules);
  }
  operators.back().in_modules = modules;
}

Operator gated_residual(std::string_view name, const Model& model, const RankShapes& shapes) {
  const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
  Operator result = shapes.stack.norm_fusion ? elementwise(name, elements, 6, 6, 2 * elements)
                                             : chain(name, elements, {4, 6}, {4, 6, 2}, 2 * elements);
  if (model.biases && !shapes.stack.bias_dropout_fusion)
    result.forward.insert(result.forward.begin(), kernel(compute::memory_bound(name, 4 * elements)));
  return result;
}

}  // namespace manyworlds::core::workload

#include "core/workload/diffusion/modulated_norm.hpp"

namespace manyworlds::core::workload {

void add_modulated_norm(std::vector<Operator>& operators, std::string_view name, const Model& model,
                        const RankShapes& shapes, bool residual) {
  const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
  operators.push_back(residual ? branch_norm(name, model, shapes)
                               : norm(name, model, shapes, shapes.sp_region_tokens, shapes.hidden));
  operators.push_back(shapes.stack.bias_dropout_fusion
                          ? elementwise("modulate", elements, 4, 6, 2 * elements)
                          : chain("modulate", elements, {4, 4}, {2, 4, 6, 2}, 2 * elements));
}

Operator gated_residual(std::string_view name, const Model& model, const RankShapes& shapes) {
  const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
  if (shapes.stack.bias_dropout_fusion) return elementwise(name, elements, 6, 6, 2 * elements);
  return model.biases ? chain(name, elements, {4, 4, 6}, {4, 6, 2}, 2 * elements)
                      : chain(name, elements, {4, 6}, {4, 6, 2}, 2 * elements);
}

}  // namespace manyworlds::core::workload

#include "core/workload/operators/feed_forward_network.hpp"

namespace manyworlds::core::workload {

void add_feed_forward_network(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes,
                              compute::Dtype dtype, const FeedForwardLayers& layers) {
  Linear up{layers.up, layers.inputs, model.up_width(shapes.ffn), model.biases, dtype};
  if (model.is_gated() && !shapes.stack.projection_fusion) up.parts = {shapes.ffn, shapes.ffn};
  const std::size_t first = operators.size();
  operators.push_back(column_parallel(shapes, up));
  operators.push_back(activation(model, shapes, shapes.tokens * shapes.ffn));
  operators.push_back(row_parallel(shapes, {layers.down, shapes.ffn, shapes.hidden, model.biases, dtype}));
  Operator* const mlp = &operators[first];
  mark_input_from(mlp[0], recompute::mlp_norm);
  mark_input_from(mlp[1], recompute::mlp);
  mark_input_from(mlp[2], recompute::mlp | recompute::mlp_act);
  for (std::size_t i = 0; i < 3; ++i) {
    mlp[i].in_modules = recompute::mlp | (i == 1 ? recompute::mlp_act : 0);
    mlp[i].offload_module = offload::mlp_fc1 << i;
  }
}

}  // namespace manyworlds::core::workload

#include "core/workload/operators/key_heads.hpp"

#include <fmt/format.h>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

ShardedSize heads_of_keys(const Model& model) {
  return {"kv_heads", model.kv(), ShardAxis::tensor, true};
}

std::string unshared_key_heads(const Model& model, const Strategy& strategy, std::int64_t ranks) {
  const std::int64_t heads = model.kv();
  if (heads % ranks == 0) return "";
  const std::string sizes = fmt::format("kv_heads {}, tp {}", heads, ranks);
  if (ranks % heads != 0 || model.is_latent()) return sizes;
  if (is_generation(model))
    return fmt::format("{}; with engines that copy heads to ranks each rank has one: kv_heads {}", sizes, ranks);
  if (!strategy.stack.projection_fusion) return sizes + ", projection_fusion false";
  if (strategy.recompute == Recompute::per_op) return sizes + ", recompute per_op";
  return heads * (model.key_width() + model.value_width()) % ranks == 0
             ? ""
             : fmt::format("{}, heads of {} and {} numbers", sizes, model.key_width(), model.value_width());
}

std::int64_t gathered_head_width(const Model& model, const RankShapes& shapes) {
  if (model.is_latent() || model.kv() >= shapes.tensor_parallel) return 0;
  return model.heads * shapes.head_dim + model.kv() * (shapes.head_dim + shapes.value_dim);
}

Operator gather_heads(const Model& model, const RankShapes& shapes, std::int64_t width) {
  using collective::Kind;
  const std::int64_t all = shapes.tokens * width, group = all / model.kv();
  Operator result;
  result.name = "shared_heads";
  block_on(result.forward, result.name, Kind::all_gather, 2 * all);
  result.forward.push_back(kernel(compute::memory_bound("copy_heads", 4 * all)));
  result.backward.push_back(kernel(compute::memory_bound("pad_heads", 2 * (group + all))));
  result.backward.push_back(kernel(compute::memory_bound("copy_heads", 4 * all)));
  block_on(result.backward, result.name, Kind::reduce_scatter, 2 * all);
  return result;
}

std::int64_t gathered_head_bytes(const RankShapes& shapes, std::int64_t width) {
  return 4 * shapes.tokens * width;
}

}  // namespace manyworlds::core::workload

#include "core/memory/placeholders.hpp"

#include <set>
#include <utility>

#include "core/memory/allocator.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::LayerKind;

/// Rows and columns of a weight on one rank.
using WeightShape = std::pair<std::int64_t, std::int64_t>;

/// Adds the shapes of a layer's weights, but for the router's: the framework multiplies by that one itself.
void add_weight_shapes(std::set<WeightShape>& shapes, const std::vector<workload::Operator>& layer) {
  const auto add = [&](const workload::OpList& ops) {
    for (const workload::WorkItem& work : ops)
      if (const workload::KernelWork* kernel = work.kernel(); kernel && kernel->weight_gradient && kernel->shape.n > 0)
        shapes.emplace(kernel->shape.m, kernel->shape.n);
  };
  for (const workload::Operator& op : layer) {
    if (op.name == "router") continue;
    add(op.backward);
    if (op.factors) add(op.factors->gradient);
  }
}

}  // namespace

TensorBytes placeholder_gradients(const workload::Model& model, const workload::Strategy& strategy,
                                  std::int64_t stage) {
  TensorBytes sum;
  const workload::Stack& stack = strategy.stack;
  if (stack.layers != workload::LayerLibrary::transformer_engine || !stack.gradient_accumulation_fusion) return sum;
  std::set<LayerKind> kinds;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk)) kinds.insert(kind);
  std::set<WeightShape> shapes;
  for (const LayerKind kind : kinds) add_weight_shapes(shapes, workload::layer_operators(model, strategy, kind));
  for (const auto& [rows, columns] : shapes) {
    const std::int64_t bytes = workload::kParameterBytes * rows * columns;
    sum += {bytes, reserved_bytes(bytes) - bytes};
  }
  return sum;
}

}  // namespace manyworlds::core::memory

#include "core/workload/layer/layer_input.hpp"

#include "core/workload/operators/part_input.hpp"
#include "core/workload/parts/registry.hpp"

namespace manyworlds::core::workload {

void keep_input(std::vector<Operator>& layer, const Model& model, const Strategy& strategy, LayerKind kind) {
  if (!model.architecture || is_mtp(kind)) return;
  const Branch& first = model.architecture->block_of(kind).branches.front();
  const auto* part = dynamic_cast<const ReshapesStream*>(first.part.get());
  if (part == nullptr || first.options.has_norm_before() || first.options.residual) return;
  const PartOnRank on_rank(*first.model, strategy, kind, 0);
  const PartInput input = part->input(on_rank);
  layer.front().saved_bytes = input.bytes;
  layer.front().recomputed_bytes += on_rank.shapes.boundary_bytes() - input.saved;
}

}  // namespace manyworlds::core::workload

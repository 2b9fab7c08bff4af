#include "core/workload/model/wide_stream.hpp"

#include "core/workload/model/architecture.hpp"

namespace manyworlds::core::workload {

std::int64_t streams_behind(const Model& model, std::int64_t layers) {
  if (!model.architecture) return 1;
  const auto branches_of = [&](std::int64_t layer) -> const std::vector<Branch>& {
    return model.architecture->block_of(model.layer_kind(layer)).branches;
  };
  if (layers == 0) {
    const auto* part = dynamic_cast<const WidensStream*>(branches_of(0).front().part.get());
    return part == nullptr ? 1 : part->streams_in_front();
  }
  const std::vector<Branch>& last = branches_of(layers - 1);
  for (auto branch = last.rbegin(); branch != last.rend(); ++branch)
    if (const auto* part = dynamic_cast<const WidensStream*>(branch->part.get())) return part->streams_behind();
  return 1;
}

}  // namespace manyworlds::core::workload

#include "core/workload/model/layer_kinds.hpp"

#include <set>

namespace manyworlds::core::workload {

std::vector<LayerKind> layer_kinds(const Model& model) {
  std::vector<LayerKind> kinds;
  std::set<LayerKind> known;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (const LayerKind kind = model.layer_kind(layer); known.insert(kind).second) kinds.push_back(kind);
  return kinds;
}

}  // namespace manyworlds::core::workload

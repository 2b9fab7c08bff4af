#include "core/workload/model/multi_token_prediction.hpp"

namespace manyworlds::core::workload {

LayerKind mtp_kind(const Model& model) {
  LayerKind kind = model.layer_kind(model.layers - 1);
  kind.block = kMtpBlock;
  return kind;
}

LayerKind inner_kind(const Model& model, LayerKind kind) {
  return is_mtp(kind) ? model.layer_kind(model.layers - 1) : kind;
}

std::vector<LayerKind> all_layers(const Model& model) {
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) kinds.push_back(model.layer_kind(layer));
  for (std::int64_t layer = 0; layer < model.mtp_layers; ++layer) kinds.push_back(mtp_kind(model));
  return kinds;
}

bool stages_share_table(const Model& model) {
  return model.tied_embeddings || model.mtp_layers > 0;
}

}  // namespace manyworlds::core::workload

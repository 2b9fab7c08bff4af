// The kinds of layers that a model has.
#pragma once

#include <vector>

#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

/// Returns each kind of the model's own layers once, in the order in which they first appear. Those for multi-token
/// prediction are not among them.
std::vector<LayerKind> layer_kinds(const Model& model);

}  // namespace manyworlds::core::workload

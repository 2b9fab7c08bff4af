// A feed-forward network of two linear layers, or of three with a gate, and an activation function between them.
#pragma once

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

PartType feed_forward_type();
const LayerPart& feed_forward_part();

}  // namespace manyworlds::core::workload

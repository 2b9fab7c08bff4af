// What a layer for multi-token prediction has around the layer that it is like. Architectures do not name these parts.
#pragma once

#include <string_view>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

inline constexpr std::string_view kMtpStateNorm = "mtp_state_norm";  // norm of the hidden states before the layer

/// Before it: the embedding of a later token, a norm of it and one of the hidden states before the layer, and a
/// projection of both, one behind the other, to the width of the stream.
const LayerPart& mtp_input_part();
/// Behind it: the norm before the output layer, which the head computes.
const LayerPart& mtp_output_part();

}  // namespace manyworlds::core::workload

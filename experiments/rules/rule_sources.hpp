// Sources that several rules name. For Megatron-LM it is the file that refuses the layout; "by construction" means that
// the rule follows from the definition of its settings, or that this program does not build the layout, as the reason
// then states.
#pragma once

namespace manyworlds::experiments {

inline constexpr const char* kConstruction = "by construction";
inline constexpr const char* kArguments = "Megatron-LM, training/arguments.py, validate_args()";
inline constexpr const char* kDivide = "Megatron-LM, core/tensor_parallel/layers.py: divide() of what ranks are given";
inline constexpr const char* kTransformerConfig =
    "Megatron-LM, core/transformer/transformer_config.py, __post_init__()";
inline constexpr const char* kPfc = "IEEE 802.1Qbb-2011, annex O: buffer needed when a pause is sent";

}  // namespace manyworlds::experiments

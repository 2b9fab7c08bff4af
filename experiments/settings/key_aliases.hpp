// Names that other programs have for the keys of an experiment: arguments of Megatron-LM and fields of a Hugging Face
// config.json.
#pragma once

#include <string>

namespace manyworlds::experiments {

/// Returns the key with the alias `dotted`: "strategy.tp" for "tensor_model_parallel_size" and for
/// "strategy.tensor_model_parallel_size". Empty if there is none, or none below the sections that `dotted` names.
std::string key_for_alias(const std::string& dotted);

/// Returns a hint for a user who typed an unknown key, such as "; here it is strategy.zero=3"; empty if there is none.
std::string unknown_key_hint(const std::string& dotted);

}  // namespace manyworlds::experiments

// What other programs call the keys of an experiment: Megatron-LM's arguments, the fields of a Hugging Face
// config.json.
#pragma once

#include <string>

namespace manyworlds::experiments {

/// The key that `dotted` is another program's name of: "strategy.tp" for "tensor_model_parallel_size" and for
/// "strategy.tensor_model_parallel_size". Empty where there is none, or none below the sections that `dotted` names.
std::string key_called(const std::string& dotted);

/// What somebody who typed this unknown key should know, such as "; here it is strategy.zero=3"; empty where nobody
/// knows.
std::string hint_for(const std::string& dotted);

}  // namespace manyworlds::experiments

// Fields of Megatron-Bridge's ConfigContainer, and the arguments of Megatron-LM that they stand for.
#pragma once

#include <string>
#include <vector>

namespace manyworlds::experiments::jobs {

struct BridgeField {
  const char *argument, *field;  // "num-experts", "model.num_moe_experts"
  bool inverted = false;         // a switch that is given where the field is false
  const char* otherwise = "";    // what the recipe has; "": nothing, and false of a switch
};

/// Returns the fields that are not model.NAME, or that the recipe sets otherwise than Megatron-LM.
const std::vector<BridgeField>& bridge_fields();

/// Returns the field of an argument; a field of the model by the same name unless the table has another.
std::string field_of(const std::string& argument);

inline constexpr const char* kBridgeRecipe = "vanilla_gpt_pretrain_config";

}  // namespace manyworlds::experiments::jobs

// NVIDIA-NeMo/Megatron-Bridge @067f987, src/megatron/bridge/recipes/llama/h100/llama3.py; fusions are those of
// src/megatron/bridge/models/llama/llama_bridge.py and models/conversion/model_bridge.py.
#include "experiments/bridge/recipes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::array<BridgeRecipe, 5> kRecipes{
    {{"llama3_8b_peft_config", "llama3_8b_peft_1gpu_h100_bf16_config", "llama3-8b", "8"},
     {"llama31_8b_peft_config", "llama31_8b_peft_1gpu_h100_bf16_config", "llama3-8b", "8"},
     {"llama3_70b_peft_config", "llama3_70b_peft_8gpu_h100_bf16_config", "llama3-70b", "16", "",
      "model.tensor_model_parallel_size=8"},
     {"llama31_70b_peft_config", "llama31_70b_peft_8gpu_h100_bf16_config", "llama3-70b", "16", "",
      "model.tensor_model_parallel_size=8"},
     {"llama31_405b_peft_config", "llama31_405b_peft_32gpu_h100_bf16_config", "llama3-405b", "16", "linear_qkv",
      "model.tensor_model_parallel_size=4 model.pipeline_model_parallel_size=8 "
      "model.virtual_pipeline_model_parallel_size=8 model.sequence_parallel=true "
      "model.account_for_embedding_in_pipeline_split=true model.account_for_loss_in_pipeline_split=true "
      "model.grad_reduce_in_bf16=true dataset.seq_length=2048 train.global_batch_size=32"}}};

constexpr std::string_view kOfAll =
    "dataset.seq_length=4096 train.global_batch_size=8 train.micro_batch_size=1 model.tensor_model_parallel_size=1 "
    "model.pipeline_model_parallel_size=1 model.context_parallel_size=1 model.sequence_parallel=false "
    "mixed_precision=bf16_mixed model.gated_linear_unit=true model.apply_rope_fusion=true "
    "model.bias_activation_fusion=true model.bias_dropout_fusion=true model.masked_softmax_fusion=true "
    "model.gradient_accumulation_fusion=true model.cross_entropy_loss_fusion=false ddp.overlap_grad_reduce=false "
    "ddp.overlap_param_gather=false ddp.use_distributed_optimizer=false";

}  // namespace

const BridgeRecipe* find_recipe(const std::string& name) {
  const auto* found = std::find_if(kRecipes.begin(), kRecipes.end(),
                                   [&](const BridgeRecipe& one) { return one.name == name || one.long_name == name; });
  return found == kRecipes.end() ? nullptr : &*found;
}

std::string recipe_names() {
  std::vector<std::string_view> names;
  for (const BridgeRecipe& one : kRecipes) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::pair<std::string, std::string>> recipe_fields(const BridgeRecipe& recipe) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string_view all : {kOfAll, recipe.fields})
    for (const std::string_view word : import::words_of(all, " ")) {
      const std::size_t equals = word.find('=');
      fields.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
  return fields;
}

}  // namespace manyworlds::experiments::jobs

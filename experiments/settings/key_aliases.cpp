#include "experiments/settings/key_aliases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace manyworlds::experiments {
namespace {

struct KeyAlias {
  std::string_view typed, replacement;
};

constexpr std::array<KeyAlias, 34> kKeyAliases{{
    // Megatron-LM and NeMo
    {"tensor_model_parallel_size", "strategy.tp"},
    {"tensor_parallel", "strategy.tp"},
    {"pipeline_model_parallel_size", "strategy.pp"},
    {"pipeline_parallel", "strategy.pp"},
    {"context_parallel_size", "strategy.cp"},
    {"expert_model_parallel_size", "strategy.ep"},
    {"micro_batch_size", "strategy.micro_batch"},
    {"mbs", "strategy.micro_batch"},
    {"global_batch_size", "strategy.global_batch"},
    {"gbs", "strategy.global_batch"},
    {"seq_length", "model.sequence"},
    {"seq_len", "model.sequence"},
    {"num_layers", "model.layers"},
    {"mtp_num_layers", "model.mtp_layers"},
    {"moe_router_num_groups", "model.expert_groups"},
    {"moe_router_group_topk", "model.groups_per_token"},
    {"ffn_hidden_size", "model.ffn_hidden"},
    {"num_query_groups", "model.kv_heads"},
    {"vocab", "model.vocabulary"},
    // Hugging Face
    {"hidden_size", "model.hidden"},
    {"num_hidden_layers", "model.layers"},
    {"num_attention_heads", "model.heads"},
    {"num_key_value_heads", "model.kv_heads"},
    {"intermediate_size", "model.ffn_hidden"},
    {"moe_intermediate_size", "model.expert_ffn_hidden"},
    {"vocab_size", "model.vocabulary"},
    {"tie_word_embeddings", "model.tied_embeddings"},
    {"num_nextn_predict_layers", "model.mtp_layers"},
    {"num_experts", "model.experts"},
    {"num_local_experts", "model.experts"},
    {"num_experts_per_tok", "model.experts_per_token"},
    {"n_group", "model.expert_groups"},
    {"topk_group", "model.groups_per_token"},
    // An earlier version
    {"section_layers", "strategy.stage_layers"},
}};

/// Names that correspond to no key, with an explanation.
constexpr std::array<KeyAlias, 6> kKeyExplanations{{
    {"fsdp", "here it is strategy.zero=3"},
    {"dp", "here it is what the GPUs leave beside tp x cp x pp, which no key sets"},
    {"max_position_embeddings", "what is trained on is model.sequence, which may be less"},
    {"phases", "phases and their pools are a document of `manyworlds phases`"},
    {"pools", "phases and their pools are a document of `manyworlds phases`"},
    {"data_parallel_size", "here it is what the GPUs leave beside tp x cp x pp, which no key sets"},
}};

/// What people call the kinds of parallelism, alone or below strategy.
constexpr std::array<KeyAlias, 11> kParallelism{{
    {"tensor", "strategy.tp"},
    {"tensor_parallel_size", "strategy.tp"},
    {"pipeline", "strategy.pp"},
    {"pipeline_parallel_size", "strategy.pp"},
    {"pipeline_stages", "strategy.pp"},
    {"stages", "strategy.pp"},
    {"context", "strategy.cp"},
    {"context_parallel", "strategy.cp"},
    {"expert", "strategy.ep"},
    {"expert_parallel", "strategy.ep"},
    {"expert_parallel_size", "strategy.ep"},
}};
constexpr std::array<std::string_view, 2> kDataParallelism{"data", "data_parallel"};

std::string_view last_part(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

std::string key_for_alias(const std::string& dotted) {
  const std::string_view typed = last_part(dotted);
  const std::string_view sections = std::string_view(dotted).substr(0, dotted.size() - typed.size());
  for (const KeyAlias& one : kKeyAliases)
    if (one.typed == typed &&
        (sections.empty() || one.replacement.substr(0, one.replacement.rfind('.') + 1) == sections))
      return std::string(one.replacement);
  return "";
}

std::string unknown_key_hint(const std::string& dotted) {
  const std::string_view first = std::string_view(dotted).substr(0, dotted.find('.')), last = last_part(dotted);
  if (first == "base")
    return fmt::format("; keys are given as they stand below base: '{}'",
                       dotted.substr(std::min<std::size_t>(dotted.size(), first.size() + 1)));
  if (first == "axes" || first == "zip")
    return "; give the axis itself one value, as in strategy.tp=8, or change the document";
  for (const std::string_view beside : {"name", "objective", "where", "measured"})
    if (dotted == beside) return "; it stands beside base in the document, where --set does not reach";
  for (const KeyAlias& one : kKeyAliases)
    if (one.typed == last) return fmt::format("; here it is {}", one.replacement);
  for (const KeyAlias& one : kKeyExplanations)
    if (one.typed == last) return fmt::format("; {}", one.replacement);
  if (first.size() == dotted.size() || dotted == fmt::format("strategy.{}", last)) {
    for (const KeyAlias& one : kParallelism)
      if (one.typed == last) return fmt::format("; here it is {}", one.replacement);
    if (std::find(kDataParallelism.begin(), kDataParallelism.end(), last) != kDataParallelism.end())
      return unknown_key_hint("dp");
  }
  if (first.size() < dotted.size() && last == "like")
    return fmt::format("; '{0}' takes a name of the catalog: {0}=NAME", dotted.substr(0, dotted.size() - 5));
  return "";
}

}  // namespace manyworlds::experiments

// The model's part of Megatron-LM's arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/workload/model/group_limits.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/megatron_launch/writer.hpp"
#include "experiments/model_keys/carried.hpp"

namespace manyworlds::experiments::jobs {

namespace {

/// Arguments that are carried and that Megatron-LM had in 2021.
constexpr std::string_view kCarriedOf2021[] = {
    "max-position-embeddings",    "layernorm-epsilon", "init-method-std",
    "init-method-xavier-uniform", "openai-gelu",       "no-query-key-layer-scaling",
    "attention-softmax-in-fp32"};

}  // namespace

using core::workload::Activation;
using core::workload::Position;

void MegatronWriter::write_model() {
  add("ffn-hidden-size", model_.ffn(), {"model.ffn_hidden"});
  if (model_.activation == Activation::swiglu) add_switch("swiglu", {"model.activation"});
  write_heads();
  write_position();
  const char* rate = model_.dropout ? "0.1" : "0";
  for (const char* name : {"attention-dropout", "hidden-dropout"}) add(name, rate, {"model.dropout"});
  write_window();
  if (model_.is_latent()) write_latent_attention();
  if (model_.has_experts()) write_experts();
  if (model_.mtp_layers > 0 && !legacy_) add("mtp-num-layers", model_.mtp_layers, {"model.mtp_layers"});
  write_vocabulary();
  write_carried();
}

/// Adds the model's own arguments, in the place of those of the same name. Those of config.json without an argument are
/// told by reading the text back.
void MegatronWriter::write_carried() {
  for (models::CarriedArgument one : models::carried_in(value(models::kCarriedKey))) {
    if (one.name.starts_with("config.")) continue;
    if (legacy_ && one.name == "norm-epsilon") one.name = "layernorm-epsilon";
    const bool of_2021 =
        std::find(std::begin(kCarriedOf2021), std::end(kCarriedOf2021), one.name) != std::end(kCarriedOf2021);
    const KnownName* known = find_argument(one.name);
    if (known == nullptr || (legacy_ && !of_2021) || (is_of_experts(*known) && !model_.has_experts())) continue;
    const auto there =
        std::find_if(part_->begin(), part_->end(), [&](const LaunchArgument& other) { return other.name == one.name; });
    if (one.name == "max-position-embeddings" && there != part_->end() &&
        std::strtoll(one.values.front().c_str(), nullptr, 10) < model_.sequence)
      continue;
    if (there != part_->end())
      there->values = one.values;
    else
      add_several(one.name, one.values, {});
    if (one.name == "quick-geglu")
      std::erase_if(*part_, [](const LaunchArgument& other) { return other.name == "swiglu"; });
  }
}

/// Megatron-LM of 2021 has no argument for the size: that of GPT-2's tokenizer is padded to it.
void MegatronWriter::write_vocabulary() {
  constexpr std::int64_t kOfGpt2 = 50'257;
  if (!legacy_) {
    add("tokenizer-type", "NullTokenizer", {});
    return add("vocab-size", model_.vocabulary, {"model.vocabulary"});
  }
  add("tokenizer-type", "GPT2BPETokenizer", {});
  const std::int64_t padded = core::workload::padded_vocabulary(model_, strategy_.tp);
  core::workload::Model of_gpt2 = model_;
  of_gpt2.vocabulary = kOfGpt2;
  if (padded >= kOfGpt2 && padded != core::workload::padded_vocabulary(of_gpt2, strategy_.tp))
    add("make-vocab-size-divisible-by", padded / strategy_.tp, {"model.vocabulary"});
}

void MegatronWriter::write_heads() {
  if (model_.is_latent()) return;
  if (model_.kv() != model_.heads) {
    add_switch("group-query-attention", {});
    add("num-query-groups", model_.kv(), {"model.kv_heads"});
  }
  if (model_.query_key_norm) add_switch("qk-layernorm", {"model.query_key_norm"});
}

void MegatronWriter::write_position() {
  const bool rotary = model_.position == Position::rotary;
  if (!legacy_) add("position-embedding-type", rotary ? "rope" : "learned_absolute", {"model.position"});
  add("max-position-embeddings", model_.sequence, {});
}

void MegatronWriter::write_window() {
  if (model_.window == 0) return;
  add("window-size", fmt::format("{},0", model_.window - 1), {"model.window"});
  if (model_.window_every != 1) add("window-attn-skip-freq", model_.window_every, {"model.window_every"});
}

void MegatronWriter::write_latent_attention() {
  add_switch("multi-latent-attention", {"model.attention"});
  if (model_.query_rank > 0) add("q-lora-rank", model_.query_rank, {"model.query_rank"});
  add("kv-lora-rank", model_.kv_rank, {"model.kv_rank"});
  add("qk-head-dim", model_.head_width(), {"model.head_dim"});
  add("qk-pos-emb-head-dim", model_.rotary_dim, {"model.rotary_dim"});
  add("v-head-dim", model_.value_width(), {"model.value_dim"});
}

void MegatronWriter::write_experts() {
  add("num-experts", model_.experts, {"model.experts"});
  if (model_.dense_layers > 0)
    add("moe-layer-freq", fmt::format("([0]*{}+[1]*{})", model_.dense_layers, model_.layers - model_.dense_layers),
        {"model.dense_layers"});
  if (!core::workload::limits_groups(model_) || legacy_) return;
  add("moe-router-num-groups", model_.expert_groups, {"model.expert_groups"});
  add("moe-router-group-topk", model_.groups_per_token, {"model.groups_per_token"});
}

}  // namespace manyworlds::experiments::jobs

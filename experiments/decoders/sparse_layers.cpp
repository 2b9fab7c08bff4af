// Families whose attention is to keys that an index selects: DeepSeek-V3.2, GLM-5, whose layers may share an index, and
// DeepSeek-V4, where these are compressed.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"

namespace manyworlds::experiments::models {
namespace {

/// Returns whether each layer has an index of its own.
std::vector<bool> indexed_layers(ConfigReader& reader) {
  const FoundKey types = reader.find({"indexer_types"});
  if (!types.is_set()) {
    if (reader.integer({"index_topk_freq"}, 1) != 1)
      reader.refuse(reader.find({"index_topk_freq"}),
                    "'index_topk_freq' needs 'indexer_types': which layers have an index");
    return std::vector<bool>(static_cast<std::size_t>(reader.setting("layers")), true);
  }
  std::vector<bool> own = layers_named(reader, types, "full", "shared");
  if (!own.empty() && !own.front())
    reader.fail(types, "'indexer_types' begins with 'shared': no layer before has an index");
  return own;
}

std::string sparse_part(ConfigReader& reader, bool own_index) {
  const std::int64_t keys = reader.integer({"index_topk"}, 2'048);
  if (!own_index) return fmt::format(R"({{"sparse_attention": {{"own_index": false, "index_keys": {}}}}})", keys);
  return fmt::format(R"({{"sparse_attention": {{"index_heads": {}, "index_width": {}, "index_keys": {}}}}})",
                     reader.integer({"index_n_heads"}, 0), reader.integer({"index_head_dim"}, 128), keys);
}

void read_sparse(ConfigReader& reader) {
  read_latent_decoder(reader);
  for (const char* key : {"index_topk", "index_n_heads", "index_head_dim"})
    if (!reader.find({key}).is_set())
      throw core::InputError(fmt::format("'{}' is missing: the size of the index", key), reader.file());
  reader.find({"indexer_rope_interleave", "index_share_for_mtp_iteration", "index_skip_topk_offset",
               "index_topk_pattern", "index_topk_freq", "qk_head_dim", "moe_router_dtype"});
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    layers_named(reader, types, "deepseek_sparse_attention", "deepseek_sparse_attention");
  const auto dense = static_cast<std::size_t>(reader.setting("dense_layers"));
  const bool experts = reader.setting("experts") > 0;
  const FoundKey first = reader.find({"first_k_dense_replace"}), every = reader.find({"moe_layer_freq"});
  if (experts &&
      reader.integer({"first_k_dense_replace"}, reader.setting("dense_layers")) != reader.setting("dense_layers"))
    reader.fail(first,
                fmt::format("'first_k_dense_replace' is not {}, as many dense layers as 'mlp_layer_types' begins with",
                            reader.setting("dense_layers")));
  if (reader.integer({"moe_layer_freq"}, 1) != 1)
    reader.refuse(every, "'moe_layer_freq' must be 1: experts in only one of so many layers are not modelled");
  const std::vector<bool> own = indexed_layers(reader);
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "dense_layers"; });
  for (std::size_t layer = 0; layer < own.size(); ++layer) {
    const bool routed = experts && layer >= dense;
    reader.layers().add(fmt::format("{}{}", routed ? "routed" : "dense", own[layer] ? "" : "_shared"),
                        fmt::format("[{}, {}]", sparse_part(reader, own[layer]),
                                    routed ? R"({"experts": {"correction_bias": true}})" : R"("mlp")"));
  }
}

constexpr std::int64_t kSparseRatio = 4, kHeavyRatio = 128;  // the tokens of an entry that there are

/// Returns a size, 1 or more, of a key that file or defaults must have.
std::int64_t needed(ConfigReader& reader, std::string_view key) {
  const FoundKey found = reader.find({key});
  if (!found.is_set())
    throw core::InputError(fmt::format("'{}' is missing, and {} has no default for it", key, reader.config().family),
                           reader.file());
  const std::int64_t value = reader.integer({key}, 0);
  if (value < 1) reader.fail(found, fmt::format("'{}' must be 1 or more in this family", key));
  return value;
}

/// Returns the tokens of a compressed entry in each layer, 0 if a layer has none.
std::vector<std::int64_t> compressed_ratios(ConfigReader& reader) {
  const auto layers = static_cast<std::size_t>(reader.setting("layers"));
  const FoundKey ratios = reader.find({"compress_ratios"}), types = reader.find({"layer_types"});
  const bool by_type = types.is_set();
  const FoundKey& list = by_type ? types : ratios;
  if (!list.is_set())
    throw core::InputError("'compress_ratios' is missing: tokens of a compressed entry in each layer", reader.file());
  if (list.value->kind != import::Node::Kind::sequence || list.value->items.size() < layers)
    reader.fail(list, fmt::format("'{}' must have an entry for each of {} layers", list.key, layers));
  std::vector<std::int64_t> result;
  for (std::size_t layer = 0; layer < layers; ++layer) {  // those behind are of layers that predict further tokens
    const std::string& entry = list.value->items[layer].text;
    if (entry == (by_type ? "sliding_attention" : "0"))
      result.push_back(0);
    else if (entry == (by_type ? "compressed_sparse_attention" : "4"))
      result.push_back(kSparseRatio);
    else if (entry == (by_type ? "heavily_compressed_attention" : "128"))
      result.push_back(kHeavyRatio);
    else
      reader.fail(list, fmt::format("'{}' has '{}'; known are {}", list.key, entry.substr(0, 40),
                                    by_type ? "sliding_attention, compressed_sparse_attention and "
                                              "heavily_compressed_attention"
                                            : "0, 4 and 128"));
  }
  return result;
}

/// Returns whether the experts of each layer are chosen by a table of tokens.
std::vector<bool> hashed_layers(ConfigReader& reader) {
  if (const FoundKey types = reader.find({"mlp_layer_types"}); types.is_set())
    return layers_named(reader, types, "hash_moe", "moe");
  std::vector<bool> hashed;
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    hashed.push_back(layer < reader.integer({"num_hash_layers"}, 0));
  return hashed;
}

std::string compressed_part(ConfigReader& reader, std::int64_t ratio) {
  std::string more;
  if (ratio > 0) more = fmt::format(R"(, "ratio": {})", ratio);
  if (ratio == kSparseRatio)
    more +=
        fmt::format(R"(, "series": 2, "index_heads": {}, "index_width": {}, "index_keys": {})",
                    needed(reader, "index_n_heads"), needed(reader, "index_head_dim"), needed(reader, "index_topk"));
  return fmt::format(R"({{"compressed_attention": {{"query_width": {}, "rotary_width": {}, "window_keys": {}, )"
                     R"("output_groups": {}, "output_width": {}{}, "residual": false}}}})",
                     needed(reader, "q_lora_rank"), needed(reader, "qk_rope_head_dim"),
                     needed(reader, "sliding_window"), needed(reader, "o_groups"), needed(reader, "o_lora_rank"), more);
}

void read_compressed(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  if (reader.setting("kv_heads") != 1)
    reader.refuse(reader.find({"num_key_value_heads"}), "'num_key_value_heads' must be 1 in this family");
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (reader.flag({key}, false)) reader.refuse(reader.find({key}), fmt::format("'{}' must be false", key));
  if (reader.find({"compress_rates"}).is_set())
    reader.refuse(reader.find({"compress_rates"}), "'compress_rates': entries of other than 4 and 128 tokens");
  reader.set("biases", false);
  read_deepseek_experts(reader);
  if (reader.setting("experts") == 0) reader.fail(reader.find({"n_routed_experts"}), "'n_routed_experts' is missing");
  for (const char* key : {"hc_sinkhorn_iters", "hc_eps"})
    if (reader.find({key}).is_set()) reader.note(key, "inside of the kernel that balances a matrix of each token");
  reader.find({"expert_dtype", "compress_rope_theta", "qk_rope_head_dim", "num_hash_layers", "hc_mult"});
  const std::string connection = fmt::format(R"({{"hyper_connection": {{"streams": {}}}}})", needed(reader, "hc_mult"));
  const std::vector<bool> hashed = hashed_layers(reader);
  std::size_t layer = 0;
  for (const std::int64_t ratio : compressed_ratios(reader)) {
    const bool by_table = hashed[layer++];
    const char* name = ratio == 0 ? "windowed" : ratio == kSparseRatio ? "sparse" : "compressed";
    reader.layers().add(fmt::format("{}{}", name, by_table ? "_hashed" : ""),
                        fmt::format(R"([{0}, {1}, {0}, {{"experts": {{"correction_bias": {2}, "residual": false}}}}])",
                                    connection, compressed_part(reader, ratio), !by_table));
  }
  reader.layers().end_with(
      fmt::format(R"({{"hyper_connection": {{"streams": {}, "collapse_only": true}}}})", needed(reader, "hc_mult")));
  if (std::find(hashed.begin(), hashed.end(), true) != hashed.end())
    reader.note("num_hash_layers", "a table of whole numbers in place of a choice by scores");
  leave_out_next_tokens(reader, false);  // two projections, and streams of its own
}

constexpr std::string_view kCompressedSizes =
    R"({"vocab_size": 129280, "hidden_size": 4096, "moe_intermediate_size": 2048, "num_hidden_layers": 43,
        "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "q_lora_rank": 1024,
        "num_experts_per_tok": 6, "n_routed_experts": 256, "n_shared_experts": 1, "hc_mult": 4, "num_hash_layers": 3,
        "sliding_window": 128, "o_groups": 8, "o_lora_rank": 1024, "index_n_heads": 64, "index_head_dim": 128,
        "index_topk": 512, "qk_rope_head_dim": 64, "hidden_act": "silu", "tie_word_embeddings": false,
        "rms_norm_eps": 1e-06, "initializer_range": 0.02, "rope_theta": 10000.0, "routed_scaling_factor": 1.5,
        "max_position_embeddings": 1048576})";
constexpr std::string_view kCompressedKeys =
    " compress_ratios hc_mult o_lora_rank num_hash_layers index_topk layer_types ";

constexpr std::string_view kIndexKeys = " index_topk indexer_types layer_types ";

}  // namespace

std::vector<Family> sparse_families() {
  return {
      {"deepseek_ref", "DeepseekV4Config", kCompressedSizes, read_compressed, kCompressedKeys},
      {"deepseek_v4", "DeepseekV4Config", kCompressedSizes, read_compressed, kCompressedKeys},
      {"deepseek_v32", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_sparse, kIndexKeys},
      {"glm_moe_dsa", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_sparse, kIndexKeys},
  };
}

}  // namespace manyworlds::experiments::models

// Families whose attention is to keys that an index selects: DeepSeek-V3.2, and GLM-5, whose layers may share an index.
#include <fmt/format.h>

#include <vector>

#include "experiments/models/decoder_parts.hpp"
#include "experiments/models/families.hpp"

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

constexpr std::string_view kIndexKeys = " index_topk indexer_types ";

}  // namespace

std::vector<Family> sparse_families() {
  return {
      {"deepseek_v32", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_sparse, kIndexKeys},
      {"glm_moe_dsa", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_sparse, kIndexKeys},
  };
}

}  // namespace manyworlds::experiments::models

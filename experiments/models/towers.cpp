#include "experiments/models/towers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace manyworlds::experiments::models {
namespace {

using import::Node;

constexpr std::int64_t kPatches = 1'024;  // of a sample's image: 512 x 512 pixels in patches of 16
constexpr std::array<std::string_view, 17> kKeys{"deepstack_visual_indexes",
                                                 "depth",
                                                 "hidden_act",
                                                 "hidden_size",
                                                 "in_channels",
                                                 "dtype",
                                                 "initializer_range",
                                                 "intermediate_size",
                                                 "model_type",
                                                 "num_heads",
                                                 "num_position_embeddings",
                                                 "out_hidden_size",
                                                 "patch_size",
                                                 "spatial_merge_size",
                                                 "temporal_patch_size",
                                                 "torch_dtype",
                                                 "transformers_version"};

void refuse_unknown_keys(ConfigReader& reader, const Node& tower) {
  for (const import::Entry& entry : tower.entries)
    if (std::find(kKeys.begin(), kKeys.end(), entry.key) == kKeys.end())
      reader.refuse(entry.line, fmt::format("'{}' is not known of 'vision_config'", entry.key.substr(0, 60)));
}

void add_plain_layers(ConfigReader& reader) {
  const bool experts = reader.setting("experts") > 0;
  const std::int64_t dense = experts ? reader.setting("dense_layers") : reader.setting("layers");
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    reader.layers().add(layer < dense ? "dense" : "routed",
                        layer < dense ? R"(["attention", "mlp"])" : R"(["attention", "experts"])");
}

}  // namespace

bool read_tower(ConfigReader& reader, const Node& document, ModelConfig& config) {
  const Node *vision = document.find("vision_config"), *type = document.find("model_type");
  if (vision == nullptr || vision->kind != Node::Kind::mapping || type == nullptr) return false;
  if (!type->text.starts_with("qwen3_vl") && !type->text.starts_with("qwen3_5")) return false;
  ConfigReader tower(*vision, *vision, "", config);
  refuse_unknown_keys(reader, *vision);
  const auto size = [&](std::string_view key) {
    const std::int64_t value = tower.integer({key}, 0);
    if (value < 1 || value > 1'000'000)
      throw core::InputError(fmt::format("'{}' of 'vision_config' must be from 1 to 1000000", key), reader.file(),
                             vision->line);
    return value;
  };
  const std::int64_t width = size("hidden_size"), heads = size("num_heads"), depth = size("depth");
  const std::int64_t patch = size("patch_size"), merge = size("spatial_merge_size");
  if (depth > 1'000 || patch > 1'000 || merge > 16 || size("in_channels") > 16 || size("temporal_patch_size") > 16)
    throw core::InputError("'vision_config' has sizes beyond those of a tower", reader.file(), vision->line);
  if (size("out_hidden_size") != reader.setting("hidden") || width % heads != 0)
    throw core::InputError(
        "'vision_config': 'out_hidden_size' must be 'hidden_size' of the language model, and "
        "'num_heads' must divide its 'hidden_size'",
        reader.file(), vision->line);
  const std::int64_t inputs = size("in_channels") * patch * patch * size("temporal_patch_size");
  const Node* deepstack = vision->find("deepstack_visual_indexes");
  const std::size_t mergers = 1 + (deepstack == nullptr ? 0 : std::min<std::size_t>(deepstack->items.size(), 100));
  if (reader.layers().empty()) add_plain_layers(reader);
  Network network{"vision",
                  fmt::format(R"("hidden": {}, "sequence": {}, "heads": {}, "kv_heads": {}, "head_dim": {}, )"
                              R"("ffn_hidden": {}, "norm": "layer_norm", "activation": "gelu", )"
                              R"("biases": true, "query_key_norm": false)",
                              width, kPatches, heads, heads, width / heads, size("intermediate_size")),
                  {}};
  for (std::int64_t i = 0; i < depth; ++i) network.layers.add("layer", R"([{"attention": {"causal": false}}, "mlp"])");
  network.layers.begin_with(
      fmt::format(R"({{"patch_embedding": {{"inputs": {}, "norms": "none", "residual": false}}}})", inputs));
  if (depth > 1) network.layers.end_with(R"({"output_norm": {"norms": "none", "residual": false}})");
  const std::int64_t merged = width * merge * merge;
  const std::string mlp =
      fmt::format(R"({{"mlp": {{"inputs": {0}, "ffn_hidden": {0}, "norms": "none", "residual": false}}}})", merged);
  std::string parts = "[" + mlp;
  for (std::size_t i = 1; i < mergers; ++i) parts += ", " + mlp;
  Network merger{"merger",
                 fmt::format(R"("sequence": {}, "activation": "gelu", "biases": true, "query_key_norm": false)",
                             kPatches / (merge * merge)),
                 {}};
  merger.layers.add("mergers", parts + "]");
  reader.front() = {network, merger};
  config.left_out.push_back({"vision_config", fmt::format("the table of positions and norms of further mergers; each "
                                                          "sample has one image of {} patches",
                                                          kPatches)});
  return true;
}

}  // namespace manyworlds::experiments::models

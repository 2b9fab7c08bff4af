#include "experiments/towers/image_tower.hpp"

#include <fmt/format.h>

#include "experiments/model_keys/known_keys.hpp"
#include "experiments/model_keys/layer_kinds.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

const Node& member_of(const Node& document, const std::string& name) {
  const Node* found = document.find(name);
  if (found == nullptr || found->kind != Node::Kind::mapping)
    document.fail(fmt::format("'{}' must be an object", name));
  return *found;
}

void pass_on(const ConfigReader& from, ConfigReader& to) {
  for (const Refusal& one : from.refusals()) to.refuse(one.line, one.text);
}

}  // namespace

TowerReader::TowerReader(ConfigReader& reader, const Node& document, std::string_view name, std::string_view defaults,
                         ModelConfig& config)
    : reader_(reader), name_(name), member_(member_of(document, name_)), own_(member_, member_, defaults, config) {}

std::int64_t TowerReader::size(Keys keys, std::int64_t most) {
  if (!own_.find(keys).is_set())
    throw core::InputError(fmt::format("'{}' of '{}' is missing: a size from 1 to {}", *keys.begin(), name_, most),
                           reader_.file(), member_.line);
  const std::int64_t value = own_.integer(keys, 0);
  if (value < 1 || value > most)
    throw core::InputError(fmt::format("'{}' of '{}' must be from 1 to {}", *keys.begin(), name_, most), reader_.file(),
                           member_.line);
  return value;
}

std::int64_t TowerReader::side(Keys keys, std::int64_t most) {
  const FoundKey found = own_.find(keys);
  if (!found.is_set() || found.value->kind != Node::Kind::sequence) return size(keys, most);
  const auto& both = found.value->items;
  if (both.size() != 2 || both[0].text != both[1].text || both[0].text.empty() || both[0].text.size() > 6 ||
      both[0].text.find_first_not_of("0123456789") != std::string::npos || std::stoll(both[0].text) < 1 ||
      std::stoll(both[0].text) > most)
    fail(fmt::format("'{}' must be a size from 1 to {}, or two equal ones", found.key, most));
  return std::stoll(both[0].text);
}

void TowerReader::require_text(std::string_view key, std::string_view expected) {
  const std::string found = own_.text({key}, std::string(expected));
  if (found != expected)
    reader_.refuse(own_.find({key}),
                   fmt::format("'{}' of '{}' is '{}': only {} is modelled", key, name_, found.substr(0, 40), expected));
}

void TowerReader::require_flag(std::string_view key, bool expected) {
  if (own_.flag({key}, expected) != expected)
    reader_.refuse(own_.find({key}),
                   fmt::format("'{}' of '{}' is {}: only {} is modelled", key, name_, !expected, expected));
}

void TowerReader::fail(const std::string& what) const {
  throw core::InputError(fmt::format("'{}': {}", name_, what), reader_.file(), member_.line);
}

void TowerReader::judge_rest() {
  refuse_unknown_layers(own_, member_, "", "");
  judge_remaining_keys(own_, member_, fmt::format("'{}'", name_));
  pass_on(own_, reader_);
}

Network tower_network(const ImageTower& tower, const std::string& last) {
  Network network{
      "vision",
      fmt::format(R"("hidden": {}, "sequence": {}, "heads": {}, "kv_heads": {}, "head_dim": {}, "ffn_hidden": {}, )"
                  R"("norm": "layer_norm", "activation": "gelu", "position": "{}", "biases": true, )"
                  R"("query_key_norm": false, "attention": "multi_head", "window": 0)",
                  tower.hidden, tower.patches + tower.extra_tokens, tower.heads, tower.heads,
                  tower.hidden / tower.heads, tower.ffn_hidden, tower.learned_positions ? "learned" : "rotary"),
      {}};
  for (std::int64_t i = 0; i < tower.layers; ++i)
    network.layers.add("layer", R"([{"attention": {"causal": false}}, "mlp"])");
  network.layers.begin_with(fmt::format(
      R"({{"patch_embedding": {{"inputs": {}, "extra_tokens": {}, "bias": {}, "norms": "{}", "residual": false}}}})",
      tower.inputs, tower.extra_tokens, tower.patch_bias, tower.norm_at_entrance ? "after" : "none"));
  for (std::int64_t i = 0; i < tower.norms_at_end; ++i)
    network.layers.end_with(R"({"output_norm": {"norms": "none", "residual": false}})");
  if (!last.empty()) network.layers.end_with(last);
  return network;
}

Network single_block(const std::string& name, const std::string& options, const std::string& parts) {
  Network network{name, options, {}};
  network.layers.add("layer", parts);
  return network;
}

}  // namespace manyworlds::experiments::models

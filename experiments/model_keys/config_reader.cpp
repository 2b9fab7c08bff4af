#include "experiments/model_keys/config_reader.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/workload/model/model.hpp"
#include "experiments/tree/json_tree.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using core::InputError;
using core::OptionInfo;
using import::Entry;
using import::Node;

constexpr double kMaxInteger = 1e9;  // of keys that set no option by themselves

const Entry* entry_of(const Node& mapping, std::string_view key) {
  for (const Entry& entry : mapping.entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

const OptionInfo& option_named(const std::string& name) {
  static const std::vector<OptionInfo> options = core::workload::model_options().infos();
  for (const OptionInfo& info : options)
    if (info.name == name) return info;
  MANYWORLDS_CHECK(false, "a model has no option '{}'", name);
}

OptionInfo plain_option(OptionInfo::Kind kind, double minimum, double maximum) {
  OptionInfo info;
  info.kind = kind;
  info.minimum = minimum;
  info.maximum = maximum;
  return info;
}

}  // namespace

ConfigReader::ConfigReader(const Node& config, const Node& outer, std::string_view defaults, ModelConfig& to)
    : config_(config),
      outer_(outer),
      defaults_(import::parse_json_tree(defaults.empty() ? "{}" : defaults, to.defaults_of)),
      to_(to) {}

FoundKey ConfigReader::find(Keys keys) {
  for (const std::string_view key : keys) read_.emplace(key);
  for (const Node* from : {&config_, &outer_})
    for (const std::string_view key : keys) {
      // Only this key of a document around the model is about the model.
      if (from == &outer_ && &outer_ != &config_ && key != "tie_word_embeddings") continue;
      if (const Entry* entry = entry_of(*from, key)) return {&entry->value, std::string(key), entry->line, false};
    }
  for (const std::string_view key : keys)
    if (const Entry* entry = entry_of(defaults_, key)) return {&entry->value, std::string(key), 0, true};
  return {nullptr, std::string(*keys.begin()), 0, false};
}

void ConfigReader::take(const std::string& option, Keys keys) {
  const FoundKey found = find(keys);
  if (found.value == nullptr)
    throw InputError(fmt::format("'{}' is missing, and {} has no default for it", found.key, to_.family), file());
  if (!found.is_set())
    fail(found, fmt::format("'{}' is null; give {}", found.key, import::expected_text(option_named(option))));
  to_.values.push_back({option, import::read_value(*found.value, option_named(option), found.key), found.key,
                        found.line, found.assumed});
}

bool ConfigReader::take_if_set(const std::string& option, Keys keys) {
  if (!find(keys).is_set()) return false;
  take(option, keys);
  return true;
}

void ConfigReader::set(const std::string& option, core::OptionValue value, const std::string& key) {
  FoundKey from;
  if (!key.empty()) from = find({key});
  Node at;
  at.file = config_.file;
  at.line = from.line;
  import::check_range(value, option_named(option), key.empty() ? option : key, at);
  to_.values.push_back({option, std::move(value), key, from.line, from.assumed});
}

std::int64_t ConfigReader::integer(Keys keys, std::int64_t otherwise) {
  const FoundKey found = find(keys);
  if (!found.is_set()) return otherwise;
  return std::get<std::int64_t>(
      import::read_value(*found.value, plain_option(OptionInfo::Kind::integer, 0, kMaxInteger), found.key));
}

double ConfigReader::real(Keys keys, double otherwise) {
  const FoundKey found = find(keys);
  if (!found.is_set()) return otherwise;
  return std::get<double>(
      import::read_value(*found.value, plain_option(OptionInfo::Kind::real, 0, kMaxInteger), found.key));
}

bool ConfigReader::flag(Keys keys, bool otherwise) {
  const FoundKey found = find(keys);
  if (!found.is_set()) return otherwise;
  return std::get<bool>(import::read_value(*found.value, plain_option(OptionInfo::Kind::boolean, 0, 0), found.key));
}

std::string ConfigReader::text(Keys keys, const std::string& otherwise) {
  const FoundKey found = find(keys);
  return found.is_set() ? import::read_line(*found.value, found.key) : otherwise;
}

const std::vector<Node>& ConfigReader::layer_list(const FoundKey& list) {
  if (list.value->kind != Node::Kind::sequence)
    fail(list, fmt::format("'{}' must be a list with one entry for each layer, not {}", list.key,
                           import::describe(*list.value)));
  const auto layers = static_cast<std::size_t>(setting("layers"));
  if (layers > 0 && list.value->items.size() != layers)
    fail(list,
         fmt::format("'{}' has {} entries, and 'num_hidden_layers' is {}", list.key, list.value->items.size(), layers));
  return list.value->items;
}

std::int64_t ConfigReader::setting(std::string_view option) const {
  const ConfigValue* found = to_.find(option);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->value);
  return value == nullptr ? 0 : *value;
}

void ConfigReader::set_architecture() {
  if (layers_.empty()) return;
  std::int64_t count = layers_.size();
  for (const Network& one : front_) count += one.layers.size();
  set("architecture", architecture_text(front_, layers_, ends_));
  for (ConfigValue& value : to_.values)
    if (value.option == "layers") {
      value.value = count;
      return;
    }
  set("layers", count);
}

void ConfigReader::fail(const FoundKey& at, const std::string& what) const {
  throw InputError(what, file(), at.line);
}

std::string layer_ranges(const std::vector<std::size_t>& layers) {
  constexpr std::size_t kMaxRanges = 3;
  std::vector<std::string> ranges;
  std::size_t shown = 0;
  for (std::size_t first = 0; first < layers.size() && ranges.size() < kMaxRanges;) {
    std::size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    ranges.push_back(first == last ? std::to_string(layers[first]) : fmt::format("{}-{}", layers[first], layers[last]));
    shown = first = last + 1;
  }
  const std::string more = shown < layers.size() ? fmt::format(" and {} more", layers.size() - shown) : "";
  return fmt::format("{} {}{}", layers.size() == 1 ? "layer" : "layers", fmt::join(ranges, ", "), more);
}

std::int64_t period_of(const std::vector<std::size_t>& layers, std::size_t count) {
  const std::size_t period = layers.size() > 1 ? layers[1] - layers[0] : std::max<std::size_t>(count, 1);
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i] != i * period) return 0;
  return layers.size() == (count + period - 1) / period ? static_cast<std::int64_t>(period) : 0;
}

}  // namespace manyworlds::experiments::models

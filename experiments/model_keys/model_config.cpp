#include "experiments/model_keys/model_config.hpp"

#include <fmt/ranges.h>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {

const ConfigValue* ModelConfig::find(std::string_view option) const {
  for (const ConfigValue& value : values)
    if (value.option == option) return &value;
  return nullptr;
}

core::workload::Model ModelConfig::model() const {
  core::OptionSet set;
  for (const ConfigValue& value : values) set[value.option] = value.value;
  core::workload::Model model = core::workload::model_options().make(set);
  if (sequence > 0) model.sequence = sequence;
  model.architecture = architecture_of(model);
  return model;
}

std::string count_text(std::int64_t count) {
  const auto real = static_cast<double>(count);
  if (count >= 1'000'000'000'000) return fmt::format("{:.4g} T", real / 1e12);
  if (count >= 1'000'000'000) return fmt::format("{:.4g} B", real / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.4g} M", real / 1e6);
  return count >= 1'000 ? fmt::format("{:.4g} k", real / 1e3) : std::to_string(count);
}

std::string summary(const ModelConfig& config) {
  const core::workload::Model model = config.model();
  std::string text = fmt::format("model {} read from {} ({}), {} parameters", config.name, config.file, config.family,
                                 count_text(core::workload::model_parameters(model)));
  if (model.has_experts()) text += fmt::format(", {} active", count_text(core::workload::active_parameters(model)));
  std::vector<std::string> assumed, without;
  for (const ConfigValue& value : config.values)
    if (value.assumed) assumed.push_back(fmt::format("{}={}", value.key, import::value_text(value.value)));
  for (const ConfigNote& note : config.carried_defaults) assumed.push_back(fmt::format("{}={}", note.key, note.text));
  for (const ConfigNote& note : config.without_effect) without.push_back(note.key);
  if (!assumed.empty())
    text += fmt::format(", with {} of {}", fmt::join(assumed, " and "),
                        config.defaults_of.empty() ? config.family : config.defaults_of);
  for (const ConfigNote& note : config.left_out) text += fmt::format(", without {}", note.text);
  if (!without.empty()) text += fmt::format(", unchanged by {}", fmt::join(without, ", "));
  return text;
}

}  // namespace manyworlds::experiments::models

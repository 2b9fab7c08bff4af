#include "experiments/phases/merged_pairs.hpp"

#include <vector>

#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::phases {
namespace {

constexpr const char *kRank = "model.lora_rank", *kWeights = "model.lora_weights",
                     *kMagnitudes = "model.lora_magnitudes", *kFrozen = "model.frozen_weights";

/// Returns the settings of a merged model that are others than those given.
std::vector<Settings::value_type> merging_settings(const Settings& given) {
  std::vector<Settings::value_type> changed;
  if (integer_of(given, kRank, 0) == 0) return changed;
  const std::vector<Settings::value_type> merged{
      {kRank, std::int64_t{0}}, {kWeights, std::string("none")}, {kMagnitudes, false}, {kFrozen, std::string("bf16")}};
  for (const auto& [key, value] : merged)
    if (const core::OptionValue* found = given.value(key); found != nullptr && *found != value)
      changed.emplace_back(key, value);
  return changed;
}

}  // namespace

void merge_pairs(const Settings& settings, DerivedSettings& derived) {
  for (const auto& [key, value] : merging_settings(settings))
    derived.set(key, import::value_text(value), "pairs that are merged into the weights");
}

core::workload::Model merged_model(const Experiment& experiment) {
  Experiment merged = experiment;
  for (const auto& [key, value] : merging_settings(experiment.settings)) merged.settings.set(key, value);
  return merged.config().configuration.model;
}

}  // namespace manyworlds::experiments::phases

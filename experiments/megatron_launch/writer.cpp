// Writes the arguments that are one setting each, from the table that they are read by.
#include "experiments/megatron_launch/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr const char* kOldStack = "megatron-2021";
/// Arguments of the table that Megatron-LM of 2021 has.
constexpr std::array<std::string_view, 7> kOfOldSoftware{
    "num-layers", "hidden-size",      "num-attention-heads",   "kv-channels",
    "seq-length", "micro-batch-size", "no-bias-dropout-fusion"};

/// Returns the word that stands for a setting in "word=setting …"; empty if none does.
std::string word_for(const std::string& values, const std::string& setting) {
  for (const std::string_view pair : import::words_of(values))
    if (const std::size_t equals = pair.find('='); pair.substr(equals + 1) == setting)
      return std::string(pair.substr(0, equals));
  return "";
}

}  // namespace

MegatronWriter::MegatronWriter(const Settings& experiment)
    : experiment_(experiment),
      config_(config_of(experiment)),
      model_(config_.configuration.model),
      strategy_(config_.configuration.strategy),
      stack_(strategy_.stack),
      legacy_(experiment.text("strategy.stack.name") == kOldStack) {}

MegatronLaunch MegatronWriter::write() {
  launch_.size = {config_.cluster.nodes, config_.cluster.gpus_per_node};
  launch_.of_2021 = legacy_;
  part_ = &launch_.model;
  write_direct("model.");
  write_model();
  part_ = &launch_.layout;
  write_direct("strategy.");
  write_layout();
  write_direct("placement.");
  part_ = &launch_.software;
  write_direct("strategy.stack.");
  write_stack();
  return std::move(launch_);
}

void MegatronWriter::add(const std::string& name, const std::string& value, Keys keys) {
  add_several(name, {value}, std::move(keys));
}

void MegatronWriter::add(const std::string& name, std::int64_t value, Keys keys) {
  add_several(name, {std::to_string(value)}, std::move(keys));
}

void MegatronWriter::add_switch(const std::string& name, Keys keys) {
  add_several(name, {}, std::move(keys));
}

void MegatronWriter::add_several(const std::string& name, std::vector<std::string> values, Keys keys) {
  part_->push_back({name, std::move(values), std::move(keys)});
}

void MegatronWriter::note(const std::string& key, const std::string& what) {
  launch_.notes.push_back(fmt::format("{} {}: {}", key, value(key), what));
}

/// Returns whether an argument says nothing in this layout.
bool MegatronWriter::is_silent(const KnownName& known) const {
  if (is_of_experts(known) && !model_.has_experts()) return true;
  if (known.means == "model.head_dim" && model_.is_latent()) return true;
  if (known.means == "strategy.cp_comm" && strategy_.cp == 1) return true;
  if (known.means == "strategy.token_drop" && strategy_.capacity_factor == 0) return true;
  if (!legacy_) return false;
  return std::find(kOfOldSoftware.begin(), kOfOldSoftware.end(), known.name) == kOfOldSoftware.end();
}

/// Writes the arguments whose setting begins with `prefix`, without those of its subsections.
void MegatronWriter::write_direct(const std::string& prefix) {
  for (const KnownName& known : megatron_arguments().all()) {
    if (known.fate != Fate::mapped || known.values == "*" || !known.means.starts_with(prefix)) continue;
    if (known.means.find('.', prefix.size()) != std::string::npos || is_silent(known)) continue;
    const std::string setting = value(known.means);
    // Sizes are written even at their defaults, which other software has otherwise.
    if (setting.empty() || (setting == known.absent && (known.takes == Takes::nothing || setting == "0"))) continue;
    if (known.takes == Takes::nothing) {
      if (setting == known.values) add_switch(known.name, {known.means});
    } else if (known.values.empty()) {
      add(known.name, setting, {known.means});
    } else if (const std::string word = word_for(known.values, setting); !word.empty()) {
      add(known.name, word, {known.means});
    } else {
      note(known.means, fmt::format("--{} has no such value", known.name));
    }
  }
}

MegatronLaunch megatron_launch(const Settings& experiment) {
  return MegatronWriter(experiment).write();
}

}  // namespace manyworlds::experiments::jobs

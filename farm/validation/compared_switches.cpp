#include "farm/validation/compared_switches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/tree/scalar.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Settings;
using experiments::measured::TrainingStep;

/// A setting that has one value before and another after, and the keys that follow from it.
struct Switch {
  const char *family, *key, *before, *after;
  std::vector<const char*> follow;  // beginnings of keys
};

const std::vector<Switch>& switches() {
  static const std::vector<Switch> all{
      {"A100 to H100", "cluster.gpu.name", "a100_80", "h100_sxm", {"cluster.gpu.", "cluster.nic"}},
      {"bf16 to fp8", "strategy.stack.precision", "bf16", "fp8", {}},
      {"mxfp8 to nvfp4", "strategy.stack.precision", "mxfp8", "nvfp4", {"strategy.stack."}},
      {"no recomputation to full", "strategy.recompute", "none", "full", {"strategy.recompute"}},
      {"no recomputation to selective", "strategy.recompute", "none", "selective", {"strategy.recompute"}},
      {"no recomputation to per op", "strategy.recompute", "none", "per_op", {"strategy.recompute"}},
      {"sequence parallelism", "strategy.sequence_parallel", "false", "true", {}},
      {"tensor parallelism overlapped", "strategy.stack.overlap_tensor", "false", "true", {}},
      {"compiled kernels", "strategy.stack.name", "torchtitan-eager", "torchtitan", {"strategy.stack."}},
      {"fused kernels",
       "strategy.stack.bias_dropout_fusion",
       "false",
       "true",
       {"strategy.stack.bias_", "strategy.stack.masked_"}},
      {"experts' exchange beside kernels", "strategy.stack.overlap_experts", "false", "true", {"strategy.stack.name"}},
  };
  return all;
}

std::string value_at(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string() : experiments::import::value_text(found->second);
}

/// Returns the settings as text: those that belong to the switch, or all others. Memory is left out, as rows that ran
/// are given what they need.
std::string settings_text(const Settings& settings, const Switch& one, bool own) {
  std::string text;
  for (const auto& [key, value] : settings) {
    const bool belongs = key == one.key || std::any_of(one.follow.begin(), one.follow.end(),
                                                       [&](const char* begin) { return key.starts_with(begin); });
    if (belongs == own && key != "cluster.gpu.memory_gib")
      text += fmt::format("{}={};", key, experiments::import::value_text(value));
  }
  return text;
}

/// Steps with the same settings, as their mean.
struct Side {
  std::string id;  // of the first
  double measured = 0, predicted = 0, count = 0;
};
/// By the settings of the switch.
using Sides = std::map<std::string, Side>;

void add(Sides& to, const Settings& settings, const Switch& one, const ComparedRow& row) {
  Side& side = to[settings_text(settings, one, true)];
  if (side.count == 0) side.id = row.id;
  side.measured += row.measured, side.predicted += row.predicted, side.count += 1;
}

void add_pairs(std::vector<ComparedRow>& to, const Switch& one, const std::pair<Sides, Sides>& sides) {
  for (const auto& [settings_before, before] : sides.first)
    for (const auto& [settings_after, after] : sides.second) {
      const std::string id = before.id + " / " + after.id;
      to.push_back({id, one.family, id, "", before.measured / before.count / (after.measured / after.count),
                    before.predicted / before.count / (after.predicted / after.count), "x"});
    }
}

}  // namespace

Comparison compare_switches(const std::vector<TrainingStep>& steps, const Comparison& compared) {
  std::map<std::string, const ComparedRow*> row_of;
  for (const ComparedRow& row : compared.rows) row_of.emplace(row.id, &row);
  Comparison result;
  for (const Switch& one : switches()) {
    std::map<std::string, std::pair<Sides, Sides>> groups;  // before and after, by all other settings
    for (const TrainingStep& step : steps) {
      const auto row = row_of.find(step.id);
      if (row == row_of.end()) continue;
      const Settings& settings = step.experiments.back();
      const std::string value = value_at(settings, one.key);
      if (value != one.before && value != one.after) continue;
      auto& [before, after] = groups[step.exclusion_reason + settings_text(settings, one, false)];
      add(value == one.before ? before : after, settings, one, *row->second);
    }
    for (const auto& [others, sides] : groups) add_pairs(result.rows, one, sides);
  }
  return result;
}

}  // namespace manyworlds::farm

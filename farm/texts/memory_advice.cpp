#include "farm/texts/memory_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/options.hpp"
#include "core/base/units.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/model/modules.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/settings/practice.hpp"
#include "experiments/validity/validity.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using core::OptionValue;
using experiments::Experiment;
using experiments::Settings;

constexpr std::size_t kMaxChanges = 3;
constexpr std::int64_t kMaxNodesFactor = 64;

std::int64_t integer_setting(const Settings& settings, const char* key) {
  return std::get<std::int64_t>(settings.at(key));
}

struct SettingChange {
  std::string key;
  OptionValue value;
};

/// Returns changes of one setting that need less memory; changes of the same key exclude each other.
std::vector<SettingChange> memory_saving_changes(const Settings& settings) {
  std::vector<SettingChange> setting_changes;
  for (const std::int64_t stage : {1, 3})
    if (integer_setting(settings, "strategy.zero") < stage) setting_changes.push_back({"strategy.zero", stage});
  const auto& recompute = std::get<std::string>(settings.at("strategy.recompute"));
  const bool fused = std::get<std::string>(settings.at("strategy.stack.attention")) != "unfused";
  if (recompute == "none" && !fused) setting_changes.push_back({"strategy.recompute", std::string("selective")});
  if (recompute != "full") setting_changes.push_back({"strategy.recompute", std::string("full")});
  for (const char* key : {"strategy.tp", "strategy.pp", "strategy.cp"})
    for (const std::int64_t factor : {2, 4, 8})
      setting_changes.push_back({key, integer_setting(settings, key) * factor});
  for (std::int64_t size = integer_setting(settings, "strategy.micro_batch") / 2; size > 0; size /= 2)
    setting_changes.push_back({"strategy.micro_batch", size});
  if (std::get<std::string>(settings.at("strategy.offload_modules")).empty())
    setting_changes.push_back({"strategy.offload_modules", core::join_list(core::workload::offload_module_names())});
  return setting_changes;
}

/// The layouts near a given one, evaluated without simulation.
class Neighbourhood {
 public:
  explicit Neighbourhood(const Experiment& layout)
      : layout_(layout), setting_changes_(memory_saving_changes(layout.settings)) {
    step_s_ = experiments::fitting::closed_form_s(layout.config());
  }

  FittingAdvice nearest() {
    for (std::size_t changes = 1; changes <= kMaxChanges && found_.empty(); ++changes) enumerate(changes, 0, {});
    bool tried_more_nodes = false;
    for (std::int64_t factor = 2; factor <= kMaxNodesFactor && found_.empty(); factor *= 2)
      tried_more_nodes |= evaluate_on_nodes(factor);
    if (found_.empty()) return {{}, std::move(refused_), tried_more_nodes};
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.step_change < b.step_change; });
    return {std::move(found_), {}, false};
  }

 private:
  /// Evaluates the first layout on so many times as many nodes that no rule refuses; returns whether there is one.
  bool evaluate_on_nodes(std::int64_t factor) {
    const SettingChange sharded{"strategy.zero", std::int64_t{3}},
        recomputed{"strategy.recompute", std::string("full")};
    std::optional<experiments::RuleViolation> first;
    for (const auto& savings : {std::vector{sharded, recomputed}, {sharded}, {recomputed}}) {
      std::vector<SettingChange> changes{
          {"cluster.nodes", integer_setting(layout_.settings, "cluster.nodes") * factor},
          {"strategy.global_batch", integer_setting(layout_.settings, "strategy.global_batch") * factor}};
      changes.insert(changes.end(), savings.begin(), savings.end());
      const auto violation = evaluate(changes);
      if (!violation) return true;
      if (!first) first = violation;
    }
    refuse({"cluster.nodes", integer_setting(layout_.settings, "cluster.nodes") * factor}, *first);
    return false;
  }

  void refuse(const SettingChange& change, const experiments::RuleViolation& violation) {
    auto group = std::find_if(refused_.begin(), refused_.end(),
                              [&](const RefusedNeighbours& one) { return one.rule == violation.rule; });
    if (group == refused_.end()) group = refused_.insert(group, {violation.rule, violation.reason, {}});
    group->changes.emplace_back(change.key, change.value);
  }

  void enumerate(std::size_t changes, std::size_t from, const std::vector<SettingChange>& chosen) {
    if (changes == 0) {
      const auto violation = evaluate(chosen);
      if (violation && chosen.size() == 1) refuse(chosen.front(), *violation);
      return;
    }
    for (std::size_t i = from; i < setting_changes_.size(); ++i) {
      if (std::any_of(chosen.begin(), chosen.end(),
                      [&](const SettingChange& one) { return one.key == setting_changes_[i].key; }))
        continue;
      std::vector<SettingChange> more = chosen;
      more.push_back(setting_changes_[i]);
      enumerate(changes - 1, i + 1, more);
    }
  }

  /// Adds the layout with these changes if it fits; returns the rule that refuses it, if one does.
  std::optional<experiments::RuleViolation> evaluate(const std::vector<SettingChange>& setting_changes) {
    Settings settings = layout_.settings;
    for (const SettingChange& move : setting_changes) experiments::change_setting(settings, move.key, move.value);
    const experiments::ExperimentConfig config = experiments::config_of(settings, layout_.inputs);
    if (auto violation = experiments::find_violation(config, graphs_)) return violation;
    const core::step::MemoryRequirement demand = core::step::memory_requirement_of(config.configuration);
    if (demand.required.total() > demand.memory_bytes()) return std::nullopt;
    FittingNeighbour result{{}, demand.required.total(), demand.memory_bytes(), 0};
    for (const SettingChange& move : setting_changes) result.changes.emplace_back(move.key, move.value);
    result.step_change = experiments::fitting::closed_form_s(config) / step_s_ - 1;
    found_.push_back(std::move(result));
    return std::nullopt;
  }

  const Experiment& layout_;
  std::vector<SettingChange> setting_changes_;
  double step_s_ = 0;
  experiments::GraphCache graphs_;
  std::vector<FittingNeighbour> found_;
  std::vector<RefusedNeighbours> refused_;
};

std::string text_of(const OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

std::string changes_text(const FittingNeighbour& one) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : one.changes) parts.push_back(fmt::format("{}={}", key, text_of(value)));
  return fmt::format("{}", fmt::join(parts, " "));
}

/// Returns the changes with the values of a key side by side, as "strategy.tp=2, 4 strategy.zero=3".
std::string changes_text(const RefusedNeighbours& refused) {
  std::string text;
  for (std::size_t i = 0; i < refused.changes.size(); ++i) {
    const auto& [key, value] = refused.changes[i];
    const bool same_key = i > 0 && refused.changes[i - 1].first == key;
    text += same_key ? ", " + text_of(value) : fmt::format("{}{}={}", i > 0 ? " " : "", key, text_of(value));
  }
  return text;
}

std::string none_fitting_text(const FittingAdvice& advice) {
  const std::string beyond =
      advice.tried_more_nodes ? fmt::format(", not even on {} times as many machines", kMaxNodesFactor) : "";
  if (advice.refused.empty()) return fmt::format("no neighbouring layout fits{}\n", beyond);
  std::vector<std::vector<std::string>> lines;
  for (const RefusedNeighbours& one : advice.refused)
    lines.push_back({"", changes_text(one), fmt::format("{}: {}", one.rule, one.reason)});
  return fmt::format("no neighbouring layout that the rules allow fits{}; they refuse\n", beyond) +
         io::align_columns(lines, {true, true, true}, "  ");
}

/// Returns the row of the experiment with the smallest ratio of required to available memory.
std::size_t nearest_to_fit(const io::Results& results) {
  const io::Column *required = results.experiments.find("memory_peak_bytes"),
                   *has = results.experiments.find("gpu_memory_bytes");
  MANYWORLDS_CHECK(required != nullptr && has != nullptr, "results without memory");
  std::size_t best_row = 0;
  const auto excess = [&](std::size_t row) { return required->number_at(row) / has->number_at(row); };
  for (std::size_t row = 1; row < results.experiments.rows(); ++row)
    if (excess(row) < excess(best_row)) best_row = row;
  return best_row;
}

}  // namespace

FittingAdvice fitting_advice(const Experiment& layout, std::size_t max_count) {
  FittingAdvice advice = Neighbourhood(layout).nearest();
  if (advice.neighbours.size() > max_count) advice.neighbours.resize(max_count);
  return advice;
}

std::string fitting_text(const FittingAdvice& advice) {
  if (advice.neighbours.empty()) return none_fitting_text(advice);
  std::vector<std::vector<std::string>> lines{{"change", "peak memory", "step time by closed forms"}};
  for (const FittingNeighbour& one : advice.neighbours)
    lines.push_back({changes_text(one),
                     fmt::format("{:.1f} of {:.1f} GiB", core::gib(static_cast<double>(one.needs_bytes)),
                                 core::gib(static_cast<double>(one.has_bytes))),
                     fmt::format("{:+.1f} %", 100 * one.step_change)});
  return "what would make it fit, the quickest first\n" + io::align_columns(lines, {true, false, false}, "  ");
}

nlohmann::ordered_json fitting_json(const FittingAdvice& advice) {
  auto result = nlohmann::ordered_json::array();
  for (const FittingNeighbour& one : advice.neighbours) {
    nlohmann::ordered_json changes;
    for (const auto& [key, value] : one.changes) changes[key] = experiments::to_json(value);
    result.push_back({{"changes", changes},
                      {"needs_bytes", one.needs_bytes},
                      {"has_bytes", one.has_bytes},
                      {"step_time_change_share", one.step_change}});
  }
  return result;
}

nlohmann::ordered_json refused_json(const FittingAdvice& advice) {
  auto result = nlohmann::ordered_json::array();
  for (const RefusedNeighbours& one : advice.refused) {
    auto changes = nlohmann::ordered_json::array();
    for (const auto& [key, value] : one.changes) changes.push_back({{key, experiments::to_json(value)}});
    result.push_back({{"rule", one.rule}, {"reason", one.reason}, {"changes", changes}});
  }
  return result;
}

bool none_fits(const io::Results& results) {
  const auto counts = results.experiments.counts_of("status");
  const auto lacking = counts.find("out_of_memory");
  return lacking != counts.end() && lacking->second == results.experiments.rows();
}

std::string none_fits_text(const io::Results& results) {
  const std::size_t best_row = nearest_to_fit(results);
  const std::string layout = io::Axes(results).layout(best_row);
  const auto gib = [&](const char* column) { return core::gib(results.experiments.find(column)->number_at(best_row)); };
  return fmt::format("none of {} layouts fits; nearest is experiment {}{}: {:.1f} of {:.1f} GiB\n",
                     results.experiments.rows(), results.experiments.text_at("id", best_row),
                     layout.empty() ? "" : " (" + layout + ")", gib("memory_peak_bytes"), gib("gpu_memory_bytes"));
}

std::string none_fits_text(const io::Results& results, const experiments::Sweep& sweep) {
  return none_fits_text(results) + fitting_text(fitting_advice(sweep.experiments.at(nearest_to_fit(results))));
}

}  // namespace manyworlds::farm

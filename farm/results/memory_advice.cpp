#include "farm/results/memory_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/options.hpp"
#include "core/base/units.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/model/modules.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/rules/validity.hpp"
#include "experiments/settings/practice.hpp"
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

  std::vector<FittingNeighbour> nearest() {
    for (std::size_t changes = 1; changes <= kMaxChanges && found_.empty(); ++changes) enumerate(changes, 0, {});
    for (std::int64_t factor = 2; factor <= kMaxNodesFactor && found_.empty(); factor *= 2)
      evaluate({{"cluster.nodes", integer_setting(layout_.settings, "cluster.nodes") * factor},
                {"strategy.global_batch", integer_setting(layout_.settings, "strategy.global_batch") * factor},
                {"strategy.zero", std::int64_t{3}},
                {"strategy.recompute", std::string("full")}});
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.step_change < b.step_change; });
    return std::move(found_);
  }

 private:
  void enumerate(std::size_t changes, std::size_t from, const std::vector<SettingChange>& chosen) {
    if (changes == 0) return evaluate(chosen);
    for (std::size_t i = from; i < setting_changes_.size(); ++i) {
      if (std::any_of(chosen.begin(), chosen.end(),
                      [&](const SettingChange& one) { return one.key == setting_changes_[i].key; }))
        continue;
      std::vector<SettingChange> more = chosen;
      more.push_back(setting_changes_[i]);
      enumerate(changes - 1, i + 1, more);
    }
  }

  void evaluate(const std::vector<SettingChange>& setting_changes) {
    Settings settings = layout_.settings;
    for (const SettingChange& move : setting_changes) experiments::change_setting(settings, move.key, move.value);
    const experiments::ExperimentConfig config = experiments::config_of(settings, layout_.inputs);
    if (experiments::find_violation(config, graphs_)) return;
    const core::step::MemoryRequirement demand = core::step::memory_requirement_of(config.configuration);
    if (demand.required.total() > demand.memory_bytes()) return;
    FittingNeighbour result{{}, demand.required.total(), demand.memory_bytes(), 0};
    for (const SettingChange& move : setting_changes) result.changes.emplace_back(move.key, move.value);
    result.step_change = experiments::fitting::closed_form_s(config) / step_s_ - 1;
    found_.push_back(std::move(result));
  }

  const Experiment& layout_;
  std::vector<SettingChange> setting_changes_;
  double step_s_ = 0;
  experiments::GraphCache graphs_;
  std::vector<FittingNeighbour> found_;
};

std::string changes_text(const FittingNeighbour& one) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : one.changes)
    parts.push_back(
        fmt::format("{}={}", key, std::visit([](const auto& held) { return fmt::format("{}", held); }, value)));
  return fmt::format("{}", fmt::join(parts, " "));
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

std::vector<FittingNeighbour> fitting_neighbours(const Experiment& layout, std::size_t max_count) {
  std::vector<FittingNeighbour> found = Neighbourhood(layout).nearest();
  if (found.size() > max_count) found.resize(max_count);
  return found;
}

std::string fitting_text(const std::vector<FittingNeighbour>& neighbours) {
  if (neighbours.empty()) return "no neighbouring layout fits, not even on 64 times as many machines\n";
  std::vector<std::vector<std::string>> lines{{"change", "peak memory", "step time by closed forms"}};
  for (const FittingNeighbour& one : neighbours)
    lines.push_back({changes_text(one),
                     fmt::format("{:.1f} of {:.1f} GiB", core::gib(static_cast<double>(one.needs_bytes)),
                                 core::gib(static_cast<double>(one.has_bytes))),
                     fmt::format("{:+.1f} %", 100 * one.step_change)});
  return "what would make it fit, the quickest first\n" + io::align_columns(lines, {true, false, false}, "  ");
}

nlohmann::ordered_json fitting_json(const std::vector<FittingNeighbour>& neighbours) {
  auto result = nlohmann::ordered_json::array();
  for (const FittingNeighbour& one : neighbours) {
    nlohmann::ordered_json changes;
    for (const auto& [key, value] : one.changes) changes[key] = experiments::to_json(value);
    result.push_back({{"changes", changes},
                      {"needs_bytes", one.needs_bytes},
                      {"has_bytes", one.has_bytes},
                      {"step_time_change_share", one.step_change}});
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
  return none_fits_text(results) + fitting_text(fitting_neighbours(sweep.experiments.at(nearest_to_fit(results))));
}

}  // namespace manyworlds::farm

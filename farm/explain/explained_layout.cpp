#include "farm/explain/explained_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/escape.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/config/inputs.hpp"
#include "experiments/key_contents/programs.hpp"
#include "experiments/settings/practice.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/explain/variants.hpp"
#include "farm/texts/memory_advice.hpp"
#include "farm/texts/step_text.hpp"
#include "io/ranking/top.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Experiment;
using experiments::Section;
using experiments::import::value_text;
using Json = nlohmann::ordered_json;

constexpr const char* kSection = "strategy";
constexpr const char* kBatch = "strategy.global_batch";
constexpr const char* kVariant = "variant";

/// Returns why a layout is invalid or cannot be priced; "" if neither.
std::string rejection_reason(const Experiment& experiment, experiments::GraphCache& graphs) {
  const auto config = experiment.config();
  if (const auto broken = experiments::find_violation(config, graphs))
    return fmt::format("violates rule {}: {}", broken->rule, broken->reason);
  if (!experiment.inputs) return "";
  const auto kernels = experiments::unmeasured_kernels(experiment.settings, *experiment.inputs);
  return kernels.empty() ? "" : fmt::format("{} of its kernels are not measured", kernels.size());
}

/// Settings whose neighbouring values are half and twice the value.
constexpr std::array<const char*, 5> kDoubling{"strategy.tp", "strategy.pp", "strategy.cp", "strategy.ep",
                                               "strategy.micro_batch"};
constexpr const char* kChunks = "strategy.virtual_stages";

/// Enumerates the layouts that differ from a given one in one choice.
class VariantEnumerator {
 public:
  explicit VariantEnumerator(const Experiment& layout) : layout_(layout) {}

  std::vector<Variant> all() {
    const Section* strategy = experiments::find_section(experiments::config_schema().subsections, kSection);
    MANYWORLDS_CHECK(strategy, "no section '{}'", kSection);
    add_section_variants(*strategy, kSection);
    return std::move(variants_);
  }

  Experiment experiment_of(const Variant& variant) const {
    Experiment result = layout_;
    experiments::change_setting(result.settings, variant.key, variant.candidate);
    return result;
  }

 private:
  void add_section_variants(const Section& section, const std::string& path) {
    for (const core::OptionInfo& info : section.options) {
      const std::string key = path + "." + info.name;
      if (layout_.settings.count(key) == 0 || !experiments::has_default(info) || key == kBatch) continue;
      if (!section.catalog.empty() && info.name == "name") continue;  // names what was copied; not a setting of its own
      add_variants(key, info);
    }
    for (const Section& child : section.subsections) add_section_variants(child, path + "." + child.name);
  }

  void add_variants(const std::string& key, const core::OptionInfo& info) {
    const core::OptionValue& value = layout_.settings.at(key);
    if (std::find(kDoubling.begin(), kDoubling.end(), key) != kDoubling.end()) {
      const auto size = std::get<std::int64_t>(value);
      if (size % 2 == 0) add_valid(key, size / 2);
      add_valid(key, size * 2);
    } else if (key == kChunks && value != info.default_value) {
      const auto chunks = std::get<std::int64_t>(value);
      for (std::int64_t fewer = chunks - 1; fewer > 0 && !add_valid(key, fewer);) --fewer;
      for (std::int64_t more = chunks + 1; more <= 2 * chunks && !add_valid(key, more);) ++more;
    } else if (key == "strategy.zero") {
      for (const std::int64_t stage : {0, 1, 3})
        if (value != core::OptionValue(stage)) add_valid(key, stage);
    } else if (key == "strategy.recompute") {
      const bool torchtitan = layout_.settings.text("strategy.stack.name").starts_with("torchtitan");
      for (const std::string& choice : info.choices)  // other software does not recompute op by op
        if (value != core::OptionValue(choice) && (choice != "per_op" || torchtitan)) add_valid(key, choice);
    } else if (value != info.default_value) {
      add(key, info.default_value);
    }
  }

  Variant variant(const std::string& key, core::OptionValue candidate) {
    Variant result{key, layout_.settings.at(key), std::move(candidate), {}, "", {}};
    const Experiment changed = experiment_of(result);
    for (const auto& [other, value] : changed.settings)
      if (other != key && layout_.settings.at(other) != value) result.implied_changes.add(other, value);
    result.rejection_reason = rejection_reason(changed, graphs_);
    return result;
  }

  void add(const std::string& key, core::OptionValue candidate) {
    variants_.push_back(variant(key, std::move(candidate)));
  }

  bool add_valid(const std::string& key, core::OptionValue candidate) {
    Variant result = variant(key, std::move(candidate));
    if (!result.rejection_reason.empty()) return false;
    variants_.push_back(std::move(result));
    return true;
  }

  const Experiment& layout_;
  experiments::GraphCache graphs_;
  std::vector<Variant> variants_;
};

double exposed_s(const ResultRow& row) {
  double sum = 0;
  for (const core::workload::StepPartInfo& part : core::workload::kStepParts)
    if (part.activity == core::workload::Activity::communication) sum += row.number(std::string(part.column));
  return sum;
}

/// The effect of a variant, or the reason why it is unknown.
struct Effect {
  std::string unknown;
  double step_s = 0, step_share = 0, exposed_s = 0, memory_bytes = 0;
  bool timed = false;
};

Effect effect_of(const Explained& explained, const Variant& variant) {
  Effect result;
  if (!variant.experiment) {
    result.unknown = variant.rejection_reason;
    return result;
  }
  const ResultRow before{explained.results.experiments, 0}, after{explained.results.experiments, *variant.experiment};
  result.memory_bytes = after.number("memory_peak_bytes") - before.number("memory_peak_bytes");
  result.timed = before.ran() && after.ran();
  if (after.text("status") == "out_of_memory")
    result.unknown = fmt::format("does not fit: {} of {}", gib_text(after.number("memory_peak_bytes")),
                                 gib_text(after.number("gpu_memory_bytes")));
  else if (!after.ran())
    result.unknown = fmt::format("{}: {}", after.text("status"), after.text("reason"));
  if (!result.timed) return result;
  result.step_s = after.number("step_time_s") - before.number("step_time_s");
  result.step_share = result.step_s / before.number("step_time_s");
  result.exposed_s = exposed_s(after) - exposed_s(before);
  return result;
}

std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "" : "+") + io::with_si_prefix(seconds, "s");
}

std::string along_text(const Variant& variant) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : variant.implied_changes)
    parts.push_back(fmt::format("{}={}", key.substr(key.rfind('.') + 1), value_text(value)));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string variants_text(const Explained& explained) {
  if (experiments::has_programs(explained.layout.settings))
    return "no choices to change: programs are given in place of a strategy\n";
  std::vector<std::vector<std::string>> lines{
      {"key", "value", "variant", "implied changes", "step time", "", "exposed", "peak memory", ""}};
  for (const Variant& variant : explained.variants) {
    const Effect effect = effect_of(explained, variant);
    std::vector<std::string> line{
        variant.key,   value_text(variant.value), value_text(variant.candidate), along_text(variant), "", "", "", "",
        effect.unknown};
    if (effect.timed) {
      line[4] = signed_seconds(effect.step_s);
      line[5] = fmt::format("{:+.1f} %", 100 * effect.step_share);
      line[6] = signed_seconds(effect.exposed_s);
    }
    if (variant.experiment) line[7] = fmt::format("{:+.2f} GiB", effect.memory_bytes / (1 << 30));
    lines.push_back(std::move(line));
  }
  return "effect of changing one choice\n" +
         io::align_columns(lines, {true, true, true, true, false, false, false, false, true}, "  ");
}

std::string refused_text(const experiments::RuleViolations& violations) {
  std::string text;
  for (const experiments::RuleViolation& one : violations.broken)
    text += fmt::format("  {}: {}\n    key: {}\n    source: {}\n", one.rule, one.reason, one.key, one.source);
  if (!violations.skipped.empty())
    text += fmt::format("not checked because they depend on these: {}\n", fmt::join(violations.skipped, ", "));
  return text;
}

std::string refused_heading(const Explained& explained, const std::string& name) {
  return fmt::format("{}: refused; {} broken\n", core::line_text(name),
                     explained.violations.broken.size() == 1
                         ? "one rule is"
                         : fmt::format("{} rules are", explained.violations.broken.size()));
}

std::string heading(const ResultRow& row, const std::string& name) {
  std::string text = fmt::format("{}: {}{}\n", core::line_text(name), row.text("status"),
                                 row.text("reason").empty() ? "" : " (" + row.text("reason") + ")");
  const std::string fidelity = row.text("fidelity");
  return text + fmt::format("fidelity          {}{}\n", fidelity,
                            fidelity == "analytic"
                                ? ": step times are lower bounds, as nothing waits for anything on a link"
                                : "");
}

bool is_too_large_for_memory(const io::Results& results) {
  return ResultRow{results.experiments, 0}.text("status") == "out_of_memory";
}

Json as_json(const core::OptionValue& value) {
  return Json(experiments::to_json(value));
}

Json row_json(const ResultRow& row) {
  Json result;
  for (const io::Column& column : row.table.columns)
    std::visit([&](const auto& values) { result[column.name] = values.at(row.row); }, column.values);
  return result;
}

}  // namespace

Explained explain(const Experiment& layout) {
  Explained result;
  result.layout = layout;
  result.layout.id = 0;
  experiments::GraphCache graphs;
  result.violations = experiments::find_violations(layout.config(), graphs);
  if (!result.violations.broken.empty()) return result;
  VariantEnumerator choices(result.layout);
  if (!experiments::has_programs(result.layout.settings)) result.variants = choices.all();
  result.sweep = variants_of(result.layout, "explain", {kVariant, "the changed choice"},
                             "a layout and its variants, each with one choice changed");
  for (Variant& variant : result.variants) {
    if (!variant.rejection_reason.empty()) continue;
    variant.experiment = add_variant(result.sweep, choices.experiment_of(variant),
                                     fmt::format("{}={}", variant.key, value_text(variant.candidate)));
  }
  return result;
}

void run_variants(Explained& explained, const TaskProgress& on_progress) {
  explained.results = simulate_here(explained.sweep, on_progress);
}

std::string layout_text(const Experiment& layout, const io::Results& results, const std::string& name) {
  const ResultRow row{results.experiments, 0};
  std::string text = heading(row, name) + split_text(layout);
  if (row.ran()) {
    text += fmt::format("step time         {:.6f} s\n", row.number("step_time_s")) + interval_text(row) +
            throughput_text(row) + breakdown_text(row) + time_basis_text(row);
  }
  text += memory_text(row, layout);
  if (is_too_large_for_memory(results)) text += fitting_text(fitting_advice(layout));
  return text;
}

std::string explained_text(const Explained& explained, const std::string& name) {
  if (!explained.violations.broken.empty())
    return refused_heading(explained, name) + refused_text(explained.violations);
  return layout_text(explained.layout, explained.results, name) + variants_text(explained);
}

Json explained_json(const Explained& explained, const std::string& name) {
  Json result{{"name", name}, {"refused", !explained.violations.broken.empty()}};
  if (!explained.violations.broken.empty()) {
    result["rules"] = Json::array();
    for (const experiments::RuleViolation& one : explained.violations.broken)
      result["rules"].push_back({{"rule", one.rule},
                                 {"key", one.key},
                                 {"reason", one.reason},
                                 {"values", one.values},
                                 {"source", one.source}});
    result["not_asked"] = explained.violations.skipped;
    return result;
  }
  result["layout"] = row_json({explained.results.experiments, 0});
  result["layout"].erase(kVariant);
  if (is_too_large_for_memory(explained.results)) {
    const FittingAdvice advice = fitting_advice(explained.layout);
    result["would_fit"] = fitting_json(advice);
    if (!advice.refused.empty()) result["refused_neighbours"] = refused_json(advice);
  }
  result["variants"] = Json::array();
  for (const Variant& variant : explained.variants) {
    const Effect effect = effect_of(explained, variant);
    Json one{{"key", variant.key},
             {"value", as_json(variant.value)},
             {"instead", as_json(variant.candidate)},
             {"along", Json::object()}};
    for (const auto& [key, value] : variant.implied_changes) one["along"][key] = as_json(value);
    if (!effect.unknown.empty()) one["why_not"] = effect.unknown;
    if (effect.timed) {
      one["step_time_change_s"] = effect.step_s;
      one["step_time_change_share"] = effect.step_share;
      one["exposed_change_s"] = effect.exposed_s;
    }
    if (variant.experiment) one["memory_change_bytes"] = static_cast<std::int64_t>(effect.memory_bytes);
    result["variants"].push_back(std::move(one));
  }
  return result;
}

}  // namespace manyworlds::farm

#include "farm/results/explained_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "experiments/config/inputs.hpp"
#include "experiments/config/vocabulary.hpp"
#include "experiments/settings/practice.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "farm/results/answer_tables.hpp"
#include "farm/results/memory_advice.hpp"
#include "farm/results/step_text.hpp"
#include "farm/worker/simulating_worker.hpp"
#include "io/ranking/top.hpp"
#include "io/results/figures.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Branch;
using experiments::Experiment;
using Json = nlohmann::ordered_json;

constexpr const char* kSection = "strategy";
constexpr const char* kBatch = "strategy.global_batch";
constexpr const char* kVariant = "variant";

/// The parts of a step in which ranks wait for communication.
constexpr std::array<const char*, 5> kExposed{"exposed_tp_s", "exposed_dp_s", "exposed_pp_s", "exposed_cp_s",
                                              "exposed_ep_s"};

std::string text_of(const core::OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

/// Why a layout cannot be; empty: it can.
std::string why_not(const Experiment& experiment, experiments::GraphCache& graphs) {
  const auto world = experiments::world_of(experiment.settings, experiment.inputs);
  if (const auto broken = experiments::find_violation(world, graphs))
    return fmt::format("breaks rule {}: {}", broken->rule, broken->reason);
  if (!experiment.inputs) return "";
  const auto kernels = experiments::unmeasured_kernels(experiment.settings, *experiment.inputs);
  return kernels.empty() ? "" : fmt::format("{} of its kernels are not measured", kernels.size());
}

/// Sizes whose neighbours are half and twice as much.
constexpr std::array<const char*, 5> kDoubling{"strategy.tp", "strategy.pp", "strategy.cp", "strategy.ep",
                                               "strategy.micro_batch"};
constexpr const char* kChunks = "strategy.virtual_stages";

/// The layouts that differ from one in one choice.
class Choices {
 public:
  explicit Choices(const Experiment& layout) : layout_(layout) {}

  std::vector<Variant> all() {
    const Branch* strategy = experiments::find_branch(experiments::vocabulary().branches, kSection);
    MANYWORLDS_CHECK(strategy, "no section '{}'", kSection);
    add_of(*strategy, kSection);
    return std::move(made_);
  }

  Experiment experiment_of(const Variant& variant) const {
    Experiment made = layout_;
    experiments::change(made.settings, variant.key, variant.instead);
    return made;
  }

 private:
  void add_of(const Branch& branch, const std::string& path) {
    for (const core::OptionInfo& info : branch.options) {
      const std::string key = path + "." + info.name;
      if (layout_.settings.count(key) == 0 || !experiments::has_default(info) || key == kBatch) continue;
      if (!branch.catalog.empty() && info.name == "name") continue;  // of what was copied, not a setting of its own
      add_variants(key, info);
    }
    for (const Branch& child : branch.branches) add_of(child, path + "." + child.name);
  }

  void add_variants(const std::string& key, const core::OptionInfo& info) {
    const core::OptionValue& value = layout_.settings.at(key);
    if (std::find(kDoubling.begin(), kDoubling.end(), key) != kDoubling.end()) {
      const auto size = std::get<std::int64_t>(value);
      if (size % 2 == 0) add_valid(key, size / 2);
      add_valid(key, size * 2);
    } else if (key == kChunks && value != info.fallback) {
      const auto chunks = std::get<std::int64_t>(value);
      for (std::int64_t fewer = chunks - 1; fewer > 0 && !add_valid(key, fewer);) --fewer;
      for (std::int64_t more = chunks + 1; more <= 2 * chunks && !add_valid(key, more);) ++more;
    } else if (key == "strategy.zero") {
      for (const std::int64_t stage : {0, 1, 3})
        if (value != core::OptionValue(stage)) add_valid(key, stage);
    } else if (key == "strategy.recompute") {
      for (const std::string& choice : info.choices)
        if (value != core::OptionValue(choice)) add_valid(key, choice);
    } else if (value != info.fallback) {
      add(key, info.fallback);
    }
  }

  Variant variant(const std::string& key, core::OptionValue instead) {
    Variant made{key, layout_.settings.at(key), std::move(instead), {}, "", {}};
    const Experiment changed = experiment_of(made);
    for (const auto& [other, value] : changed.settings)
      if (other != key && layout_.settings.at(other) != value) made.along.emplace(other, value);
    made.why_not = why_not(changed, graphs_);
    return made;
  }

  void add(const std::string& key, core::OptionValue instead) { made_.push_back(variant(key, std::move(instead))); }

  bool add_valid(const std::string& key, core::OptionValue instead) {
    Variant made = variant(key, std::move(instead));
    if (!made.why_not.empty()) return false;
    made_.push_back(std::move(made));
    return true;
  }

  const Experiment& layout_;
  experiments::GraphCache graphs_;
  std::vector<Variant> made_;
};

double exposed_s(const AnswerRow& row) {
  double sum = 0;
  for (const char* part : kExposed) sum += row.number(part);
  return sum;
}

/// What a variant brings, or why nobody knows.
struct Effect {
  std::string unknown;
  double step_s = 0, step_share = 0, exposed_s = 0, memory_bytes = 0;
  bool timed = false;
};

Effect effect_of(const Explained& explained, const Variant& variant) {
  Effect made;
  if (!variant.experiment) {
    made.unknown = variant.why_not;
    return made;
  }
  const AnswerRow before{explained.results.experiments, 0}, after{explained.results.experiments, *variant.experiment};
  made.memory_bytes = after.number("memory_peak_bytes") - before.number("memory_peak_bytes");
  made.timed = before.ran() && after.ran();
  if (after.text("status") == "out_of_memory")
    made.unknown = fmt::format("does not fit: {} of {}", gib_text(after.number("memory_peak_bytes")),
                               gib_text(after.number("gpu_memory_bytes")));
  else if (!after.ran())
    made.unknown = fmt::format("{}: {}", after.text("status"), after.text("reason"));
  if (!made.timed) return made;
  made.step_s = after.number("step_time_s") - before.number("step_time_s");
  made.step_share = made.step_s / before.number("step_time_s");
  made.exposed_s = exposed_s(after) - exposed_s(before);
  return made;
}

std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "" : "+") + io::with_prefix(seconds, "s");
}

std::string along_text(const Variant& variant) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : variant.along)
    parts.push_back(fmt::format("{}={}", key.substr(key.rfind('.') + 1), text_of(value)));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string variants_text(const Explained& explained) {
  std::vector<std::vector<std::string>> lines{
      {"key", "value", "instead", "and with it", "step time", "", "exposed", "peak memory", ""}};
  for (const Variant& variant : explained.variants) {
    const Effect effect = effect_of(explained, variant);
    std::vector<std::string> line{
        variant.key, text_of(variant.value), text_of(variant.instead), along_text(variant), "", "", "",
        "",          effect.unknown};
    if (effect.timed) {
      line[4] = signed_seconds(effect.step_s);
      line[5] = fmt::format("{:+.1f} %", 100 * effect.step_share);
      line[6] = signed_seconds(effect.exposed_s);
    }
    if (variant.experiment) line[7] = fmt::format("{:+.2f} GiB", effect.memory_bytes / (1 << 30));
    lines.push_back(std::move(line));
  }
  return "what one choice made otherwise changes\n" +
         io::aligned(lines, {true, true, true, true, false, false, false, false, true}, "  ");
}

std::string refused_text(const experiments::Violations& violations) {
  std::string text;
  for (const experiments::Violation& one : violations.broken)
    text += fmt::format("  {}: {}\n    key: {}\n    source: {}\n", one.rule, one.reason, one.key, one.source);
  if (!violations.not_asked.empty())
    text += fmt::format("not checked because they depend on these: {}\n", fmt::join(violations.not_asked, ", "));
  return text;
}

std::string heading(const Explained& explained, const std::string& name) {
  if (!explained.violations.broken.empty())
    return fmt::format("{}: refused; {} broken\n", name,
                       explained.violations.broken.size() == 1
                           ? "one rule is"
                           : fmt::format("{} rules are", explained.violations.broken.size()));
  const AnswerRow row{explained.results.experiments, 0};
  std::string text = fmt::format("{}: {}{}\n", name, row.text("status"),
                                 row.text("reason").empty() ? "" : " (" + row.text("reason") + ")");
  const bool analytic = row.text("fidelity") == "analytic";
  return text + fmt::format("fidelity          {}\n", analytic ? "analytic: step times are lower bounds, as nothing "
                                                                 "waits for anything on a link"
                                                               : "packet");
}

bool is_too_large_for_memory(const Explained& explained) {
  return AnswerRow{explained.results.experiments, 0}.text("status") == "out_of_memory";
}

Json as_json(const core::OptionValue& value) {
  return Json(experiments::to_json(value));
}

Json row_json(const AnswerRow& row) {
  Json made;
  for (const io::Column& column : row.table.columns)
    std::visit([&](const auto& values) { made[column.name] = values.at(row.row); }, column.values);
  return made;
}

}  // namespace

Explained explain(const Experiment& layout) {
  Explained made;
  made.layout = layout;
  made.layout.id = 0;
  experiments::GraphCache graphs;
  made.violations = experiments::find_violations(experiments::world_of(layout.settings, layout.inputs), graphs);
  if (!made.violations.broken.empty()) return made;
  Choices choices(made.layout);
  made.variants = choices.all();
  made.sweep.name = "explain";
  made.sweep.objective = "step_time_s";
  made.sweep.text = "a layout and each of its choices made otherwise";
  made.sweep.columns = {{kVariant, core::OptionInfo::Kind::text, "", "the choice that is made otherwise"}};
  made.sweep.inputs = layout.inputs ? layout.inputs : std::make_shared<const experiments::Inputs>();
  made.sweep.experiments.push_back(made.layout);
  made.sweep.experiments.front().axes = {std::string()};
  for (Variant& variant : made.variants) {
    if (!variant.why_not.empty()) continue;
    variant.experiment = made.sweep.experiments.size();
    Experiment experiment = choices.experiment_of(variant);
    experiment.id = static_cast<std::uint32_t>(*variant.experiment);
    experiment.axes = {fmt::format("{}={}", variant.key, text_of(variant.instead))};
    made.sweep.experiments.push_back(std::move(experiment));
  }
  return made;
}

void run_variants(Explained& explained, const std::function<void(std::size_t, std::size_t)>& told) {
  const SweepJob job(frozen_job(explained.sweep, {}));
  SweepRunner runner(job.common());
  std::vector<Outcome> outcomes;
  for (std::uint32_t task = 0; task < job.tasks().size(); ++task) {
    told(task, job.tasks().size());
    std::vector<std::string> inputs;
    std::optional<Outcome> failed;
    for (const std::uint32_t input : job.tasks()[task].inputs) {
      if (!outcomes[input].ok()) failed = outcomes[input];
      inputs.push_back(outcomes[input].bytes);
    }
    outcomes.push_back(failed ? *failed : run_guarded(runner, job.order(task), inputs));
  }
  explained.results =
      answer_of(explained.sweep, job.plan(), [&](std::uint32_t task) -> const Outcome& { return outcomes.at(task); });
}

std::string explained_text(const Explained& explained, const std::string& name) {
  std::string text = heading(explained, name);
  if (!explained.violations.broken.empty()) return text + refused_text(explained.violations);
  const AnswerRow row{explained.results.experiments, 0};
  if (row.ran()) {
    text += fmt::format("step time         {:.6f} s\n{}tokens/s/GPU      {:.1f}\nMFU               {:.1f} % of {}\n",
                        row.number("step_time_s"), interval_text(row), row.number("tokens_per_s_per_gpu"),
                        100 * row.number("mfu"), io::mfu_peak(row.table, row.row));
    text += breakdown_text(row);
  }
  text += memory_text(row, explained.layout);
  if (is_too_large_for_memory(explained)) text += fitting_text(fitting_neighbours(explained.layout));
  return text + variants_text(explained);
}

Json explained_json(const Explained& explained, const std::string& name) {
  Json made{{"name", name}, {"refused", !explained.violations.broken.empty()}};
  if (!explained.violations.broken.empty()) {
    made["rules"] = Json::array();
    for (const experiments::Violation& one : explained.violations.broken)
      made["rules"].push_back({{"rule", one.rule},
                               {"key", one.key},
                               {"reason", one.reason},
                               {"values", one.values},
                               {"source", one.source}});
    made["not_asked"] = explained.violations.not_asked;
    return made;
  }
  made["layout"] = row_json({explained.results.experiments, 0});
  made["layout"].erase(kVariant);
  if (is_too_large_for_memory(explained)) made["would_fit"] = fitting_json(fitting_neighbours(explained.layout));
  made["variants"] = Json::array();
  for (const Variant& variant : explained.variants) {
    const Effect effect = effect_of(explained, variant);
    Json one{{"key", variant.key},
             {"value", as_json(variant.value)},
             {"instead", as_json(variant.instead)},
             {"along", Json::object()}};
    for (const auto& [key, value] : variant.along) one["along"][key] = as_json(value);
    if (!effect.unknown.empty()) one["why_not"] = effect.unknown;
    if (effect.timed) {
      one["step_time_change_s"] = effect.step_s;
      one["step_time_change_share"] = effect.step_share;
      one["exposed_change_s"] = effect.exposed_s;
    }
    if (variant.experiment) one["memory_change_bytes"] = static_cast<std::int64_t>(effect.memory_bytes);
    made["variants"].push_back(std::move(one));
  }
  return made;
}

}  // namespace manyworlds::farm

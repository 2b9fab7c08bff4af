#include "farm/explained_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "experiments/inputs.hpp"
#include "experiments/vocabulary.hpp"
#include "farm/answer_tables.hpp"
#include "farm/memory_advice.hpp"
#include "farm/simulating_worker.hpp"
#include "farm/step_text.hpp"
#include "farm/sweep_job.hpp"
#include "farm/sweep_runner.hpp"
#include "io/figures.hpp"
#include "io/top.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Branch;
using experiments::Experiment;
using Json = nlohmann::ordered_json;

constexpr const char* kSection = "strategy";
constexpr const char* kBatch = "strategy.global_batch";

/// The parts of a step in which ranks wait for communication.
constexpr std::array<const char*, 5> kExposed{"exposed_tp_s", "exposed_dp_s", "exposed_pp_s", "exposed_cp_s",
                                              "exposed_ep_s"};

std::string text_of(const core::OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

void add_changed(const Branch& branch, const std::string& path, const experiments::Settings& settings,
                 std::vector<TurnedBack>& to) {
  for (const core::OptionInfo& info : branch.options) {
    const std::string key = path + "." + info.name;
    const auto found = settings.find(key);
    if (found == settings.end() || !experiments::has_default(info) || key == kBatch) continue;
    if (!branch.catalog.empty() && info.name == "name") continue;  // of what was copied, not a setting of its own
    if (found->second != info.fallback) to.push_back({key, found->second, info.fallback, "", {}});
  }
  for (const Branch& child : branch.branches) add_changed(child, path + "." + child.name, settings, to);
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

double exposed_s(const AnswerRow& row) {
  double sum = 0;
  for (const char* part : kExposed) sum += row.number(part);
  return sum;
}

/// What turning a key back brings, or why nobody knows.
struct Change {
  std::string unknown;
  double step_s = 0, step_share = 0, exposed_s = 0, memory_bytes = 0;
  bool timed = false;
};

Change change_of(const Explained& explained, const TurnedBack& key) {
  Change made;
  if (!key.experiment) {
    made.unknown = key.why_not;
    return made;
  }
  const AnswerRow before{explained.results.experiments, 0}, after{explained.results.experiments, *key.experiment};
  made.memory_bytes = after.number("memory_peak_bytes") - before.number("memory_peak_bytes");
  made.timed = before.ran() && after.ran();
  if (!after.ran()) made.unknown = fmt::format("{}: {}", after.text("status"), after.text("reason"));
  if (!made.timed) return made;
  made.step_s = after.number("step_time_s") - before.number("step_time_s");
  made.step_share = made.step_s / before.number("step_time_s");
  made.exposed_s = exposed_s(after) - exposed_s(before);
  return made;
}

std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "" : "+") + io::with_prefix(seconds, "s");
}

std::string keys_text(const Explained& explained) {
  if (explained.keys.empty()) return "every key of the strategy but global_batch is at its default\n";
  std::vector<std::vector<std::string>> lines{
      {"key", "value", "default", "step time", "", "exposed", "peak memory", ""}};
  for (const TurnedBack& key : explained.keys) {
    const Change change = change_of(explained, key);
    std::vector<std::string> line{key.key, text_of(key.value), text_of(key.fallback), "", "", "", "", change.unknown};
    if (change.timed) {
      line[3] = signed_seconds(change.step_s);
      line[4] = fmt::format("{:+.1f} %", 100 * change.step_share);
      line[5] = signed_seconds(change.exposed_s);
    }
    if (key.experiment) line[6] = fmt::format("{:+.2f} GiB", change.memory_bytes / (1 << 30));
    lines.push_back(std::move(line));
  }
  return "what changes if one key alone goes back to its default\n" +
         io::aligned(lines, {true, true, true, false, false, false, false, true}, "  ");
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
  const Branch* strategy = experiments::find_branch(experiments::vocabulary().branches, kSection);
  MANYWORLDS_CHECK(strategy, "no section '{}'", kSection);
  add_changed(*strategy, kSection, layout.settings, made.keys);
  made.variants.name = "explain";
  made.variants.objective = "step_time_s";
  made.variants.text = "a layout and each of its choices turned back";
  made.variants.columns = {{"turned_back", core::OptionInfo::Kind::text, "", "the key that is at its default instead"}};
  made.variants.inputs = layout.inputs ? layout.inputs : std::make_shared<const experiments::Inputs>();
  made.variants.experiments.push_back(made.layout);
  made.variants.experiments.front().axes = {std::string()};
  for (TurnedBack& key : made.keys) {
    Experiment variant = made.layout;
    variant.settings[key.key] = key.fallback;
    key.why_not = why_not(variant, graphs);
    if (!key.why_not.empty()) continue;
    key.experiment = made.variants.experiments.size();
    variant.id = static_cast<std::uint32_t>(*key.experiment);
    variant.axes = {key.key};
    made.variants.experiments.push_back(std::move(variant));
  }
  return made;
}

void run_variants(Explained& explained, const std::function<void(std::size_t, std::size_t)>& told) {
  const SweepJob job(frozen_job(explained.variants, {}));
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
  explained.results = answer_of(explained.variants, job.plan(),
                                [&](std::uint32_t task) -> const Outcome& { return outcomes.at(task); });
}

std::string explained_text(const Explained& explained, const std::string& name) {
  std::string text = heading(explained, name);
  if (!explained.violations.broken.empty()) return text + refused_text(explained.violations);
  const AnswerRow row{explained.results.experiments, 0};
  if (row.ran()) {
    text += fmt::format("step time         {:.6f} s\ntokens/s/GPU      {:.1f}\nMFU               {:.1f} % of {}\n",
                        row.number("step_time_s"), row.number("tokens_per_s_per_gpu"), 100 * row.number("mfu"),
                        io::mfu_peak(row.table, row.row));
    text += breakdown_text(row);
  }
  text += memory_text(row, explained.layout);
  if (is_too_large_for_memory(explained)) text += fitting_text(fitting_neighbours(explained.layout));
  return text + keys_text(explained);
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
  made["layout"].erase("turned_back");
  if (is_too_large_for_memory(explained)) made["would_fit"] = fitting_json(fitting_neighbours(explained.layout));
  made["keys"] = Json::array();
  for (const TurnedBack& key : explained.keys) {
    const Change change = change_of(explained, key);
    Json one{{"key", key.key}, {"value", as_json(key.value)}, {"default", as_json(key.fallback)}};
    if (!change.unknown.empty()) one["why_not"] = change.unknown;
    if (change.timed) {
      one["step_time_change_s"] = change.step_s;
      one["step_time_change_share"] = change.step_share;
      one["exposed_change_s"] = change.exposed_s;
    }
    if (key.experiment) one["memory_change_bytes"] = static_cast<std::int64_t>(change.memory_bytes);
    made["keys"].push_back(std::move(one));
  }
  return made;
}

}  // namespace manyworlds::farm

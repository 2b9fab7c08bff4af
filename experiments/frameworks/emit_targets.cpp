#include "experiments/frameworks/emit_targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/bridge/bridge.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/deepspeed/deepspeed.hpp"
#include "experiments/frameworks/read_back.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/megatron_launch/megatron_launch.hpp"
#include "experiments/model_keys/carried.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/primus/primus.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/torchtitan/torchtitan.hpp"

namespace manyworlds::experiments::jobs {
namespace {

std::int64_t gpus_of(const Settings& experiment) {
  return config_of(experiment).cluster.gpus();
}

/// Returns the line that tells that an experiment is of other software than the job that was emitted from it.
std::string other_stack_text(const Settings& experiment, const Job& job) {
  const std::string own = experiment.text("strategy.stack.name");
  if (own == job.stack) return "";
  return fmt::format("the step time is that of the stack {}; this file is one of the stack {}, with times of its own",
                     own.empty() ? "of its settings" : own, job.stack);
}

/// Returns what a job that was just emitted is as an experiment, beside `experiment`.
std::vector<std::string> read_back_notes(const Settings& read_back, const EmittedJob& emitted,
                                         const Settings& experiment) {
  std::vector<std::string> notes;
  for (const auto& [key, value, other] : differences(experiment, read_back)) {
    if (key == "model.teacher") continue;  // noted below, without its sizes
    const std::string begin = key + " ";
    const bool told = std::any_of(emitted.notes.begin(), emitted.notes.end(),
                                  [&](const std::string& note) { return note.starts_with(begin); });
    if (!told) notes.push_back(fmt::format("{} {}: such a job has {}", key, value, other));
  }
  if (config_of(experiment).configuration.model.documents)
    notes.push_back("documents: such a job has one in each sample");
  if (config_of(experiment).configuration.model.teacher)
    notes.push_back("model.teacher: such a job has none; it trains the student alone, by the cross entropy");
  return notes;
}

/// Returns what neither an experiment nor the job that was emitted from it says of the model, and the framework has a
/// default for.
std::vector<std::string> unknown_of_model(const Settings& experiment, const Settings& emitted) {
  std::vector<std::string> unknown{"norm-epsilon"};
  if (config_of(experiment).configuration.model.position == core::workload::Position::rotary)
    unknown.insert(unknown.begin(), "rotary-base");
  std::erase_if(unknown, [&](const std::string& name) {
    const auto carries = [&](const Settings& one) {
      const auto carried = models::carried_in(one.text(models::kCarriedKey));
      return std::any_of(carried.begin(), carried.end(), [&](const auto& each) { return each.name == name; });
    };
    return carries(experiment) || carries(emitted);
  });
  for (std::string& name : unknown) name += fmt::format(": --set \"{}={}=VALUE\"", models::kCarriedKey, name);
  return unknown;
}

/// Throws InputError for what of a model no target writes.
void require_written(const Settings& experiment, const EmitTarget& target) {
  const auto refuse = [&](const char* key, const std::string& value) {
    throw core::InputError(fmt::format("'{}' is {}, which is not written for {}", key, value, target.framework),
                           "--emit");
  };
  if (!experiment.text("model.architecture").empty()) refuse("model.architecture", "given");
  if (const std::string inference = experiment.text("model.inference"); inference != "none")
    refuse("model.inference", inference);
  const std::string activation = experiment.text("model.activation"), position = experiment.text("model.position");
  if (activation != "gelu" && activation != "swiglu") refuse("model.activation", activation);
  if (position == "none") refuse("model.position", position);
}

}  // namespace

const std::vector<EmitTarget>& emit_targets() {
  static const std::vector<EmitTarget> targets{
      {"megatron", "a launch script of Megatron-LM", emit_megatron, "train.sh", "megatron-core", "Megatron-LM",
       "megatron-"},
      {"bridge", "a launch script of Megatron-Bridge", emit_bridge, "train.sh", "megatron-core", "Megatron-Bridge",
       "megatron-bridge"},
      {"nemo", "a YAML file of NeMo", emit_nemo, "nemo.yaml", "nemo", "NeMo", "nemo"},
      {"primus", "an experiment of Primus", emit_primus, "primus.yaml", "primus", "Primus", "primus"},
      {"torchtitan",
       "a TOML file of torchtitan v0.2.2",
       emit_torchtitan,
       "job.toml",
       "torchtitan",
       "torchtitan",
       "torch",
       {"strategy.zero == 3", "model.experts == 0 or strategy.ep > 1 or strategy.etp == strategy.tp"}},
      {"deepspeed",
       "a launch script of Megatron-DeepSpeed with its configuration",
       emit_deepspeed,
       "train.sh",
       "deepspeed-2023",
       "DeepSpeed",
       "deepspeed",
       {"strategy.pp == 1 or strategy.zero == 1", "strategy.zero >= 1 or strategy.overlap_grad_reduce == false",
        "strategy.virtual_stages == 1", "strategy.cp == 1 or strategy.cp_comm == \"ulysses\""}},
  };
  return targets;
}

const EmitTarget& emit_target(const std::string& name) {
  std::vector<std::string> names;
  for (const EmitTarget& one : emit_targets()) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  throw core::InputError(fmt::format("'{}' is no target; known are {}", name, fmt::join(names, ", ")), "--emit");
}

OwnEmission emit_own(const Settings& experiment, const Job* like, const Catalog& catalog) {
  if (has_programs(experiment)) return std::nullopt;
  const std::string stack = experiment.text("strategy.stack.name");
  const auto nearness = [&](const EmitTarget* one) {
    if (like != nullptr && one->framework == like->framework) return std::string::npos;
    return stack.starts_with(one->stacks) ? one->stacks.size() : 0;
  };
  std::vector<const EmitTarget*> order;
  for (const EmitTarget& one : emit_targets()) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [&](const EmitTarget* a, const EmitTarget* b) { return nearness(a) > nearness(b); });
  for (const EmitTarget* one : order) {
    try {
      return std::pair{one, emit_job(*one, experiment, like, catalog)};
    } catch (const core::InputError&) {  // it cannot run this; another may
    }
  }
  return std::nullopt;
}

EmittedJob emit_job(const EmitTarget& target, const Settings& experiment, const Job* like, const Catalog& catalog) {
  if (has_programs(experiment))
    throw core::InputError("a program that is given is no model and no strategy, and no job is launched with it",
                           kProgramFile);
  require_written(experiment, target);
  EmittedJob emitted = target.emit(experiment, like);
  const Job job = read_job({target.file, emitted.text}, {{}, gpus_of(experiment)}, catalog);
  emitted.other_stack = other_stack_text(experiment, job);
  const Settings read_back = settings_of(job, experiment, catalog);
  for (std::string& note : read_back_notes(read_back, emitted, experiment)) emitted.notes.push_back(std::move(note));
  emitted.unknown = unknown_of_model(experiment, read_back);
  emitted.dropped = JobChanges(experiment, like).untold(emitted.text);
  if (like != nullptr) emitted.beside_the_step = like->beside_the_step;
  return emitted;
}

std::string file_text(const EmittedJob& job, const std::vector<std::string>& title) {
  std::string head;
  for (const std::string& line : title) head += "# " + core::line_text(line) + "\n";
  if (!job.other_stack.empty()) head += "# " + core::line_text(job.other_stack) + "\n";
  const std::size_t first = job.text.starts_with("#!") ? job.text.find('\n') + 1 : 0;
  std::string text = job.text.substr(0, first) + head + job.text.substr(first);
  const std::tuple<const char*, const std::vector<std::string>*> parts[] = {
      {"other than there", &job.dropped},
      {"not expressed", &job.notes},
      {"not known of this model, so that the framework's own default counts", &job.unknown},
      {"of the job itself, to be taken over: they change neither step nor model", &job.beside_the_step}};
  for (const auto& [what, lines] : parts) {
    if (!lines->empty()) text += fmt::format("\n# {}:\n", what);
    for (const std::string& line : *lines) text += "#   " + core::line_text(line) + "\n";
  }
  return text;
}

}  // namespace manyworlds::experiments::jobs

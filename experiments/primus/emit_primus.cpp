// Writes the experiment of Primus that runs an experiment of ours.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/megatron_launch/yaml_lines.hpp"
#include "experiments/primus/primus.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr const char* kHead =
    "work_group: ${PRIMUS_TEAM:amd}\n"
    "user_name: ${PRIMUS_USER:root}\n"
    "exp_name: ${PRIMUS_EXP_NAME:manyworlds}\n"
    "workspace: ${PRIMUS_WORKSPACE:./output}\n"
    "\n"
    "modules:\n"
    "  pre_trainer:\n"
    "    framework: megatron\n"
    "    config: pre_trainer.yaml\n"
    "    model: language_model.yaml\n"
    "    overrides:\n";
constexpr const char* kRest =
    "      # Your data, tokenizer and schedule in place of these, which change no step.\n"
    "      mock_data: true\n"
    "      train_iters: 50\n"
    "      lr: 1.0e-4\n";
constexpr int kIndent = 6;

/// Switches that Primus's modules turn on, and the settings that they stand for.
struct Default {
  const char *argument, *key;
};
constexpr Default kDefaults[] = {
    {"swiglu", "model.activation"},
    {"disable-bias-linear", "model.biases"},
    {"untie-embeddings-and-output-weights", "model.tied_embeddings"},
    {"sequence-parallel", "strategy.sequence_parallel"},
    {"use-distributed-optimizer", "strategy.zero"},
    {"bf16", "strategy.stack.precision"},
    {"use-flash-attn", "strategy.stack.attention"},
};

/// Returns the lines of a part, and of what Primus would turn on otherwise.
std::vector<YamlLine> lines_of(const std::vector<LaunchArgument>& part) {
  std::vector<YamlLine> lines;
  for (const LaunchArgument& one : part) lines.push_back(yaml_line(one));
  return lines;
}

/// Primus's own schedules, which Megatron-LM does not have.
std::vector<YamlLine> schedule_lines(const Settings& experiment) {
  const std::string schedule = text_of(experiment, "strategy.schedule");
  const std::string name = translated("zb_h1=zero-bubble zb_v=zbv-formatted v_half=v-half v_min=v-min", schedule);
  if (name.empty()) return {};
  return {{"patch_primus_pipeline", "true", {}}, {"pp_algorithm", name, {"strategy.schedule"}}};
}

}  // namespace

EmittedJob emit_primus(const Settings& experiment, const Job* like) {
  const std::vector<YamlLine> schedule = schedule_lines(experiment);
  const MegatronLaunch launch = megatron_launch(experiment);
  const JobChanges changes(experiment, like);
  std::vector<YamlLine> off;
  for (const Default& one : kDefaults)
    if (find_in(launch, one.argument) == nullptr) {
      const YamlLine given = yaml_line({one.argument, {}, {one.key}});
      off.push_back({given.name, given.value == "true" ? "false" : "true", given.keys});
    }
  if (find_in(launch, "micro-batch-size") == nullptr)
    off.push_back({"micro_batch_size", "1", {"strategy.micro_batch"}});
  EmittedJob result;
  // examples/run_slurm_pretrain.sh @0164c8c takes both from the environment.
  result.text =
      batch_comment(launch.size, 1,
                    fmt::format("EXP=primus.yaml NNODES={} bash examples/run_slurm_pretrain.sh", launch.size.nodes),
                    "this file as primus.yaml; Primus's script runs srun itself, with a task on each node", like) +
      kHead + yaml_text(lines_of(launch.model), kIndent, changes) +
      yaml_text(lines_of(launch.layout), kIndent, changes) + yaml_text(schedule, kIndent, changes) +
      yaml_text(lines_of(launch.software), kIndent, changes) + yaml_text(off, kIndent, changes) + kRest;
  for (const std::string& note : launch.notes)
    if (schedule.empty() || !note.starts_with("strategy.schedule ")) result.notes.push_back(note);
  return result;
}

}  // namespace manyworlds::experiments::jobs

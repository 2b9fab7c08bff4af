// Writes the YAML of NeMo that runs an experiment of ours.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/megatron_launch/yaml_lines.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/nemo/settings.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr int kIndent = 2;
constexpr const char* kCommand =
    "srun python examples/nlp/language_modeling/megatron_gpt_pretraining.py --config-path \"$PWD\" --config-name nemo";
constexpr const char* kSection = "model.";
constexpr const char* kOptimizer = "model.optim.";

/// Names of NeMo's first version where Megatron-LM's own would not do.
struct Named {
  const char *argument, *name;
};
constexpr Named kNames[] = {
    {"seq-length", "encoder_seq_length"},
    {"disable-bias-linear", "bias"},
    {"untie-embeddings-and-output-weights", "share_embeddings_and_output_weights"},
    {"num-experts", "num_moe_experts"},
    {"num-virtual-stages-per-pipeline-rank", "virtual_pipeline_model_parallel_size"},
    {"recompute-granularity", "activations_checkpoint_granularity"},
    {"recompute-method", "activations_checkpoint_method"},
    {"recompute-num-layers", "activations_checkpoint_num_layers"},
    {"recompute-modules", "activations_checkpoint_recompute_modules"},
    {"no-rope-fusion", "apply_rope_fusion"},
    {"no-bias-dropout-fusion", "bias_dropout_add_fusion"},
    {"no-overlap-p2p-communication", "overlap_p2p_comm"},
    {"tp-comm-overlap", "ub_tp_comm_overlap"},
    {"vocab-size", "override_vocab_size"},
    {"use-flash-attn", "use_flash_attention"},
    {"norm-epsilon", "layernorm_epsilon"},
    {"add-qkv-bias", "qkv_bias"},
    {"rotary-percent", "rotary_percentage"},
    {"rotary-seq-len-interpolation-factor", "seq_len_interpolation_factor"},
    {"use-rope-scaling", "scale_positional_embedding"},
    {"overlap-grad-reduce", "optim.overlap_grad_sync"},
    {"overlap-param-gather", "optim.overlap_param_gather"},
    {"ddp-bucket-size", "optim.ddp_bucket_size"},
};

bool is_inverted(const std::string& name) {
  const KnownName* known = nemo_dialect().names.find(kSection + name);
  return known != nullptr && translated(known->values, "False") == "True";
}

/// Returns an argument's line below `model`.
YamlLine line_of(const LaunchArgument& argument) {
  YamlLine line = yaml_line(argument);
  if (argument.name == "normalization") line.value = line.value == "RMSNorm" ? "rmsnorm" : "layernorm";
  if (argument.name == "fp8-format") line.value = "true";
  for (const Named& one : kNames)
    if (argument.name == one.argument) {
      line.name = one.name;
      if (argument.values.empty()) line.value = is_inverted(one.name) ? "false" : "true";
    }
  return line;
}

class NemoWriter {
 public:
  NemoWriter(const Settings& experiment, const Job* like)
      : launch_(megatron_launch(experiment)), changes_(experiment, like), like_(like) {}

  EmittedJob write();

 private:
  void add(const LaunchArgument& argument);
  void add_defaults();

  MegatronLaunch launch_;
  JobChanges changes_;
  const Job* like_;
  std::vector<YamlLine> model_, optimizer_, trainer_;
};

void NemoWriter::add(const LaunchArgument& argument) {
  const std::string& name = argument.name;
  if (name == "bf16" || name == "fp16")
    return trainer_.push_back({"precision", name == "bf16" ? "bf16" : "16", argument.keys});
  if (name == "swiglu" || name == "squared-relu")
    return model_.push_back({"activation", name == "swiglu" ? "fast-swiglu" : "squared-relu", argument.keys});
  if (name == "use-distributed-optimizer")
    return optimizer_.push_back({"name", "mcore_distributed_optim", argument.keys});
  if (name == "grad-reduce-in-bf16") return optimizer_.push_back({"grad_sync_dtype", "bf16", argument.keys});
  if (name == "tokenizer-type" || name == "group-query-attention") return;  // NeMo's follow from other keys
  if (name == "rope-scaling-factor") return;  // scale_positional_embedding has one factor, 8
  if (name == "transformer-impl")
    return model_.push_back(
        {"transformer_engine", argument.values.front() == "local" ? "false" : "true", argument.keys});
  YamlLine line = line_of(argument);
  constexpr std::string_view kPrefix = "optim.";
  const bool optimizer = line.name.starts_with(kPrefix);
  if (optimizer) line.name.erase(0, kPrefix.size());
  (optimizer ? optimizer_ : model_).push_back(std::move(line));
}

/// What NeMo does unless it is told otherwise, and the experiment does not.
void NemoWriter::add_defaults() {
  const auto lacks = [&](const char* name) { return find_in(launch_, name) == nullptr; };
  if (lacks("no-rope-fusion")) model_.push_back({"apply_rope_fusion", "true", {"strategy.stack.rope_fusion"}});
  if (lacks("micro-batch-size")) model_.push_back({"micro_batch_size", "1", {"strategy.micro_batch"}});
  if (lacks("normalization")) model_.push_back({"normalization", "layernorm", {"model.norm"}});
  if (lacks("attention-backend")) model_.push_back({"attention_backend", "auto", {"strategy.stack.attention"}});
  if (lacks("use-distributed-optimizer"))
    optimizer_.insert(optimizer_.begin(), {"name", "fused_adam", {"strategy.zero"}});
}

EmittedJob NemoWriter::write() {
  const LaunchSize& size = launch_.size;
  trainer_ = {{"num_nodes", std::to_string(size.nodes), {}}, {"devices", std::to_string(size.gpus_per_node), {}}};
  for (const auto* part : {&launch_.model, &launch_.layout, &launch_.software})
    for (const LaunchArgument& one : *part) add(one);
  add_defaults();
  EmittedJob result;
  result.text = batch_comment(size, size.gpus_per_node, kCommand,
                              "a task on each GPU, as Lightning has it, and this file as nemo.yaml in the folder that "
                              "the job starts in",
                              like_) +
                "trainer:\n" + yaml_text(trainer_, kIndent, changes_) + "  max_steps: 50\n  accelerator: gpu\n" +
                "model:\n  mcore_gpt: true\n" + yaml_text(model_, kIndent, changes_) + "  optim:\n" +
                yaml_text(optimizer_, 2 * kIndent, changes_) + "    lr: 1.0e-4\n" +
                "  # Your data and tokenizer in place of these, which change no step.\n" +
                "  data:\n    data_impl: mock\n";
  result.notes = launch_.notes;
  return result;
}

}  // namespace

EmittedJob emit_nemo(const Settings& experiment, const Job* like) {
  return NemoWriter(experiment, like).write();
}

}  // namespace manyworlds::experiments::jobs

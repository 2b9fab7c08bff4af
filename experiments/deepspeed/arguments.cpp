// Names and defaults are those of deepspeedai/Megatron-DeepSpeed @4efb479, megatron/arguments.py, and of
// deepspeed.add_config_arguments(); pp-partition-method is of bigscience-workshop/Megatron-DeepSpeed, which hands it to
// DeepSpeed's PipelineModule.
#include "experiments/deepspeed/arguments.hpp"

#include <algorithm>

#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs::deepspeed {
namespace {

constexpr const char* kOfExperts =
    "mlp-type topk expert-interval create-moe-param-group disable-moe-token-dropping "
    "disable-moe-top2-2nd-expert-sampling enable-expert-tensor-parallelism use-tutel moe-expert-parallel-size "
    "moe-train-capacity-factor moe-eval-capacity-factor moe-min-capacity";

std::vector<KnownName> mapped_arguments() {
  const char* attention = "strategy.stack.attention";
  return {
      {"deepspeed", "strategy.stack", "DeepSpeed of 2023"},
      {"deepspeed-config", "strategy.zero", "the file, beside the script or written by it; see its keys"},
      {"deepspeed_config", "strategy.zero", "as deepspeed-config"},
      {"zero-stage", "strategy.zero", "must be what the configuration says; without one it tells"},
      {"ds-sequence-parallel-size", "strategy.cp, strategy.cp_comm", "ulysses; 1"},
      {"num-key-value-heads", "model.kv_heads", "as many as heads"},
      {"use-flash-attn", attention, "flash; without any of them unfused"},
      {"use-flash-attn-v1", attention, "flash"},
      {"use-flash-attn-triton", attention, "flash"},
      {"use-flash-attn-v2", attention, "flash2"},
      {"no-pipeline-parallel", "strategy.pp", "only with one pipeline rank"},
      {"pp-partition-method", "strategy.split",
       "of BigScience's fork: uniform (even), parameters (by_parameters), type:transformer (even; the default), "
       "type:transformer or embedding (light_ends)"},
  };
}

std::vector<NameGroup> other_arguments_of_deepspeed() {
  return {
      {Fate::irrelevant, "the configuration in JSON says it",
       "deepspeed-activation-checkpointing zero-reduce-scatter zero-contigious-gradients zero-allgather-bucket-size "
       "zero-reduce-bucket-size"},
      {Fate::irrelevant, "data, checkpoints, logs and starting",
       "aml-data-download-path kill-switch-file load-tag local_rank log-optimizer-states-to-tensorboard mmap-warmup "
       "no-load-lr-state profile-backward profile_steps repeated-dataloader reset-iteration return-data-index "
       "train-data-exact-num-epochs train-desc-path train-doc-idx-path train-idx-path train-sample-idx-path "
       "train-shuffle-idx-path universal-checkpoint use-dataset-only use-pin-memory"},
      {Fate::carried, "the model's own: the base of its rotations", "rotary-position-embeddings-theta="},
      {Fate::irrelevant, "kernels of the same bytes",
       "disable-mem-efficient-ln ds_fused_adam overlap-p2p-communication "
       "force-ds-sequence-parallel"},
      {Fate::irrelevant, "only effective with what is refused",
       "ds-sequence-parallel-fpdt-chunk-size hidden-size-teacher num-attention-heads-teacher num-experts-teacher "
       "load-teacher kd-alpha-ce kd-beta-ce kd-temp tile-factor enable-zbh1-exact-semantics"},
      {Fate::irrelevant, "of experts, which are refused", kOfExperts},
      {Fate::refused, "activations that are sharded, copied together or in the host's memory are not modelled",
       "partition-activations contigious-checkpointing checkpoint-in-cpu synchronize-each-layer "
       "distribute-checkpointed-activations"},
      {Fate::refused, "an optimizer on the host is not modelled", "cpu-optimizer cpu_torch_adam remote-device=none"},
      {Fate::refused, "sequence parallelism in chunks is not modelled",
       "ds-sequence-parallel-fpdt ds-sequence-parallel-fpdt-offloading"},
      {Fate::refused, "the schedule of zero bubbles is not modelled under DeepSpeed", "enable-zbh1-pipeline"},
      {Fate::refused, "steps of changing sizes are not modelled", "random-ltd data-efficiency-curriculum-learning"},
      {Fate::refused, "a second model that teaches is not modelled", "kd mos"},
      {Fate::refused, "layers or ranks of this form are not modelled",
       "embedding-weights-in-fp32 memory-centric-tiled-linear scattered-embeddings split-transformers "
       "num-experts-switch pipeline-model-parallel-split-rank standalone-embedding-stage use-flash-attn-builder "
       "ds-inference inference"},
  };
}

}  // namespace

const KnownNames& known_arguments() {
  static const KnownNames arguments("Megatron-DeepSpeed", NameKind::argument, mapped_arguments(),
                                    other_arguments_of_deepspeed());
  return arguments;
}

bool is_of_experts(const std::string& name) {
  const auto names = import::words_of(kOfExperts);
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace manyworlds::experiments::jobs::deepspeed

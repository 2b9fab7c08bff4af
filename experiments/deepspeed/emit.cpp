// The launch script of an experiment under Megatron-DeepSpeed @4efb479, which writes the configuration that it names.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/deepspeed/deepspeed.hpp"
#include "experiments/jobs/known_names.hpp"
#include "experiments/megatron_launch/megatron_launch.hpp"
#include "experiments/model_keys/carried.hpp"

namespace manyworlds::experiments::jobs {
namespace deepspeed {
namespace {

using core::workload::AttentionKernel;
using core::workload::ContextExchange;
using core::workload::Precision;
using core::workload::Recompute;

constexpr const char* kRest =
    "# Your data, tokenizer and schedule in place of these, which change no step.\n"
    "TRAINING=(\n"
    "  --train-iters 50\n"
    "  --eval-iters 0\n"
    "  --lr 1e-4\n"
    ")\n";

constexpr const char* kProgram =
    "pretrain_gpt.py \"${MODEL[@]}\" \"${LAYOUT[@]}\" \\\n  \"${SOFTWARE[@]}\" \"${TRAINING[@]}\" \"$@\"\n";

/// Arguments of Megatron-LM that the model carries, and what Megatron-DeepSpeed calls them.
constexpr std::string_view kCarried =
    "rotary-base=rotary-position-embeddings-theta norm-epsilon=layernorm-epsilon init-method-std=init-method-std "
    "init-method-xavier-uniform=init-method-xavier-uniform rotary-percent=rotary-percent "
    "max-position-embeddings=max-position-embeddings make-vocab-size-divisible-by=make-vocab-size-divisible-by "
    "attention-softmax-in-fp32=attention-softmax-in-fp32";

[[noreturn]] void refuse(const std::string& key, const std::string& why) {
  throw core::InputError(why, key);
}

class Writer {
 public:
  explicit Writer(const Settings& experiment)
      : experiment_(experiment),
        config_(config_of(experiment)),
        model_(config_.configuration.model),
        strategy_(config_.configuration.strategy) {}

  EmittedJob write(const Job* like);

 private:
  using Keys = std::vector<std::string>;

  void check() const;
  void add(std::vector<LaunchArgument>& to, const char* name, std::int64_t value, Keys keys) const {
    to.push_back({name, {std::to_string(value)}, std::move(keys)});
  }
  void add(std::vector<LaunchArgument>& to, const char* name, const std::string& value, Keys keys) const {
    to.push_back({name, {value}, std::move(keys)});
  }
  void add_switch(std::vector<LaunchArgument>& to, const char* name, Keys keys) const {
    to.push_back({name, {}, std::move(keys)});
  }
  std::vector<LaunchArgument> model() const;
  void add_carried(std::vector<LaunchArgument>& to) const;
  std::vector<LaunchArgument> layout() const;
  std::vector<LaunchArgument> software() const;
  std::string configuration() const;
  bool half() const { return strategy_.stack.precision == Precision::fp16; }

  const Settings& experiment_;
  const ExperimentConfig config_;
  const core::workload::Model& model_;
  const core::workload::Strategy& strategy_;
};

void Writer::check() const {
  if (model_.has_experts()) refuse("model.experts", "DeepSpeed's own experts are not modelled");
  if (model_.is_latent()) refuse("model.attention", "Megatron-DeepSpeed has no latent attention");
  if (model_.window > 0) refuse("model.window", "Megatron-DeepSpeed has no windows of attention");
  if (model_.query_key_norm) refuse("model.query_key_norm", "Megatron-DeepSpeed has no norms of queries and keys");
  if (strategy_.pp > 1 && strategy_.zero > 1)
    refuse("strategy.zero", "ZeRO 2 and 3 do not go with pipelines in DeepSpeed");
  if (strategy_.virtual_stages > 1) refuse("strategy.virtual_stages", "DeepSpeed has one stage on a pipeline rank");
  if (strategy_.cp > 1 && strategy_.cp_comm != ContextExchange::ulysses)
    refuse("strategy.cp_comm", "DeepSpeed's sequence parallelism trades tokens for heads (ulysses)");
  if (strategy_.stack.precision != Precision::bf16 && !half())
    refuse("strategy.stack.precision", "DeepSpeed trains in bf16 or fp16");
}

/// DeepSpeed's own launcher reaches other nodes by ssh and a hostfile; torchrun sets the same variables for ranks.
std::string launcher(const LaunchSize& size, const Job* like) {
  if (!is_batch_job(like))
    return fmt::format("deepspeed --num_nodes {} --num_gpus {} ", size.nodes, size.gpus_per_node);
  return "# torchrun instead of deepspeed, which would need a hostfile and ssh; assumed: all nodes see "
         "ds_config.json.\n" +
         torchrun_lines(size, like);
}

EmittedJob Writer::write(const Job* like) {
  check();
  const JobChanges changes(experiment_, like);
  EmittedJob result;
  const LaunchSize size{config_.cluster.nodes, config_.cluster.gpus_per_node};
  result.text = script_head(size, like) + "cat <<END > ds_config.json\n" + configuration() + "END\n" +
                argument_array("MODEL", model(), changes) + argument_array("LAYOUT", layout(), changes) +
                argument_array("SOFTWARE", software(), changes) + kRest + launcher(size, like) + kProgram;
  return result;
}

std::vector<LaunchArgument> Writer::model() const {
  std::vector<LaunchArgument> all;
  add(all, "num-layers", model_.layers, {"model.layers"});
  add(all, "hidden-size", model_.hidden, {"model.hidden"});
  add(all, "ffn-hidden-size", model_.ffn(), {"model.ffn_hidden"});
  add(all, "num-attention-heads", model_.heads, {"model.heads"});
  if (model_.kv() != model_.heads) add(all, "num-key-value-heads", model_.kv(), {"model.kv_heads"});
  if (model_.head_width() * model_.heads != model_.hidden)
    add(all, "kv-channels", model_.head_width(), {"model.head_dim"});
  add(all, "seq-length", model_.sequence, {"model.sequence"});
  add(all, "max-position-embeddings", model_.sequence, {});
  const bool root_mean_square = model_.norm == core::workload::Norm::rms_norm;
  add(all, "normalization", std::string(root_mean_square ? "rmsnorm" : "layernorm"), {"model.norm"});
  if (model_.activation == core::workload::Activation::swiglu) add_switch(all, "swiglu", {"model.activation"});
  if (model_.position == core::workload::Position::rotary)
    add_switch(all, "use-rotary-position-embeddings", {"model.position"});
  if (!model_.tied_embeddings) add_switch(all, "untie-embeddings-and-output-weights", {"model.tied_embeddings"});
  if (!model_.biases) add_switch(all, "disable-bias-linear", {"model.biases"});
  for (const char* name : {"attention-dropout", "hidden-dropout"})
    add(all, name, std::string(model_.dropout ? "0.1" : "0"), {"model.dropout"});
  add(all, "tokenizer-type", std::string("NullTokenizer"), {});
  add(all, "vocab-size", model_.vocabulary, {"model.vocabulary"});
  add_carried(all);
  return all;
}

/// Adds what of the model's own its arguments have; the rest is told by reading the text back.
void Writer::add_carried(std::vector<LaunchArgument>& to) const {
  for (models::CarriedArgument& one : models::carried_in(text_of(experiment_, models::kCarriedKey))) {
    const std::string name = translated(kCarried, one.name);
    const auto there =
        std::find_if(to.begin(), to.end(), [&](const LaunchArgument& other) { return other.name == name; });
    const bool too_short =
        name == "max-position-embeddings" && std::strtoll(one.values.front().c_str(), nullptr, 10) < model_.sequence;
    if (name.empty() || too_short) continue;
    if (there != to.end())
      there->values = std::move(one.values);
    else
      to.push_back({name, std::move(one.values), {}});
  }
}

std::vector<LaunchArgument> Writer::layout() const {
  std::vector<LaunchArgument> all;
  add(all, "tensor-model-parallel-size", strategy_.tp, {"strategy.tp"});
  add(all, "pipeline-model-parallel-size", strategy_.pp, {"strategy.pp"});
  if (strategy_.cp > 1) add(all, "ds-sequence-parallel-size", strategy_.cp, {"strategy.cp", "strategy.cp_comm"});
  if (strategy_.sequence_parallel) add_switch(all, "sequence-parallel", {"strategy.sequence_parallel"});
  add(all, "micro-batch-size", strategy_.micro_batch, {"strategy.micro_batch"});
  add(all, "global-batch-size", strategy_.global_batch, {"strategy.global_batch"});
  const Keys recompute{"strategy.recompute"};
  if (strategy_.recompute == Recompute::full) {
    const bool block = strategy_.recompute_layers > 0;
    add(all, "recompute-granularity", std::string("full"), recompute);
    add(all, "recompute-method", std::string(block ? "block" : "uniform"), {"strategy.recompute_layers"});
    add(all, "recompute-num-layers", block ? strategy_.recompute_layers : 1, {"strategy.recompute_layers"});
    add_switch(all, "deepspeed-activation-checkpointing", {});
  } else if (strategy_.recompute == Recompute::selective) {
    add(all, "recompute-granularity", std::string("selective"), recompute);
  }
  if (strategy_.pp == 1) add_switch(all, "no-pipeline-parallel", {});
  add(all, "zero-stage", strategy_.zero, {"strategy.zero"});
  return all;
}

std::vector<LaunchArgument> Writer::software() const {
  std::vector<LaunchArgument> all;
  add_switch(all, "deepspeed", {});
  add(all, "deepspeed_config", std::string("ds_config.json"), {});
  add_switch(all, half() ? "fp16" : "bf16", {"strategy.stack.precision"});
  const Keys attention{"strategy.stack.attention"};
  if (strategy_.stack.attention == AttentionKernel::flash) add_switch(all, "use-flash-attn-v1", attention);
  if (strategy_.stack.attention == AttentionKernel::flash2 || strategy_.stack.attention == AttentionKernel::cudnn)
    add_switch(all, "use-flash-attn-v2", attention);
  if (!strategy_.stack.bias_activation_fusion)
    add_switch(
        all, model_.activation == core::workload::Activation::swiglu ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion",
        {"strategy.stack.bias_activation_fusion"});
  if (!strategy_.stack.bias_dropout_fusion)
    add_switch(all, "no-bias-dropout-fusion", {"strategy.stack.bias_dropout_fusion"});
  return all;
}

std::string Writer::configuration() const {
  std::string zero = fmt::format("\"stage\": {}", strategy_.zero);
  if (strategy_.zero > 0)
    zero += fmt::format(", \"overlap_comm\": {}", strategy_.overlap_grad_reduce ? "true" : "false");
  zero += fmt::format(", \"reduce_bucket_size\": {}", strategy_.bucket_parameters);
  if (strategy_.zero == 3 && strategy_.zero_group > 0)
    zero += fmt::format(", \"mics_shard_size\": {}", strategy_.zero_group);
  return fmt::format(
      "{{\n  \"train_batch_size\": {},\n  \"train_micro_batch_size_per_gpu\": {},\n  \"zero_optimization\": {{{}}},\n"
      "  \"communication_data_type\": \"{}\",\n  \"{}\": {{\"enabled\": true}}\n}}\n",
      strategy_.global_batch, strategy_.micro_batch, zero,
      strategy_.stack.reduce_in_16bit ? (half() ? "fp16" : "bf16") : "fp32", half() ? "fp16" : "bf16");
}

}  // namespace
}  // namespace deepspeed

EmittedJob emit_deepspeed(const Settings& experiment, const Job* like) {
  return deepspeed::Writer(experiment).write(like);
}

}  // namespace manyworlds::experiments::jobs

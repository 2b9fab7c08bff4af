// The TOML of an experiment: pytorch/torchtitan v0.2.2 with these keys runs it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.hpp"
#include "core/workload/model/group_limits.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/jobs/batch_job.hpp"
#include "experiments/model_keys/carried.hpp"
#include "experiments/torchtitan/flavors.hpp"
#include "experiments/torchtitan/own_flavor.hpp"
#include "experiments/torchtitan/stages.hpp"
#include "experiments/torchtitan/torchtitan.hpp"

namespace manyworlds::experiments::jobs {
namespace torchtitan {
namespace {

using core::workload::ContextExchange;
using core::workload::Dispatcher;
using core::workload::Model;
using core::workload::Precision;
using core::workload::Recompute;

[[noreturn]] void refuse(const std::string& key, const std::string& why) {
  throw core::InputError(why, key);
}

/// Writes out what follows from other sizes, and leaves out what no layer has.
Model spelled_out(Model model) {
  const Model none;
  model.sequence = none.sequence;
  model.teacher_text.clear();  // no part of a flavor
  if (!model.is_latent()) model.kv_heads = model.kv(), model.head_dim = model.head_width();
  if (model.is_latent()) model.kv_heads = 0, model.value_dim = model.value_width();
  model.expert_ffn_hidden = model.has_experts() ? model.expert_ffn() : 0;
  model.ffn_hidden = model.has_experts() && model.dense_layers == 0 ? 0 : model.ffn();
  if (!model.has_experts()) model.experts_per_token = 1, model.shared_ffn_hidden = 0, model.dense_layers = 0;
  if (!core::workload::limits_groups(model))
    model.expert_groups = none.expert_groups, model.groups_per_token = none.groups_per_token;
  return model;
}

/// Returns a name for a flavor of the user's own.
std::string own_name(const Settings& experiment) {
  std::string name = experiment.text("model.name");
  std::erase_if(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 &&
           std::string_view("._-").find(c) == std::string_view::npos;
  });
  return name.empty() ? "own" : name;
}

/// Returns the flavor with these sizes, or else one of the user's own, which is to be added to torchtitan.
Flavor flavor_of(const Model& model, const Settings& experiment) {
  const Model wanted = spelled_out(model);
  for (const Flavor& one : flavors()) {
    if (!one.refused.empty()) continue;
    const Model sizes = spelled_out(one.sizes);
    const auto& rows = core::workload::model_options().rows();
    const bool same =
        std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row.get(wanted) == row.get(sizes); });
    if (same) return one;
  }
  Model sizes = wanted;
  sizes.vocabulary = model.vocabulary;
  if (auto own = own_flavor(sizes, experiment.text(models::kCarriedKey), own_name(experiment))) {
    own->own = true;
    return *own;
  }
  refuse("model", fmt::format("torchtitan has no flavor of {} layers, hidden {}, {} heads, vocabulary {} and the other "
                              "sizes of this model, and no arguments of its models llama3, qwen3 and deepseek_v3 "
                              "say them",
                              model.layers, model.hidden, model.heads, model.vocabulary));
}

/// A key with its section, as TOML writes the value.
struct Line {
  std::string section, key, value;
  std::vector<std::string> settings;
};

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

class Writer {
 public:
  explicit Writer(const Settings& experiment)
      : experiment_(experiment),
        config_(config_of(experiment)),
        model_(config_.configuration.model),
        strategy_(config_.configuration.strategy),
        flavor_(flavor_of(model_, experiment)) {}

  EmittedJob write(const Job* like);

 private:
  using Keys = std::vector<std::string>;

  void add(const char* section, const char* key, std::string value, Keys settings) {
    lines_.push_back({section, key, std::move(value), std::move(settings)});
  }
  void add(const char* section, const char* key, std::int64_t value, Keys settings) {
    add(section, key, std::to_string(value), std::move(settings));
  }
  void write_model();
  void write_training();
  void write_ranks();
  void write_experts();
  void write_pipeline();
  bool write_split(const std::vector<std::int64_t>& layers, bool several, std::int64_t less);
  void write_recompute();
  void write_software();
  std::vector<std::int64_t> stages() const;

  const Settings& experiment_;
  const ExperimentConfig config_;
  const Model& model_;
  const core::workload::Strategy& strategy_;
  const Flavor flavor_;
  std::vector<Line> lines_;
};

EmittedJob Writer::write(const Job* like) {
  write_model();
  write_training();
  write_ranks();
  write_recompute();
  write_software();
  const JobChanges changes(experiment_, like);
  EmittedJob result;
  std::string flags, section;
  for (const Line& line : lines_) {
    const std::string change = changes.of(line.settings);
    if (line.section != section) result.text += fmt::format("\n[{}]\n", line.section);
    section = line.section;
    result.text += commented(fmt::format("{} = {}", line.key, line.value), change) + "\n";
    if (!change.empty()) flags += fmt::format(" --{}.{} {}", line.section, line.key, line.value);
  }
  const LaunchSize size{config_.cluster.nodes, config_.cluster.gpus_per_node};
  std::string launch =
      batch_comment(size, 1, torchrun_lines(size, like) + "-m torchtitan.train --job.config_file job.toml",
                    "this file as job.toml in a folder that all nodes see", like);
  if (launch.empty())
    launch = fmt::format("# torchrun --nnodes {} --nproc_per_node {} -m torchtitan.train --job.config_file FILE.toml\n",
                         size.nodes, size.gpus_per_node);
  if (!flags.empty()) flags = fmt::format("# The same over {}:{}\n", like->file, flags);
  result.text = "# torchtitan v0.2.2; dataset, tokenizer and schedule of the rate are yours to add.\n" + launch +
                flags + (flavor_.own ? own_flavor_text(flavor_) : "") + result.text;
  return result;
}

void Writer::write_model() {
  add("model", "name", quoted(flavor_.model), {});
  add("model", "flavor", quoted(flavor_.name), {"model.layers", "model.hidden"});
  const char* kind = nullptr;
  if (strategy_.stack.precision == Precision::fp8) kind = "float8";
  if (strategy_.stack.precision == Precision::mxfp8) kind = "mx";
  if (kind == nullptr && strategy_.stack.precision != Precision::bf16)
    refuse("strategy.stack.precision", fmt::format("torchtitan v0.2.2 trains in bf16, fp8 or mxfp8, not in {}",
                                                   text_of(experiment_, "strategy.stack.precision")));
  if (kind == nullptr) return;
  std::string converters = quoted(fmt::format("quantize.linear.{}", kind));
  if (model_.has_experts()) converters += ", " + quoted(fmt::format("quantize.grouped_mm.{}", kind));
  add("model", "converters", "[" + converters + "]", {"strategy.stack.precision"});
}

void Writer::write_training() {
  const bool pipelined = strategy_.pp > 1;
  add("training", "local_batch_size", pipelined ? strategy_.global_batch / strategy_.dp : strategy_.micro_batch,
      {pipelined ? "strategy.global_batch" : "strategy.micro_batch"});
  add("training", "global_batch_size", strategy_.global_batch, {"strategy.global_batch"});
  add("training", "seq_len", model_.sequence, {"model.sequence"});
}

void Writer::write_ranks() {
  const std::int64_t replicas = strategy_.dp * strategy_.cp;
  if (replicas == 1 && strategy_.tp * strategy_.pp > 1)
    refuse("strategy", "torchtitan trains tensor- and pipeline-parallel ranks without data-parallel ones in 32 bits");
  const bool alone = strategy_.tp * strategy_.pp * strategy_.cp == 1;
  std::int64_t groups = strategy_.zero > 0 && strategy_.zero_group > 0 ? strategy_.zero_groups() : 1;
  if (strategy_.zero == 0 && alone) groups = strategy_.dp;  // DistributedDataParallel
  if (strategy_.dp % groups != 0)
    refuse("strategy.zero_group",
           fmt::format("{} sharding groups do not divide {} data-parallel ranks", groups, strategy_.dp));
  const Keys sharding{"strategy.zero", "strategy.zero_group"};
  add("parallelism", "data_parallel_replicate_degree", groups, sharding);
  add("parallelism", "data_parallel_shard_degree", strategy_.dp / groups, sharding);
  if (strategy_.zero == 3 && strategy_.pp > 1)
    add("parallelism", "fsdp_reshard_after_forward", quoted("always"), {"strategy.zero"});
  if (strategy_.zero == 2 && strategy_.pp == 1)
    add("parallelism", "fsdp_reshard_after_forward", quoted("never"), {"strategy.zero"});
  add("parallelism", "tensor_parallel_degree", strategy_.tp, {"strategy.tp"});
  if (strategy_.stack.overlap_tensor && strategy_.tp > 1)
    add("parallelism", "enable_async_tensor_parallel", "true", {"strategy.stack.overlap_tensor"});
  add("parallelism", "context_parallel_degree", strategy_.cp, {"strategy.cp"});
  if (strategy_.cp > 1) {
    if (strategy_.cp_comm == ContextExchange::ulysses)
      refuse("strategy.cp_comm", "torchtitan gathers keys and values, or moves them around a ring");
    add("parallelism", "context_parallel_rotate_method",
        quoted(strategy_.cp_comm == ContextExchange::ring ? "alltoall" : "allgather"), {"strategy.cp_comm"});
  }
  if (model_.has_experts()) write_experts();
  add("parallelism", "pipeline_parallel_degree", strategy_.pp, {"strategy.pp"});
  if (strategy_.pp > 1) write_pipeline();
}

void Writer::write_experts() {
  add("parallelism", "expert_parallel_degree", strategy_.ep, {"strategy.ep"});
  if (strategy_.etp != 1 && strategy_.etp != strategy_.tp)
    refuse("strategy.etp",
           fmt::format("torchtitan shards an expert over 1 or tp {} ranks, not {}", strategy_.tp, strategy_.etp));
  if (strategy_.ep > 1) add("parallelism", "expert_tensor_parallel_degree", strategy_.etp, {"strategy.etp"});
  if (strategy_.ep > 1 && strategy_.stack.dispatcher == Dispatcher::deepep)
    add("parallelism", "expert_parallel_comm_backend", quoted("deepep"), {"strategy.stack.dispatcher"});
}

std::vector<std::int64_t> Writer::stages() const {
  std::vector<std::int64_t> layers;
  for (std::int64_t stage = 0; stage < strategy_.stages().count(); ++stage)
    layers.push_back(layers_before_virtual_stage(model_, strategy_, stage + 1) -
                     layers_before_virtual_stage(model_, strategy_, stage));
  return layers;
}

void Writer::write_pipeline() {
  const std::string schedule = text_of(experiment_, "strategy.schedule");
  const std::pair<const char*, const char*> known[] = {{"1f1b", "1F1B"},
                                                       {"gpipe", "GPipe"},
                                                       {"interleaved", "Interleaved1F1B"},
                                                       {"zb_v", "ZBVZeroBubble"},
                                                       {"dualpipev", "DualPipeV"}};
  const auto* found =
      std::find_if(std::begin(known), std::end(known), [&](const auto& one) { return one.first == schedule; });
  if (found == std::end(known))
    refuse("strategy.schedule",
           fmt::format("torchtitan has 1f1b, gpipe, interleaved, zb_v and dualpipev, not {}", schedule));
  add("parallelism", "pipeline_parallel_schedule", quoted(found->second), {"strategy.schedule"});
  add("parallelism", "pipeline_parallel_microbatch_size", strategy_.micro_batch, {"strategy.micro_batch"});
  const std::vector<std::int64_t> layers = stages();
  const bool several = schedule != "1f1b" && schedule != "gpipe";
  if (write_split(layers, several, 1) || write_split(layers, several, 0)) return;
  std::vector<std::string> parts;
  for (const auto& part : modules_of_stages(layers))
    parts.push_back(fmt::format("[\"{}\"]", fmt::join(part, "\", \"")));
  add("parallelism", "module_fqns_per_model_part", fmt::format("[{}]", fmt::join(parts, ", ")),
      {"strategy.stage_layers", "strategy.split", "strategy.virtual_stages"});
}

/// Writes the split that torchtitan makes if embedding and head count as `less` layers; returns whether it is this one.
bool Writer::write_split(const std::vector<std::int64_t>& layers, bool several, std::int64_t less) {
  const auto count = static_cast<std::int64_t>(layers.size());
  std::string why;
  if (stage_layers({model_.layers, count, less, less}, why) != layers) return false;
  const bool by_default = count == strategy_.pp * (several ? 2 : 1);
  const std::int64_t counted = model_.layers + 2 * less, each = (counted + count - 1) / count;
  if (!by_default && (counted + each - 1) / each != count) return false;
  const Keys keys{"strategy.virtual_stages", "strategy.split", "strategy.stage_layers"};
  if (!by_default) add("parallelism", "pipeline_parallel_layers_per_stage", each, keys);
  if (less != 1)
    for (const char* key : {"pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers"})
      add("parallelism", key, less, {"strategy.split", "strategy.stage_layers"});
  return true;
}

void Writer::write_recompute() {
  const Keys keys{"strategy.recompute", "strategy.recompute_layers"};
  const bool full = strategy_.recompute == Recompute::full, by_op = strategy_.recompute == Recompute::per_op;
  const std::vector<std::int64_t> layers = stages();
  const std::int64_t most = *std::max_element(layers.begin(), layers.end()), recomputed = strategy_.recompute_layers;
  const bool all = full && (recomputed == 0 || recomputed >= most);
  add("activation_checkpoint", "mode", quoted(all ? "full" : full || by_op ? "selective" : "none"), keys);
  if (by_op) add("activation_checkpoint", "selective_ac_option", quoted("op"), keys);
  if (full && !all)
    add("activation_checkpoint", "selective_ac_option", quoted(std::to_string(most / recomputed)), keys);
}

void Writer::write_software() {
  const core::workload::Stack& stack = strategy_.stack;
  const bool compiled = stack.bias_activation_fusion;
  std::vector<std::string> components;
  if (compiled) components.push_back("model");
  if (stack.cross_entropy_fusion) components.push_back("loss");
  add("compile", "enable", components.empty() ? "false" : "true", {"strategy.stack.bias_activation_fusion"});
  if (!components.empty())
    add("compile", "components", fmt::format("[\"{}\"]", fmt::join(components, "\", \"")),
        {"strategy.stack.cross_entropy_fusion"});
  if (stack.overlap_tensor && strategy_.tp > 1 && !compiled)
    refuse("strategy.stack.overlap_tensor", "torchtitan needs the model compiled for it");
  add("optimizer", "name", quoted("AdamW"), {});
  add("optimizer", "implementation", quoted(stack.optimizer_fusion ? "fused" : "foreach"),
      {"strategy.stack.optimizer_fusion"});
  if (stack.deterministic) add("debug", "deterministic", "true", {"strategy.stack.deterministic"});
}

}  // namespace
}  // namespace torchtitan

EmittedJob emit_torchtitan(const Settings& experiment, const Job* like) {
  return torchtitan::Writer(experiment).write(like);
}

}  // namespace manyworlds::experiments::jobs

// The layout's part of Megatron-LM's arguments: ranks, batch, stages, recomputation, sharding.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/megatron_launch/writer.hpp"

namespace manyworlds::experiments::jobs {

using core::workload::Recompute;

namespace {

/// Returns what a stage of so many layers is in a layout: "t", "t*6", nothing.
std::string layers_text(std::int64_t layers) {
  if (layers <= 0) return "";
  return layers == 1 ? "t" : fmt::format("t*{}", layers);
}

/// Returns stages in the notation of --pipeline-model-parallel-layout, with E on the first one, and layers for
/// multi-token prediction and L on the last: "Et*5|(t*6|)*14t*5mL".
std::string layout_text(const std::vector<std::int64_t>& stages, std::int64_t mtp_layers) {
  std::string text = "E";
  for (std::size_t i = 0; i < stages.size();) {
    std::size_t end = i + 1;
    const bool last = end == stages.size();
    if (i > 0)
      while (end + 1 < stages.size() && stages[end] == stages[i]) ++end;
    if (end - i > 1)
      text += fmt::format("({}|)*{}", layers_text(stages[i]), end - i);
    else
      text += layers_text(stages[i]) + (last ? std::string(static_cast<std::size_t>(mtp_layers), 'm') + "L" : "|");
    i = end;
  }
  return text;
}

/// Returns whether all stages have the same number of layers, where `first` and `last` are one more than they have.
bool are_equal(std::vector<std::int64_t> stages, std::int64_t at_ends) {
  stages.front() += at_ends, stages.back() += at_ends;
  return std::all_of(stages.begin(), stages.end(), [&](std::int64_t one) { return one == stages.front(); });
}

std::vector<std::string> as_words(const std::string& list) {
  return core::split_list(list);
}

}  // namespace

void MegatronWriter::write_layout() {
  add("tensor-model-parallel-size", strategy_.tp, {"strategy.tp"});
  add("pipeline-model-parallel-size", strategy_.pp, {"strategy.pp"});
  if (model_.has_experts()) {
    add("expert-model-parallel-size", strategy_.ep, {"strategy.ep"});
    add("expert-tensor-parallel-size", strategy_.etp, {"strategy.etp"});
  }
  if (strategy_.sequence_parallel && !legacy_) add_switch("sequence-parallel", {"strategy.sequence_parallel"});
  add("global-batch-size", strategy_.global_batch, {"strategy.global_batch"});
  write_stages();
  if (legacy_)
    write_old_recompute();
  else
    write_recompute();
  write_offload();
  write_sharding();
}

void MegatronWriter::write_stages() {
  const std::int64_t stages = strategy_.stages().count();
  std::vector<std::int64_t> layers;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    layers.push_back(layers_before_virtual_stage(model_, strategy_, stage + 1) -
                     layers_before_virtual_stage(model_, strategy_, stage));
  if (stages > 1) write_stage_layers(layers);
  const std::string schedule = value("strategy.schedule");
  const char* own = stages > strategy_.pp ? "interleaved" : "1f1b";
  if (strategy_.pp > 1 && schedule != own) note("strategy.schedule", fmt::format("Megatron-LM runs {}", own));
}

void MegatronWriter::write_stage_layers(const std::vector<std::int64_t>& stages) {
  const auto chunks = static_cast<std::int64_t>(stages.size()) / strategy_.pp;
  const bool equal = are_equal(stages, 0), light_ends = !equal && are_equal(stages, 1);
  if (legacy_ || (!equal && !light_ends)) {
    if (!legacy_)
      return add("pipeline-model-parallel-layout", layout_text(stages, model_.mtp_layers),
                 {"strategy.split", "strategy.stage_layers", "strategy.virtual_stages", "strategy.empty_layers"});
    if (!equal) note("strategy.stage_layers", "Megatron-LM of 2021 has as many layers in every stage");
    if (chunks > 1) add("num-layers-per-virtual-pipeline-stage", stages.front(), {"strategy.virtual_stages"});
    return;
  }
  if (chunks > 1) add("num-virtual-stages-per-pipeline-rank", chunks, {"strategy.virtual_stages", "strategy.schedule"});
  if (!light_ends) return;
  add_switch("account-for-embedding-in-pipeline-split", {"strategy.split"});
  add_switch("account-for-loss-in-pipeline-split", {"strategy.split"});
}

void MegatronWriter::write_recompute() {
  const std::vector<std::string> keys{"strategy.recompute", "strategy.recompute_modules"};
  if (strategy_.recompute == Recompute::full) {
    add("recompute-granularity", "full", keys);
    const bool block = strategy_.recompute_layers > 0;
    add("recompute-method", block ? "block" : "uniform", {"strategy.recompute_layers"});
    add("recompute-num-layers", std::max<std::int64_t>(strategy_.recompute_layers, 1), {"strategy.recompute_layers"});
  } else if (strategy_.recompute == Recompute::selective || strategy_.recompute_modules != 0) {
    add("recompute-granularity", "selective", keys);
    std::vector<std::string> modules = as_words(value("strategy.recompute_modules"));
    if (strategy_.recompute == Recompute::selective && !modules.empty() &&
        std::find(modules.begin(), modules.end(), "core_attn") == modules.end())
      modules.insert(modules.begin(), "core_attn");
    if (!modules.empty()) add_several("recompute-modules", modules, {"strategy.recompute_modules"});
  } else if (strategy_.recompute == Recompute::per_op) {
    note("strategy.recompute", "Megatron-LM recomputes modules; none here");
  }
}

void MegatronWriter::write_old_recompute() {
  if (strategy_.recompute != Recompute::full) return;
  const bool block = strategy_.recompute_layers > 0;
  add("activations-checkpoint-method", block ? "block" : "uniform", {"strategy.recompute"});
  if (block) add("activations-checkpoint-num-layers", strategy_.recompute_layers, {"strategy.recompute_layers"});
}

void MegatronWriter::write_offload() {
  if (strategy_.offload_modules == 0 || legacy_) return;
  add_switch("fine-grained-activation-offloading", {});
  add_several("offload-modules", as_words(value("strategy.offload_modules")), {"strategy.offload_modules"});
}

void MegatronWriter::write_sharding() {
  if (strategy_.zero == 0 || legacy_) return;
  add_switch("use-distributed-optimizer", {"strategy.zero"});
  if (strategy_.zero >= 2) {
    add_switch("use-megatron-fsdp", {"strategy.zero"});
    add("data-parallel-sharding-strategy", strategy_.zero == 2 ? "optim_grads" : "optim_grads_params",
        {"strategy.zero"});
    add("ckpt-format", "fsdp_dtensor", {});
  }
  if (strategy_.zero_groups() > 1)
    add("num-distributed-optimizer-instances", strategy_.zero_groups(), {"strategy.zero_group"});
}

}  // namespace manyworlds::experiments::jobs

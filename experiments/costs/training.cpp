// Options of a training run, and its failures and checkpoints in seconds.
#include "experiments/costs/training.hpp"

#include "core/base/error.hpp"
#include "core/memory/model_state.hpp"
#include "core/workload/layer/layer_parameters.hpp"

namespace manyworlds::experiments {

using core::choice;
using core::option;

const core::OptionTable<Training>& training_options() {
  static const core::OptionTable<Training> table{
      option("tokens", &Training::tokens, "tokens to train", {1, 1e18}, "tokens"),
      option("budget_gpu_days", &Training::budget_gpu_days,
             "instead of tokens: GPU-days that the whole run may take; of several budgets the tightest binds",
             {1e-6, 1e12}, "GPU-days"),
      option("budget_usd", &Training::budget_usd, "the same in money, at the price of the cluster's GPUs", {1e-6, 1e15},
             "USD"),
      option("budget_days", &Training::budget_days, "the same in days", {1e-6, 1e6}, "days"),
      option("node_mtbf_hours", &Training::node_mtbf_hours,
             "mean time between failures of one node that end the run's step; none given: nothing fails", {1e-6, 1e12},
             "h"),
      option("gpu_mtbf_hours", &Training::gpu_mtbf_hours,
             "the same of one GPU with its share of all else, instead of node_mtbf_hours", {1e-6, 1e12}, "h"),
      choice(
          "checkpoint", &Training::checkpoint, {"none", "sync", "async", "flash"},
          "none: a failure begins the run again; sync: training waits until a checkpoint is in storage; async: until "
          "it is copied to host memory; flash: the same, and the copy outlives its process"),
      option("restart_s", &Training::restart_s,
             "from a failure to the next step, finding it and reading from storage included", {0, 1e7}, "s"),
      option("memory_restart_s", &Training::memory_restart_s,
             "flash: the same from copies in host memory; not given: as restart_s", {0, 1e7}, "s"),
      option("interval_s", &Training::interval_s,
             "work between two checkpoints; not given: the interval with the highest goodput", {1e-3, 1e9}, "s"),
      option("block_s", &Training::block_s,
             "time that training waits for a checkpoint; not given: its bytes over storage_gb_per_s (sync) or "
             "snapshot_gb_per_s",
             {1e-6, 1e7}, "s"),
      option("storage_gb_per_s", &Training::storage_gb_per_s, "write rate of the whole machine to storage", {1e-6, 1e9},
             "GB/s"),
      option("snapshot_gb_per_s", &Training::snapshot_gb_per_s, "copy rate of one GPU to host memory", {1e-6, 1e9},
             "GB/s"),
      option("replicas", &Training::replicas,
             "flash: nodes that keep each part of a checkpoint in memory; with two, the loss of one needs no storage",
             {1, 64}),
      option("node_loss_share", &Training::node_loss_share, "flash: share of failures that take a node's memory",
             {0, 1}, "share"),
      option("loss_e", &Training::loss_e,
             "E of the loss E + A/N^alpha + B/D^beta after D tokens of a model of N parameters; defaults of all five: "
             "Hoffmann et al. 2022, section D.2, equation 10",
             {0, 100}, "nats"),
      option("loss_a", &Training::loss_a, "A of that loss", {0, 1e9}),
      option("loss_b", &Training::loss_b, "B of that loss", {0, 1e9}),
      option("loss_alpha", &Training::loss_alpha, "alpha of that loss", {1e-3, 2}),
      option("loss_beta", &Training::loss_beta, "beta of that loss", {1e-3, 2}),
      choice("loss_experts", &Training::loss_experts, {"refused", "all", "active"},
             "what N counts of a model with experts; refused: a budget for one is, as Hoffmann's law is of dense "
             "models; all: every parameter; active: those that a token visits"),
  };
  return table;
}

std::int64_t checkpoint_bytes(const core::workload::Model& model) {
  const core::memory::ModelState state = core::memory::model_state(model, core::workload::Strategy{}, 0);
  const core::workload::TableBytes tables = core::workload::table_bytes(model, core::workload::Strategy{}, {});
  return state.weights + state.optimizer + tables.weights + tables.optimizer;
}

Checkpoints checkpoints_of(const Training& training, double bytes, double gpus) {
  const double storage_s = training.storage_gb_per_s > 0 ? bytes / (training.storage_gb_per_s * 1e9) : 0;
  switch (training.checkpoint) {
    case CheckpointKind::none:
      return {};
    case CheckpointKind::sync:
      return {training.block_s > 0 ? training.block_s : storage_s, 0, 1};
    case CheckpointKind::async:
    case CheckpointKind::flash:
      break;
  }
  const double block_s = training.block_s > 0 ? training.block_s : bytes / gpus / (training.snapshot_gb_per_s * 1e9);
  return {block_s, storage_s, training.checkpoint == CheckpointKind::flash ? 0 : 1};
}

Failures failures_of(const Training& training, double nodes, double gpus) {
  MANYWORLDS_CHECK(training.fails(), "no mean time between failures");
  Failures result;
  result.mtbf_s =
      3600 * (training.node_mtbf_hours > 0 ? training.node_mtbf_hours / nodes : training.gpu_mtbf_hours / gpus);
  result.restart_s = result.memory_restart_s = training.restart_s;
  if (training.checkpoint != CheckpointKind::flash) return result;
  result.storage_restart_share = training.replicas > 1 ? 0 : training.node_loss_share;
  if (training.memory_restart_s >= 0) result.memory_restart_s = training.memory_restart_s;
  return result;
}

CheckpointPlan checkpoint_plan_of(const Training& training, double bytes, double nodes, double gpus, double work_s) {
  const Failures failures = failures_of(training, nodes, gpus);
  const Checkpoints checkpoints = checkpoints_of(training, bytes, gpus);
  if (training.checkpoint == CheckpointKind::none)
    return {checkpoints, work_s, run_shares(checkpoints, failures, work_s)};
  return best_checkpoint_plan(checkpoints, failures,
                              training.interval_s > 0 ? std::optional(training.interval_s) : std::nullopt);
}

}  // namespace manyworlds::experiments

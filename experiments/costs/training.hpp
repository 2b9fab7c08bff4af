// A whole training run: its length, the failures of its machines, and its checkpoints.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/workload/model/model.hpp"
#include "experiments/costs/checkpointing.hpp"
#include "experiments/costs/scaling_law.hpp"

namespace manyworlds::experiments {

/// none: a failure begins the run again. sync: training waits until a checkpoint is in storage. async: training waits
/// for the copy to host memory, which is lost with its process. flash: the copy outlives the process (Gemini; DLRover's
/// flash checkpoint), so only the loss of a node needs storage.
enum class CheckpointKind : std::uint8_t { none, sync, async, flash };

/// What the law of the loss counts of a model with experts: nothing, as Hoffmann's is of dense models, so that a budget
/// for one is refused; all of its parameters; or those that a token visits.
enum class LossExperts : std::uint8_t { refused, all, active };

/// 0, or a negative number where 0 is a value, means "not given", except for options with a default.
struct Training {
  double tokens = 0;           // tokens to train
  double budget_gpu_days = 0;  // instead of tokens, as are budget_usd and budget_days: the tightest of them binds
  double budget_usd = 0;
  double budget_days = 0;
  double node_mtbf_hours = 0;  // mean time between failures of one node
  double gpu_mtbf_hours = 0;   // the same of one GPU with its share of everything else; neither given: nothing fails
  CheckpointKind checkpoint = CheckpointKind::none;
  double restart_s = -1;         // from a failure to the next step, including the read from storage
  double memory_restart_s = -1;  // flash: the same from copies in host memory; not given: restart_s
  double interval_s = 0;         // work between checkpoints; not given: the best interval
  double block_s = 0;            // time that training waits for a checkpoint; not given: from bytes and rates
  double storage_gb_per_s = 0;   // rate at which the whole machine writes to storage
  double snapshot_gb_per_s = 0;  // rate at which one GPU copies to host memory
  std::int64_t replicas = 1;     // flash: nodes that keep each part; two or more survive the loss of one
  /// flash: share of failures that lose a node's memory. About 78 % of the interruptions of Llama 3 405B were confirmed
  /// or suspected hardware failures (Grattafiori et al. 2024, section 3.3.4); a process that only crashes keeps its
  /// memory.
  double node_loss_share = 0.78;
  // The law of the loss that a budget leads to; see ScalingLaw.
  double loss_e = ScalingLaw{}.e, loss_a = ScalingLaw{}.a, loss_b = ScalingLaw{}.b;
  double loss_alpha = ScalingLaw{}.alpha, loss_beta = ScalingLaw{}.beta;
  LossExperts loss_experts = LossExperts::refused;

  bool fails() const { return node_mtbf_hours > 0 || gpu_mtbf_hours > 0; }
  bool has_budget() const { return budget_gpu_days > 0 || budget_usd > 0 || budget_days > 0; }
  ScalingLaw loss_law() const { return {loss_e, loss_a, loss_b, loss_alpha, loss_beta}; }
};

const core::OptionTable<Training>& training_options();

/// Returns the bytes of a whole checkpoint: weights and optimizer states as stored in memory, each once.
std::int64_t checkpoint_bytes(const core::workload::Model& model);

/// Returns the cost of a checkpoint of `bytes` bytes on `gpus` GPUs. Each GPU copies an equal share (Megatron-LM's
/// fully parallel save), and storage writes all bytes at its rate.
Checkpoints checkpoints_of(const Training& training, double bytes, double gpus);

/// Returns the failures of the whole machine. Requires fails().
Failures failures_of(const Training& training, double nodes, double gpus);

/// Returns the checkpoint plan of a run; `work_s`, its work, matters only without checkpoints. Requires fails().
CheckpointPlan checkpoint_plan_of(const Training& training, double bytes, double nodes, double gpus, double work_s);

}  // namespace manyworlds::experiments

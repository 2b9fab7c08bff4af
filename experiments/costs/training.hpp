// A whole training run: what it has to train, how its machines fail, and how it keeps what it has done.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/workload/model/model.hpp"
#include "experiments/costs/checkpointing.hpp"

namespace manyworlds::experiments {

/// none: a failure begins the run again. sync: training waits until a checkpoint is in storage. async: it waits for the
/// copy to host memory, which is lost with its process. flash: that copy outlives the process (Gemini; DLRover's flash
/// checkpoint), so only the loss of a node needs storage.
enum class CheckpointKind : std::uint8_t { none, sync, async, flash };

/// Absent (0, or less where 0 is a value) until given, but for what has a default.
struct Training {
  double tokens = 0;           // to train
  double node_mtbf_hours = 0;  // of one node, or
  double gpu_mtbf_hours = 0;   // of one GPU with its share of all else; neither: nothing fails
  CheckpointKind checkpoint = CheckpointKind::none;
  double restart_s = -1;         // from a failure to the next step, with reading from storage
  double memory_restart_s = -1;  // of flash: from the copies in host memory; absent: as restart_s
  double interval_s = 0;         // of work between checkpoints; absent: the best
  double block_s = 0;            // that training waits for one; absent: by bytes and rates
  double storage_gb_per_s = 0;   // that the whole machine writes to storage
  double snapshot_gb_per_s = 0;  // that one GPU copies to host memory
  std::int64_t replicas = 1;     // of flash: nodes that keep each part; two or more outlive the loss of one
  /// Of flash: share of failures that take a node's memory with them. Some 78 % of the interruptions of Llama 3 405B
  /// were confirmed or suspected hardware (Grattafiori et al. 2024, section 3.3.4); a process that only crashed keeps
  /// it.
  double node_loss_share = 0.78;

  bool fails() const { return node_mtbf_hours > 0 || gpu_mtbf_hours > 0; }
};

const core::OptionTable<Training>& training_options();

/// Bytes of a whole checkpoint: weights and optimizer states as they are in memory, each once.
std::int64_t checkpoint_bytes(const core::workload::Model& model);

/// What a checkpoint of so many bytes costs on so many GPUs. Each GPU copies an equal share of it (Megatron-LM's fully
/// parallel save), and storage takes `bytes` at its rate.
Checkpoints checkpoints_of(const Training& training, double bytes, double gpus);

/// Needs fails().
Failures failures_of(const Training& training, double nodes, double gpus);

/// How the run keeps its work of `work_s` (of use without checkpoints alone). Needs fails().
CheckpointPlan plan_of(const Training& training, double bytes, double nodes, double gpus, double work_s);

}  // namespace manyworlds::experiments

// Who takes part in a transfer of weights: the ranks that hold a model together, and the GPUs that need it.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments::phases {

/// As GPUs of the cluster.
struct WeightsRoute {
  std::vector<std::vector<std::uint32_t>> gatherers;  // groups that each hold the model together; empty: none gathers
  std::vector<std::uint32_t> receivers;               // the first one sends, the others receive; empty: none is sent

  bool moves() const { return !gatherers.empty() || !receivers.empty(); }
};

/// GPUs of a pool, which follow each other, and what runs on them.
struct PoolOfModel {
  ExperimentConfig config;
  std::uint32_t first_gpu = 0;
  std::int64_t gpus = 0;
};

/// Returns how many ranks hold a model together: those of its layout, with experts as many as hold them all; under
/// ZeRO 3 all that share its weights.
std::int64_t ranks_with_model(const core::workload::Strategy& strategy);

/// Who gets what the first trainer sends: the replicas alone (OpenRLHF's and slime's groups), or all trainers too
/// (NeMo-RL, whose collective has training workers and inference workers), so that it leaves its node by all NICs.
enum class BroadcastGroup : std::uint8_t { first_trainer, all_trainers };

/// Returns the way of a model's weights to replicas on the same GPUs: nothing moves between equal layouts, and between
/// others all ranks gather.
WeightsRoute route_on_same_gpus(const PoolOfModel& trained, const PoolOfModel& used);

/// The same to other GPUs: the ranks that hold the model together gather it, and the first trainer sends it.
WeightsRoute route_to_other_gpus(const PoolOfModel& trained, const PoolOfModel& used, BroadcastGroup group);

}  // namespace manyworlds::experiments::phases

// Jobs of Megatron-Bridge: scripts/training/run_recipe.py with the recipe vanilla_gpt_pretrain_config, whose settings
// are Megatron-Core's own, or one that fine-tunes Llama 3 with pairs of low rank (recipes.hpp), and KEY=VALUE overrides
// (NVIDIA-NeMo/Megatron-Bridge @067f987). Other recipes are programs in Python, which are not run here.
#pragma once

#include "experiments/jobs/emitted_job.hpp"
#include "experiments/jobs/low_rank_pairs.hpp"
#include "experiments/megatron/arguments.hpp"

namespace manyworlds::experiments::jobs {

bool is_bridge_script(const JobFile& file);

/// A launch: the arguments of Megatron-LM that it stands for, and what these do not say.
struct BridgeLaunch {
  JobArguments arguments;
  std::string model;     // of the catalog; empty: that of the arguments
  std::string sequence;  // the recipe's own length of samples; empty: that of the arguments
  LowRankPairs pairs;
};

/// Throws as read_bridge_script().
BridgeLaunch bridge_launch(const JobFile& file, const JobOptions& options);

/// Returns the arguments of a launch.
JobArguments bridge_arguments(const JobFile& file, const JobOptions& options);

/// Returns the job of a launch script. Throws InputError with file and line for another recipe, and for a field that is
/// not known or not modelled.
Job read_bridge_script(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// Returns a launch script: torchrun with run_recipe.py and the overrides. Throws InputError, which names the key, for
/// what the recipe's model cannot have.
EmittedJob emit_bridge(const Settings& experiment, const Job* like);

}  // namespace manyworlds::experiments::jobs

// The arguments of Megatron-LM with which it runs an experiment, and the script that launches it.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/batch_job.hpp"
#include "experiments/jobs/emitted_job.hpp"

namespace manyworlds::experiments::jobs {

/// An argument, and the settings that it stands for.
struct LaunchArgument {
  std::string name;  // without its dashes
  std::vector<std::string> values;
  std::vector<std::string> keys;
};

struct MegatronLaunch {
  LaunchSize size;
  bool of_2021 = false;  // the arguments are those of Megatron-LM of 2021
  std::vector<LaunchArgument> model, layout, software;
  std::vector<std::string> notes;  // settings that no argument says: each begins with its key
};

/// Returns the arguments with which Megatron-LM runs an experiment: those of 2021 if its software is megatron-2021.
/// Throws InputError, which names the key, for what it cannot run at all.
MegatronLaunch megatron_launch(const Settings& experiment);

/// Returns an argument by name; null if the launch does not have it.
const LaunchArgument* find_in(const MegatronLaunch& launch, const std::string& name);

/// Returns a launch script: torchrun with pretrain_gpt.py and the arguments.
EmittedJob emit_megatron(const Settings& experiment, const Job* like);

/// Returns the line of a script that gives CUDA as many connections as Megatron-LM asserts: one, so that kernels run in
/// the order in which they are launched; more where FSDP or the exchange of tokens runs beside them.
std::string connections_line(const Settings& experiment);

/// Returns a bash array NAME=(…) with one argument on each line, and comments where the job of --like differs.
std::string argument_array(const std::string& name, const std::vector<LaunchArgument>& arguments,
                           const JobChanges& changes);

}  // namespace manyworlds::experiments::jobs

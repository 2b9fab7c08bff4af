// The ways back: what an experiment can be launched with.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/jobs/emitted_job.hpp"

namespace manyworlds::experiments::jobs {

struct EmitTarget {
  std::string name;  // "megatron"
  std::string help;  // what is emitted
  EmitJob emit;
  std::string file;       // what such a file is called, which tells its kind where it is read: "train.sh"
  std::string stack;      // of the catalog: the software of such a file, unless it says another
  std::string framework;  // of the jobs that such a file is one of: "Megatron-LM"
  std::string stacks;     // how the names of the stacks begin that stand for it: "megatron-"
  std::vector<std::string> layouts = {};  // conditions of a sweep that layouts meet which it can run
};

/// Returns all targets, in the order in which they are listed.
const std::vector<EmitTarget>& emit_targets();
/// Returns a target by name. Throws InputError, which names the known ones.
const EmitTarget& emit_target(const std::string& name);

using OwnEmission = std::optional<std::pair<const EmitTarget*, EmittedJob>>;

/// Emits an experiment for the framework of the job that it was made from (null: there is none), else for that of its
/// own software, else for the first that can run it at all; nothing if none can.
OwnEmission emit_own(const Settings& experiment, const Job* like, const Catalog& catalog);

/// Emits an experiment, and reads the result back: what such a job has otherwise, and no note of the target's says, is
/// a note too. Throws InputError if the target cannot run the experiment at all.
EmittedJob emit_job(const EmitTarget& target, const Settings& experiment, const Job* like, const Catalog& catalog);

/// Returns the emitted file, with `title` and the notes as comments.
std::string file_text(const EmittedJob& job, const std::vector<std::string>& title);

}  // namespace manyworlds::experiments::jobs

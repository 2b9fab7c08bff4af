// An experiment as what a framework is launched with: the way back from settings.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"
#include "experiments/keys/settings_map.hpp"

namespace manyworlds::experiments::jobs {

struct EmittedJob {
  std::string text;                // a file, or the lines of a command, with comments where the job of --like differs
  std::vector<std::string> notes;  // what the framework cannot express, one line each
  std::vector<std::string> dropped = {};  // what differs from the job of --like and has no line of its own in the text
  std::string other_stack = {};  // whose step time the experiment's is, if such a job is of another; empty: of the same
  std::vector<std::string> unknown = {};          // of the model, and part of what it is; with how to say it
  std::vector<std::string> beside_the_step = {};  // what that job has that changes no step, but may change the model
};

/// Returns what launches an experiment, whose settings have every default filled in. `like` is the job that it was made
/// from; null if there is none. Comments begin with # and stand on lines of their own or at the end of one. Throws
/// InputError, which names the key, if the framework cannot run the experiment at all.
using EmitJob = EmittedJob (*)(const Settings& experiment, const Job* like);

/// Returns a value of settings as a text: true, 8, 0.5, none, layernorm+moe_act.
std::string text_of(const Settings& experiment, const std::string& key);

/// Compares an experiment with the job that it was made from, for comments beside what is emitted.
class JobChanges {
 public:
  JobChanges(const Settings& experiment, const Job* like);

  /// Returns why what stands for `keys` differs from the job, as in "was 2 in train.sh:14: strategy.tp is 4"; empty if
  /// the job has the same values, says nothing of them, or is not there.
  std::string of(const std::vector<std::string>& keys) const;
  /// Returns the same of every setting of the job that no line of `text` tells.
  std::vector<std::string> untold(const std::string& text) const;

 private:
  const Settings& experiment_;
  const Job* like_;
};

/// Returns `line` with a comment behind it; as it is if the comment is empty.
std::string commented(const std::string& line, const std::string& comment);

}  // namespace manyworlds::experiments::jobs

// Follows a launch script without executing anything, and finds the commands that it would run.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/shell/environment.hpp"
#include "experiments/shell/state.hpp"

namespace manyworlds::experiments::shell {

/// A command that the script runs, with all that runs it: srun, torchrun, bash -c, ….
struct Launch {
  std::vector<Text> words;
  Place place;
  std::string condition;  // why it is not known whether it runs; empty: it runs
};

/// A file that the script reads as a part of itself and that is not there: what is known until then.
struct Handover {
  std::string name;
  Place place;
  State state;
};

struct FollowedScript {
  std::vector<Launch> launches;                // in order
  std::vector<Handover> handovers;             // in order
  std::vector<std::string> files;              // that were read
  std::map<std::string, std::string> assumed;  // variables taken at their defaults or as not set
  State state;                                 // at the end
  std::vector<Text> texts;                     // scripts within the script, such as here-documents for sbatch
  std::vector<Text> documents;                 // other here-documents, such as files that cat writes
};

struct ScriptInput {
  std::string text, file;
  std::map<std::string, std::string> given;  // variables of the environment
  std::map<std::string, std::string> batch;  // those that the batch system sets as the script asks it to
  /// Returns the text of a file beside the script; nothing if there is none.
  std::function<std::optional<std::string>(const std::string& name)> sibling;
  /// Returns whether the words of a command are those that are looked for.
  std::function<bool(const std::vector<Text>& words)> is_launch;
  bool given_may_be_unread = false;  // variables of the environment that the script never reads are no mistake
};

/// Throws InputError for what cannot be parsed, for a variable given that the script never reads, and for a script that
/// nests or repeats beyond what a launch script does.
FollowedScript follow(const ScriptInput& input);

}  // namespace manyworlds::experiments::shell

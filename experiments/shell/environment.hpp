// Where a script's texts come from beside the script, and the limits of what is followed.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "experiments/shell/state.hpp"

namespace manyworlds::experiments::shell {

/// What is shared while one script is followed.
struct Environment {
  std::map<std::string, std::string> given;    // variables that the user gives, with --env
  std::map<std::string, std::string> batch;    // variables that the batch system sets as the script asks it to
  std::map<std::string, std::string> assumed;  // variables taken at their defaults or as not set
  std::set<std::string> used;                  // names of `given` that the script read

  /// Counts the work that a step costs; throws InputError at `place` when it is more than a script should need.
  void work(std::size_t amount, const Place& place);

 private:
  std::size_t work_ = 0;
};

/// Returns whether Slurm, a launcher or the login sets a variable, so that its default says nothing.
bool is_set_elsewhere(const std::string& name);

/// Returns whether a variable that is set elsewhere says how many nodes, tasks or GPUs there are: of these a script's
/// default is what it means to run on.
bool is_size(const std::string& name);

/// Returns a mark for a variable that the script does not set, or for one that is set elsewhere.
std::string unset_variable(const std::string& name);
/// Returns the name of the variable if a whole text is the mark of one that the script does not set; otherwise empty.
std::string name_if_unset(const std::string& text);

}  // namespace manyworlds::experiments::shell

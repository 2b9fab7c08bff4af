// Commands of bash itself that change what is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/shell/state.hpp"

namespace manyworlds::experiments::shell {

/// Returns whether a command declares variables: export, declare, local, readonly, typeset.
bool is_declaring(const std::string& name);
/// Applies `declare -A name` and words of the form NAME=value that are known only now.
void declare(const std::vector<Text>& words, State& state);

/// Follows exit, shift, set, unset, read and their kind. Returns the status; nothing if this is no such command.
std::optional<Truth> follow_builtin(const std::vector<Text>& words, State& state);

/// Variables that an arithmetic command assigns are unknown after it.
void forget_assigned(const std::string& expression, State& state, const std::string& why);

/// Returns what echo, basename, dirname or expr print; nothing if it is not known.
std::optional<std::string> printed_by_builtin(const std::vector<Text>& words);

/// Returns the index of bash or sh among the words of a command; the number of words if there is none.
std::size_t index_of_shell(const std::vector<Text>& words);

/// Returns whether a file sets up a login, a virtual environment or modules, not the job.
bool is_login_file(const std::string& path);

}  // namespace manyworlds::experiments::shell

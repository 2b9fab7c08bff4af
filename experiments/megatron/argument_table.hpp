// What each argument of Megatron-LM means here: the settings that follow from it, or why there are none.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/known_names.hpp"

namespace manyworlds::experiments::jobs {

/// Returns all arguments, those with settings first. Those whose `values` are "*" are read by the code of reader.hpp.
const KnownNames& megatron_arguments();
/// Returns an argument by name; null if there is none.
const KnownName* find_argument(const std::string& name);

/// Returns whether an argument that is one setting counts only in models with experts.
bool is_of_experts(const KnownName& known);

/// Returns those that no setting follows from.
std::vector<NameGroup> other_arguments();

}  // namespace manyworlds::experiments::jobs

// Scripts with which shells complete verbs, options and their values, made from the verbs' own tables.
#pragma once

#include <string>
#include <vector>

#include "farm/cli/parsing/option_table.hpp"

namespace manyworlds::farm::commands {

/// The shells that have one: "bash", "zsh", "fish".
const std::vector<std::string>& completed_shells();

/// Returns the script for one of completed_shells(). It calls `manyworlds completion names KIND` for names of the
/// catalog.
std::string completion_script(const std::string& shell, const std::vector<VerbTable>& verbs);

}  // namespace manyworlds::farm::commands

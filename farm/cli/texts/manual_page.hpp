// Manual pages in man(7), made from the verbs' own help.
#pragma once

#include <string>
#include <vector>

#include "farm/cli/parsing/option_table.hpp"

namespace manyworlds::farm::commands {

/// The page manyworlds(1), which names the verbs and the exit codes.
std::string program_page(const std::vector<VerbTable>& verbs);
/// The page manyworlds-VERB(1).
std::string verb_page(const VerbTable& verb);

}  // namespace manyworlds::farm::commands

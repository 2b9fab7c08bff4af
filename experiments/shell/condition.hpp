// Conditions: test, [ ] and [[ ]].
#pragma once

#include <vector>

#include "experiments/shell/environment.hpp"

namespace manyworlds::experiments::shell {

/// Returns whether a condition holds, whose words are expanded. In [[ ]] the right side of == and != is a pattern.
/// Tests of files are unknown; a variable that the script does not set is empty, which `environment` remembers.
Truth condition_value(const std::vector<Text>& words, bool double_brackets, Environment& environment);

/// Returns why the value of a condition is not known.
std::string why_not_known(const std::vector<Text>& words);

}  // namespace manyworlds::experiments::shell

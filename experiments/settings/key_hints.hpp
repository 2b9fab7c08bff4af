// Which key is meant by an unknown one: by how it is written, by its words, and by what it is given.
#pragma once

#include <string>

#include "experiments/keys/section.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// Returns a hint about the intended key for an unknown key in `section` that is given `value`; a node without content
/// says nothing of what it is given. Keys of other sections are hinted at only if they can take the value.
std::string key_hint(const Section& section, const std::string& dotted, const import::Node& value);

}  // namespace manyworlds::experiments

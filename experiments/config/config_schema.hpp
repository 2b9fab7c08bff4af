// The configuration schema: every key of an experiment, as one tree built from the option tables and registries.
// Readers, axes, the JSON Schema and suggestions walk this tree.
#pragma once

#include <string>

#include "experiments/keys/section.hpp"

namespace manyworlds::experiments {

/// Returns the root, whose options and subsections are the keys of `base`.
const Section& config_schema();

/// Returns the section that catalog `kind` fills.
const Section& catalog_section(const std::string& kind);

}  // namespace manyworlds::experiments

// The teacher of a model, whose values may be those of the catalog.
#pragma once

#include <string>

#include "experiments/catalog/catalog.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// Returns `value`, which was given for model.teacher at `at`, as settings hold it: a mapping in one line that names no
/// entry of the catalog, or "" if there is no teacher. Throws InputError, with file and line.
std::string teacher_text(const Catalog& catalog, const std::string& value, const import::Node& at);

}  // namespace manyworlds::experiments

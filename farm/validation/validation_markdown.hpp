// The accuracy table of docs/accuracy.md: every family, the worst first, with the accuracy target that the project set
// for it.
#pragma once

#include <string>

#include "farm/validation/validation_report.hpp"

namespace manyworlds::farm {

/// Columns are the same whatever was compared; a missing value is a dash.
std::string validation_markdown(const Validation& validation, const experiments::Catalog& catalog);

}  // namespace manyworlds::farm

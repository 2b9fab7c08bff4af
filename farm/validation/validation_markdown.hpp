// The accuracy table of the README: every family, the worst first, beside the bar that the project set itself for it.
#pragma once

#include <string>

#include "farm/validation/validation_report.hpp"

namespace manyworlds::farm {

/// Columns and marks are the same whatever was compared; figures that were not made are a dash.
std::string validation_markdown(const Validation& validation, const experiments::Catalog& catalog);

}  // namespace manyworlds::farm

// A scatter plot of predicted against measured times: both axes logarithmic, one colour per family, plain SVG whose
// bytes depend only on the rows.
#pragma once

#include <string>
#include <vector>

#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

std::string validation_picture(const std::vector<ComparedRow>& rows);

}  // namespace manyworlds::farm

// Measured against predicted times as a picture: both axes logarithmic, one colour for each family, plain SVG whose
// bytes depend on the rows alone.
#pragma once

#include <string>
#include <vector>

#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

std::string validation_picture(const std::vector<Compared>& rows);

}  // namespace manyworlds::farm

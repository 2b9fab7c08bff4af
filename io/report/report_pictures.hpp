// The pictures of a report as SVG, for formats without scripts.
#pragma once

#include <string>

#include "io/report/report_blocks.hpp"

namespace manyworlds::io {

std::string draw_svg(const Report& report, const Picture& picture);

}  // namespace manyworlds::io

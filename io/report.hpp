// A run as one self-contained page: what came out, what bounds the best, what failed and why, how it was computed.
#pragma once

#include <string>

#include "io/top.hpp"

namespace manyworlds::io {

/// HTML that needs nothing from elsewhere. The same results make the same bytes.
std::string report_page(const Results& results, const Ranking& ranking);

}  // namespace manyworlds::io

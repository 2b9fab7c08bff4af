// Which numbers of a table are values, and which say that nobody knows.
#pragma once

#include <cstddef>

#include "io/results/table.hpp"

namespace manyworlds::io {

/// Returns whether a row has a value in a column of numbers: not NaN, and as peak memory not 0, which is that of
/// programs that do not say what they allocate.
bool is_known(const Column& column, std::size_t row);

}  // namespace manyworlds::io

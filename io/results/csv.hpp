// A table as comma-separated values (RFC 4180), for readers of neither HDF5 nor JSON.
#pragma once

#include <string>

#include "io/results/table.hpp"

namespace manyworlds::io {

/// Returns a line of column names, then a line for each row. Numbers are written exactly; NaN is an empty field. Texts
/// are quoted by core::csv_field(). Lines end with a line feed.
std::string csv(const Table& table);

}  // namespace manyworlds::io

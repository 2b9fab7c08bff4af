// A table as comma-separated values (RFC 4180), for whoever reads neither HDF5 nor JSON.
#pragma once

#include <string>

#include "io/results/table.hpp"

namespace manyworlds::io {

/// A line of column names, then a line for each row. Numbers are told exactly; one that is not a number is an empty
/// field. Texts are core::csv_field(). Lines end with a line feed.
std::string csv(const Table& table);

}  // namespace manyworlds::io

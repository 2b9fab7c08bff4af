// Tables of measured shapes of GEMMs, one for each GPU that was measured, compiled in from catalog/shapes/*.csv.
#pragma once

#include <string>
#include <vector>

#include "core/compute/gemm_shapes.hpp"

namespace manyworlds::experiments {

struct ShapesFile {
  const char* name;  // name of the file without .csv: that of the GPU in the catalog
  const char* text;
};
/// Returns the tables, sorted by name.
const std::vector<ShapesFile>& compiled_shapes();

/// Returns the values of option measured_shapes: none, and the names of the tables.
std::vector<std::string> shape_table_names();

/// Returns the shapes of a table. Its first line names columns `format`, `n`, `k`, and sizes of m; a line is of one
/// format, n and k, and has the measured time of each m as a percentage of the modelled one, or nothing. Throws
/// InputError with the table's name and the line for anything else.
core::compute::MeasuredShapes parse_shapes(std::string_view text, const std::string& name);

/// Gives a GPU the table that its option measured_shapes names.
void set_measured_shapes(core::compute::Gpu& gpu);

}  // namespace manyworlds::experiments

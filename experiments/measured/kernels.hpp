// Measured kernels: each row of a table becomes the kernels that ran, or a reason why they are not modelled. Tables are
// read as their sources publish them (aiconfigurator, NeuSight); README.md describes what their operators contain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compute/attention.hpp"
#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct MeasuredKernel {
  std::string id, family;  // kind of kernel, number format and GPU, with the range of the time
  int line = 0;            // line in the file
  double measured_us = 0;
  std::string gpu;          // name in the catalog
  std::string unsupported;  // why it cannot be predicted; empty if it can
  std::string detail;       // of that reason, for this row
  double predicted_us = 0;  // if it can be predicted
};

/// Statistics separate kernels that are shorter than this: launches and other fixed times dominate them.
inline constexpr double kLongKernelUs = 50, kLongMemoryBoundUs = 20;

/// Returns whether a header has the columns of such a table.
bool is_kernels_table(const import::CsvHeader& header);

/// Returns all rows in order, with their predictions. Errors of a row are stored in `unsupported`.
std::vector<MeasuredKernel> read_kernels(const import::CsvTable& table, const Catalog& catalog);

}  // namespace manyworlds::experiments::measured

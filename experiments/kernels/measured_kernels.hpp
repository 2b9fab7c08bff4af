// CSV tables of measured kernels, submodules and layers; docs/formats.md describes the columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compute/measured.hpp"

namespace manyworlds::experiments::import {

/// Parses a table; `name` is the file name in messages. Throws InputError with the line for an unknown column or word,
/// a size or time that is missing or out of range, and two different times for the same item.
core::compute::MeasuredTimes parse_measured_kernels(std::string_view text, const std::string& name);

/// A row to write; `source` is informational.
struct KernelRow {
  core::compute::MeasurementKey item;
  core::Time time_ps = 0;
  std::string source;
};
/// Returns a table from which parse_measured_kernels() reads the same times.
std::string measured_kernels_csv(const std::vector<KernelRow>& rows);

}  // namespace manyworlds::experiments::import

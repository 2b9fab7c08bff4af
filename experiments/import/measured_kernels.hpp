// Tables of measured kernels, submodules and layers, as CSV; docs/formats.md describes the columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compute/measured.hpp"

namespace manyworlds::experiments::import {

/// Throws InputError, with `name` and the line, for anything that is not such a table: an unknown column or word, a
/// size or a time that is missing or out of range, two times for the same thing.
core::compute::MeasuredTimes parse_measured_kernels(std::string_view text, const std::string& name);

/// A row to write; `source` is for people.
struct KernelRow {
  core::compute::Measurable what;
  core::Time time_ps = 0;
  std::string source;
};
/// A table that parse_measured_kernels reads to the same times.
std::string measured_kernels_csv(const std::vector<KernelRow>& rows);

}  // namespace manyworlds::experiments::import

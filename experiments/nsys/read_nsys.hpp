// Exports of Nsight Systems (`nsys export --type sqlite`) as stream programs (docs/traces_nsys.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/profiler_traces/import_traces.hpp"

namespace manyworlds::experiments::nsys {

/// Returns whether a file begins as a database of SQLite does.
bool is_nsys_export(std::string_view head);

/// Reads exports: of one rank each, or of several; each GPU of each process that ran kernels on it is a rank. A step is
/// the N of a range of NVTX such as `iteration N`. Throws core::InputError for what read_export() and
/// profiler::import_traces() refuse.
programs::Imported read_nsys(const std::vector<std::string>& paths, const profiler::ReadOptions& options = {});

}  // namespace manyworlds::experiments::nsys

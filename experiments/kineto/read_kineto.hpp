// Traces of PyTorch's profiler (Kineto), a file per rank, as stream programs (docs/traces_kineto.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/profiler_traces/import_traces.hpp"

namespace manyworlds::experiments::kineto {

/// Returns whether a text begins as a trace of Kineto's does.
bool is_kineto_trace(std::string_view text);

/// Reads traces, each compressed by gzip or not; a step is the N of ProfilerStep#N. Throws core::InputError with the
/// file for one that cannot be read, is no trace or is torn, has no operations of a device, and for what
/// profiler::import_traces() refuses.
programs::Imported read_kineto(const std::vector<std::string>& paths, const profiler::ReadOptions& options = {});

/// The same of traces that have been parsed.
programs::Imported import_traces(std::vector<profiler::RankTrace> traces, const profiler::ReadOptions& options = {});

}  // namespace manyworlds::experiments::kineto

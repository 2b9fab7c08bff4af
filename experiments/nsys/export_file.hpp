// The export of one report of Nsight Systems: the traces of its ranks, which are the GPUs that a process ran kernels
// on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/nsys/nccl_calls.hpp"
#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::nsys {

/// Where a rank ran.
struct RankPlace {
  std::int64_t process = 0, device = 0;
};

/// What was counted in an export.
struct ExportCounts {
  std::int64_t graph_kernels = 0;           // launched by graphs of CUDA
  std::int64_t left_out = 0;                // copies and sets on GPUs on which their process ran no kernel
  std::int64_t foreign_waits = 0;           // for events of another GPU of the process
  std::int64_t unsized_calls = 0;           // of NCCL, without a payload that has the bytes
  std::int64_t graphs_without_kernels = 0;  // launches of graphs whose kernels are not there
};

struct Exported {
  std::vector<profiler::RankTrace> traces;  // by process and GPU, ascending
  std::vector<RankPlace> places;            // by trace
  ExportCounts counts;
};

/// Reads an export. Its communicators are added to `communicators`, with traces numbered from `first_number` on. Throws
/// core::InputError for what is no database or damaged, for one that is no export with CUDA, for a table that lacks a
/// column that is needed, for kernels of several processes without their process, and for graphs of CUDA that were
/// traced as wholes.
Exported read_export(const std::string& path, std::uint32_t first_number, Communicators& communicators);

}  // namespace manyworlds::experiments::nsys

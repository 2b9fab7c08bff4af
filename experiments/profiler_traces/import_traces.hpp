// Traces of a profiler, one per rank, as stream programs (docs/traces_kineto.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/profiler_events/rank_trace.hpp"
#include "experiments/profiler_traces/rank_program.hpp"
#include "experiments/profiler_traces/terms.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::profiler {

struct ReadOptions {
  std::optional<std::int64_t> step;  // its operations alone; nothing: all
  Collectives collectives = Collectives::simulated;
  bool alike = false;  // the only trace stands for all ranks of its job, as of data parallelism without pipeline stages
  std::vector<std::string> host_traces;  // of PyTorch: execution traces of the hosts, one for each trace, or none
  /// Is told how many bytes of a file, as it lies on the disk, have been read.
  std::function<void(const std::string& path, std::int64_t bytes)> progress;
};

/// Returns the rank in the name of a file, such as `rank-3.pt.trace.json.gz` or `trace_rank3.json`; nothing if it has
/// none.
std::optional<std::int64_t> rank_in_name(const std::string& path);

/// Makes programs of traces. Ranks are numbered by position in ascending order of the traces' own ranks, which the
/// account tells. Collectives of groups with ranks whose traces are not there are kernels of the times that they took.
/// Throws core::InputError with the file for one that has not the step, for two files of one rank, for world sizes that
/// contradict, and with `alike` for several files or one that does not say how many ranks there are.
programs::Imported import_traces(std::vector<RankTrace> traces, const ReadOptions& options, const ProfilerTerms& terms);

}  // namespace manyworlds::experiments::profiler

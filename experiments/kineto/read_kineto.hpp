// Traces of PyTorch's profiler (Kineto), a file per rank, as stream programs (docs/traces_kineto.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/kineto/rank_program.hpp"
#include "experiments/kineto_events/rank_trace.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::kineto {

struct ReadOptions {
  std::optional<std::int64_t> step;  // the N of ProfilerStep#N: its operations alone; nothing: all
  Collectives collectives = Collectives::simulated;
  bool alike = false;  // the only trace stands for all ranks of its job, as of data parallelism without pipeline stages
  /// Is told how many bytes of a file, as it lies on the disk, have been read.
  std::function<void(const std::string& path, std::int64_t bytes)> progress;
};

/// Returns whether a text begins as a trace of Kineto's does.
bool is_kineto_trace(std::string_view text);

/// Reads traces, each compressed by gzip or not. Ranks are numbered by position in ascending order of the traces' own
/// ranks, which the account tells. Collectives of groups with ranks whose traces are not there are kernels of the times
/// that they took. Throws core::InputError with the file for one that cannot be read, is no trace or is torn, has no
/// operations of a device or not the step, for two files of one rank, for world sizes that contradict, and with `alike`
/// for several files or one that does not say how many ranks there are.
programs::Imported read_kineto(const std::vector<std::string>& paths, const ReadOptions& options = {});

/// The same of traces that have been parsed.
programs::Imported import_traces(std::vector<RankTrace> traces, const ReadOptions& options = {});

}  // namespace manyworlds::experiments::kineto

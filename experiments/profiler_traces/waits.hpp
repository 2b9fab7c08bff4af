// What waits for an operation of the device besides those behind it on its stream: operations of other streams, by
// events, and calls of the host.
//
// With cuda_sync events in a trace (enable_cuda_sync_events of PyTorch's profiler) both are exact. Without, an event
// has no handle: which operation is awaited is inferred from the order of calls, as PyTorch makes them, and dropped
// where the times contradict it.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/profiler_traces/launches.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::profiler {

/// An operation comes after another; both are indices in RankTrace::ops.
struct OpEdge {
  std::uint32_t from = 0, to = 0;
  auto operator<=>(const OpEdge&) const = default;
};

/// A call of the host returns after an operation.
struct CallWait {
  std::uint32_t call = 0, op = 0;
  auto operator<=>(const CallWait&) const = default;
};

struct Waits {
  std::vector<OpEdge> edges;      // ascending, each once
  std::vector<CallWait> of_host;  // ascending, each once
  programs::Dependencies between_streams, host;
  std::int64_t of_library = 0;  // waits of streams of NCCL's own
  std::int64_t unresolved = 0;  // waits of a stream of which nothing tells what for
};

Waits find_waits(const RankTrace& trace, const Launches& launches);

}  // namespace manyworlds::experiments::profiler

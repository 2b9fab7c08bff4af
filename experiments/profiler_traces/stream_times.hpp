// How long each operation of the device keeps its stream, and from when on it could have run.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/profiler_traces/launches.hpp"
#include "experiments/profiler_traces/waits.hpp"

namespace manyworlds::experiments::profiler {

/// The longest time, in nanoseconds, that is taken for the device's own before it starts what it has been given: after
/// a launch on an idle stream, and between two operations of a stream.
inline constexpr std::int64_t kLaunchLatency = 20'000, kStartGap = 10'000;

struct StreamTimes {
  std::vector<std::int64_t> ready;     // by operation: when all before it on its stream and all it waits for had ended
  std::vector<std::int64_t> occupied;  // by operation, ns
  std::vector<std::uint32_t> before;   // by operation: the one before it on its stream; kNone: it is the first
  std::int64_t gaps = 0;               // ns that are counted with the operations before them
  std::int64_t overlapping = 0;        // operations that started before one before them on their stream had ended
};

/// An operation keeps its stream until it ends, or until the next one starts if that is earlier, as with programmatic
/// launches and graphs; or a little later if the next one had been launched and waited for nothing else.
/// `communicates`, by operation, are those whose time the network decides, which get nothing added.
StreamTimes stream_times(const RankTrace& trace, const Launches& launches, const Waits& waits,
                         const std::vector<bool>& communicates);

}  // namespace manyworlds::experiments::profiler

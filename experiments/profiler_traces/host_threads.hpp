// What the threads of the host did: the launches and the calls that waited, with the time before each of them.
//
// A launch ends when its call does, or when its operation starts if that is earlier; on an idle stream, when the
// operation starts a little later, so that what a launch takes to reach the device is the host's. The thread of the
// backward pass and that which called it take turns: each waits for the other. An operation that started later than all
// that is known of it allows has its delay on a thread that stands for what is not known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/profiler_traces/stream_times.hpp"

namespace manyworlds::experiments::profiler {

inline constexpr std::uint32_t kTakesUp = kNone - 1;  // a stream takes up what it waited for; kNone: nobody knows

struct HostOp {
  std::int64_t duration = 0, end = 0;  // ns; end as recorded
  std::uint32_t thread = 0;            // index in HostThreads::threads
  std::uint32_t name = 0;              // index in RankTrace::names, or one of the two above
};

/// One comes after another: operations of the device, and behind these, from RankTrace::ops.size() on, of the host.
struct Edge {
  std::uint32_t from = 0, to = 0;
  auto operator<=>(const Edge&) const = default;
};

struct HostThreads {
  std::vector<std::string> threads;  // that with the most launches first
  std::vector<HostOp> ops;           // of a thread: in its order
  std::vector<Edge> edges;
  std::int64_t launches = 0, handovers = 0;  // between a thread and that of the backward pass
  std::int64_t unlaunched = 0;               // operations whose launch the trace does not have
  std::int64_t late = 0, lateness = 0;  // operations with a delay that nothing explains, and the sum of these in ns
};

/// `begin` is the time at which all threads begin, at most that of the trace.
HostThreads host_threads(const RankTrace& trace, const Launches& launches, const Waits& waits, const StreamTimes& times,
                         std::int64_t begin);

}  // namespace manyworlds::experiments::profiler

#include "experiments/profiler_traces/stream_times.hpp"

#include <algorithm>

namespace manyworlds::experiments::profiler {

StreamTimes stream_times(const RankTrace& trace, const Launches& launches, const Waits& waits,
                         const std::vector<bool>& communicates) {
  StreamTimes result;
  result.ready.assign(trace.ops.size(), trace.begin);
  result.occupied.assign(trace.ops.size(), 0);
  result.before.assign(trace.ops.size(), kNone);
  std::vector<std::int64_t> awaited(trace.ops.size(), trace.begin);  // by operation: end of what it waits for elsewhere
  for (const OpEdge& edge : waits.edges) awaited[edge.to] = std::max(awaited[edge.to], trace.ops[edge.from].end());
  std::vector<std::uint32_t> last(trace.streams.size(), kNone);
  std::vector<std::int64_t> end(trace.streams.size(), trace.begin);
  for (std::uint32_t number = 0; number < trace.ops.size(); ++number) {
    const DeviceOp& op = trace.ops[number];
    std::int64_t& stream_end = end[op.stream];
    if (std::uint32_t& before = last[op.stream]; before != kNone) {
      std::int64_t& occupied = result.occupied[before];
      const std::int64_t from = trace.ops[before].start, gap = op.start - stream_end;
      const std::uint32_t call = launches.call_of(number);
      const bool was_launched = call == kNone || trace.calls[call].end() <= stream_end;
      occupied = std::min(op.start, stream_end) - from;
      result.overlapping += gap < 0;
      if (gap > 0 && gap <= kStartGap && was_launched && awaited[number] <= stream_end && !communicates[before]) {
        occupied += gap;
        result.gaps += gap;
      }
    }
    result.before[number] = last[op.stream];
    result.ready[number] = std::max(stream_end, awaited[number]);
    last[op.stream] = number;
    stream_end = std::max(stream_end, op.end());
    result.occupied[number] = stream_end - op.start;
  }
  return result;
}

}  // namespace manyworlds::experiments::profiler

#include "experiments/profiler_traces/launches.hpp"

#include <algorithm>
#include <unordered_map>

namespace manyworlds::experiments::profiler {

Launches::Launches(const RankTrace& trace) : trace_(trace), call_of_(trace.ops.size(), kNone) {
  std::unordered_map<std::int64_t, std::uint32_t> by_correlation;
  for (std::uint32_t call = 0; call < trace.calls.size(); ++call) {
    const Call& one = trace.calls[call];
    if ((one.kind == CallKind::launch || one.kind == CallKind::blocking_copy) && one.correlation != 0)
      by_correlation.emplace(one.correlation, call);
  }
  first_.assign(trace.calls.size() + 1, 0);
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
    const auto known = by_correlation.find(trace.ops[op].correlation);
    if (known == by_correlation.end()) continue;
    call_of_[op] = known->second;
    ++first_[known->second + 1];
  }
  for (std::size_t call = 0; call < trace.calls.size(); ++call) first_[call + 1] += first_[call];
  ops_.resize(first_.back());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op)
    if (call_of_[op] != kNone) ops_[next[call_of_[op]]++] = op;
  by_stream_.resize(trace.streams.size());
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op) by_stream_[trace.ops[op].stream].emplace_back(issued(op), op);
  for (std::vector<Issued>& stream : by_stream_) std::sort(stream.begin(), stream.end());
}

std::int64_t Launches::issued(std::uint32_t op) const {
  return call_of_[op] == kNone ? trace_.ops[op].start : trace_.calls[call_of_[op]].start;
}

std::uint32_t Launches::last_before(std::uint32_t stream, std::int64_t time) const {
  const std::vector<Issued>& all = by_stream_[stream];
  const auto from = std::lower_bound(all.begin(), all.end(), Issued{time, 0});
  return from == all.begin() ? kNone : std::prev(from)->second;
}

std::uint32_t Launches::first_from(std::uint32_t stream, std::int64_t time) const {
  const std::vector<Issued>& all = by_stream_[stream];
  const auto from = std::lower_bound(all.begin(), all.end(), Issued{time, 0});
  return from == all.end() ? kNone : from->second;
}

}  // namespace manyworlds::experiments::profiler

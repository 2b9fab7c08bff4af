#include "experiments/profiler_traces/waits.hpp"

#include <algorithm>
#include <unordered_map>

namespace manyworlds::experiments::profiler {
namespace {

// Times are of different clocks, the device's being converted, and may be rounded to microseconds.
constexpr std::int64_t kDeviceTolerance = 1'000, kHostTolerance = 10'000;  // ns
constexpr std::int64_t kTakeUp = 20'000;  // ns, in which a stream takes up what it had to wait for
constexpr std::size_t kRecordsBack = 256;

class Finder {
 public:
  Finder(const RankTrace& trace, const Launches& launches)
      : trace_(trace),
        launches_(launches),
        last_stream_(trace.threads.size(), kNone),
        behind_(trace.threads.size()),
        pending_(trace.threads.size()) {
    std::vector<std::int64_t> end(trace.streams.size(), trace.begin);
    for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
      std::int64_t& stream_end = end[trace.ops[op].stream];
      idle_from_.push_back(stream_end);
      stream_end = std::max(stream_end, trace.ops[op].end());
      by_end_.push_back(op);
    }
    std::sort(by_end_.begin(), by_end_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return trace.ops[a].end() < trace.ops[b].end(); });
  }

  Waits find() {
    for (std::uint32_t call = 0; call < trace_.calls.size(); ++call)
      if (trace_.calls[call].kind == CallKind::record) records_of_[trace_.calls[call].correlation] = call;
    for (std::uint32_t call = 0; call < trace_.calls.size(); ++call) look_at(call);
    sort_once(result_.edges);
    sort_once(result_.of_host);
    return std::move(result_);
  }

 private:
  /// What a thread last did behind the launch of a collective. NCCL itself records an event there and has a stream of
  /// its own wait for it, before the framework records that the collective ended: such a wait is of no other stream.
  enum class Behind : std::uint8_t { nothing, collective, record, wait };

  /// An event that was recorded, behind what the thread had launched last.
  struct Record {
    std::int64_t time = 0;
    std::uint32_t stream = kNone;
  };

  template <class List>
  static void sort_once(List& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  void look_at(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    switch (call.kind) {
      case CallKind::launch:
      case CallKind::blocking_copy:
        return launch(number);
      case CallKind::record:
        return record(call);
      case CallKind::wait:
        return wait(number);
      case CallKind::sync_device:
        for (std::uint32_t stream = 0; stream < launches_.streams(); ++stream)
          host_waits(number, launches_.last_before(stream, call.start), true);
        return;
      case CallKind::sync_stream:
        return sync_stream(number);
      case CallKind::sync_event:
        return sync_event(number);
    }
  }

  void record(const Call& call) {
    records_.push_back({call.start, last_stream_[call.thread]});
    Behind& behind = behind_[call.thread];
    if (behind == Behind::collective) {
      behind = Behind::record;
    } else if (behind == Behind::wait) {
      pending_[call.thread].pop_back();
      ++result_.of_library;
      behind = Behind::nothing;
    } else {
      behind = Behind::nothing;
    }
  }

  void launch(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    const auto ops = launches_.ops_of(number);
    if (ops.empty()) return;
    behind_[call.thread] = trace_.ops[ops.front()].is_collective ? Behind::collective : Behind::nothing;
    last_stream_[call.thread] = trace_.ops[ops.front()].stream;
    for (const std::uint32_t wait : pending_[call.thread]) infer(trace_.calls[wait], ops.front());
    pending_[call.thread].clear();
    for (const std::uint32_t op : ops) {
      const DeviceOp& one = trace_.ops[op];
      if (one.kind == DeviceKind::kernel || one.end() > call.end() + kHostTolerance) continue;
      if (call.kind == CallKind::blocking_copy || (one.is_pageable && one.end() <= call.end()))
        host_waits(number, op, true);
    }
  }

  /// Returns what the trace says besides of a call that waits; nullptr if it says nothing.
  const SyncRecord* sync_of(const Call& call) const {
    const auto found =
        std::lower_bound(trace_.syncs.begin(), trace_.syncs.end(), call.correlation,
                         [](const auto& one, std::int64_t correlation) { return one.first < correlation; });
    return found == trace_.syncs.end() || found->first != call.correlation ? nullptr : &found->second;
  }

  /// Takes a wait of a stream: exactly if the trace has its event, otherwise when it is known what follows it.
  void wait(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    const SyncRecord* sync = sync_of(call);
    if (sync == nullptr || sync->stream == kNone) {
      pending_[call.thread].push_back(number);
      Behind& behind = behind_[call.thread];
      behind = behind == Behind::record ? Behind::wait : Behind::nothing;
      return;
    }
    const std::uint32_t to = launches_.first_from(sync->stream, call.start);
    edge(awaited_by(*sync, call), to, sync->record.has_value());
  }

  /// Returns the operation that an event was recorded behind; kNone if there is none, or it is not in the trace. Of a
  /// trace that tells the event's stream alone: the last one that the stream was given before the call that waits.
  std::uint32_t awaited_by(const SyncRecord& sync, const Call& call) const {
    if (sync.awaited == kNone || sync.record.value_or(0) < 0) return kNone;
    if (!sync.record) return launches_.last_before(sync.awaited, call.start);
    const auto record = records_of_.find(*sync.record);
    if (record == records_of_.end()) return kNone;
    return launches_.last_before(sync.awaited, trace_.calls[record->second].start);
  }

  /// Infers what a wait without a handle is for: the last event that was recorded on another stream than that of the
  /// thread's next launch. A trace without records has the last operation that was given to another stream.
  void infer(const Call& wait, std::uint32_t to) {
    const std::uint32_t stream = trace_.ops[to].stream;
    std::uint32_t from = kNone;
    if (records_.empty()) {
      for (std::uint32_t other = 0; other < launches_.streams(); ++other) {
        if (other == stream) continue;
        const std::uint32_t last = launches_.last_before(other, wait.start);
        if (last != kNone && (from == kNone || launches_.issued(last) > launches_.issued(from))) from = last;
      }
    } else {
      const Record* record = last_record(wait.start, [&](const Record& one) { return one.stream != stream; });
      if (record != nullptr) from = launches_.last_before(record->stream, record->time);
    }
    if (const std::uint32_t just_ended = ended_before(wait.start, to); just_ended != kNone)
      if (from == kNone || contradicts(from, to)) from = just_ended;
    if (from != kNone)
      edge(from, to, false);
    else if (trace_.streams.size() > 1)
      ++result_.unresolved;
  }

  bool contradicts(std::uint32_t from, std::uint32_t to) const {
    return trace_.ops[to].start < trace_.ops[from].end() - kDeviceTolerance;
  }

  /// Returns the last operation of another stream that had been launched when a wait was called and ended just before
  /// `to` started, which had nothing else to wait for on its own stream; kNone if there is none.
  std::uint32_t ended_before(std::int64_t called, std::uint32_t to) const {
    const std::int64_t start = trace_.ops[to].start;
    if (start - idle_from_[to] <= kTakeUp) return kNone;
    std::uint32_t found = kNone;
    const auto behind =
        std::lower_bound(by_end_.begin(), by_end_.end(), start + kDeviceTolerance,
                         [&](std::uint32_t op, std::int64_t end) { return trace_.ops[op].end() < end; });
    for (auto one = std::make_reverse_iterator(behind); one != by_end_.rend(); ++one) {
      const DeviceOp& op = trace_.ops[*one];
      if (op.end() < start - kTakeUp) break;
      if (op.stream != trace_.ops[to].stream && launches_.issued(*one) < called &&
          (found == kNone || op.end() > trace_.ops[found].end()))
        found = *one;
    }
    return found;
  }

  template <class Accept>
  const Record* last_record(std::int64_t before, const Accept& accept) const {
    std::size_t seen = 0;
    for (auto one = records_.rbegin(); one != records_.rend() && seen < kRecordsBack; ++one, ++seen)
      if (one->time < before && one->stream != kNone && accept(*one)) return &*one;
    return nullptr;
  }

  void edge(std::uint32_t from, std::uint32_t to, bool is_exact) {
    if (from == kNone || to == kNone || trace_.ops[from].stream == trace_.ops[to].stream) return;
    if (contradicts(from, to)) {
      ++result_.between_streams.contradicted;
      return;
    }
    ++(is_exact ? result_.between_streams.exact : result_.between_streams.inferred);
    result_.edges.push_back({from, to});
  }

  void host_waits(std::uint32_t call, std::uint32_t op, bool is_exact) {
    if (op == kNone) return;
    if (trace_.ops[op].end() > trace_.calls[call].end() + kHostTolerance) {
      ++result_.host.contradicted;
      return;
    }
    ++(is_exact ? result_.host.exact : result_.host.inferred);
    result_.of_host.push_back({call, op});
  }

  void sync_stream(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    const SyncRecord* sync = sync_of(call);
    if (sync != nullptr && sync->stream != kNone)
      return host_waits(number, launches_.last_before(sync->stream, call.start), true);
    const std::uint32_t stream = last_stream_[call.thread];  // as `item()` does behind its copy
    if (stream != kNone) host_waits(number, launches_.last_before(stream, call.start), false);
  }

  void sync_event(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    const SyncRecord* sync = sync_of(call);
    if (sync != nullptr && (sync->awaited != kNone || sync->record))
      return host_waits(number, awaited_by(*sync, call), sync->record.has_value());
    // Without a handle: what ended while the call waited, last of what events were recorded behind.
    std::uint32_t found = kNone;
    last_record(call.start, [&](const Record& record) {
      const std::uint32_t op = launches_.last_before(record.stream, record.time);
      if (op == kNone) return false;
      const std::int64_t end = trace_.ops[op].end();
      if (end >= call.start && end <= call.end() && (found == kNone || end > trace_.ops[found].end())) found = op;
      return false;
    });
    host_waits(number, found, false);
  }

  const RankTrace& trace_;
  const Launches& launches_;
  Waits result_;
  std::unordered_map<std::int64_t, std::uint32_t> records_of_;  // calls, by correlation
  std::vector<Record> records_;
  std::vector<std::int64_t> idle_from_;              // by operation: when those before it on its stream had ended
  std::vector<std::uint32_t> by_end_;                // operations, by their end
  std::vector<std::uint32_t> last_stream_;           // by thread: of its last launch
  std::vector<Behind> behind_;                       // by thread
  std::vector<std::vector<std::uint32_t>> pending_;  // by thread: waits since its last launch
};

}  // namespace

Waits find_waits(const RankTrace& trace, const Launches& launches) {
  return Finder(trace, launches).find();
}

}  // namespace manyworlds::experiments::profiler

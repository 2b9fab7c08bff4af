#include "experiments/profiler_traces/host_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace manyworlds::experiments::profiler {
namespace {

class Sweep {
 public:
  Sweep(const RankTrace& trace, const Launches& launches, const Waits& waits, const StreamTimes& times,
        std::int64_t begin)
      : trace_(trace),
        launches_(launches),
        waits_(waits),
        times_(times),
        begin_(begin),
        states_(trace.threads.size()),
        launched_(trace.calls.size(), kNone),
        launched_at_(trace.calls.size(), begin),
        is_late_(trace.calls.size()) {}

  HostThreads find() {
    choose_threads();
    for (std::uint32_t call = 0; call < trace_.calls.size(); ++call) {
      const Call& one = trace_.calls[call];
      if (one.kind == CallKind::record || one.kind == CallKind::wait || states_[one.thread].number == kNone) continue;
      if (one.kind == CallKind::launch || one.kind == CallKind::blocking_copy)
        launch(call);
      else
        sync(call);
    }
    add_delays();
    add_unlaunched();
    return std::move(result_);
  }

 private:
  struct State {
    std::uint32_t number = kNone;        // in HostThreads::threads; kNone: it launches nothing
    std::int64_t at = 0, call_end = 0;   // where its operations have come to; where its calls have
    std::uint32_t last = kNone;          // its last operation
    std::vector<std::uint32_t> pending;  // what its next operation waits for
    std::vector<std::uint32_t> seen;     // by thread: that one's last operation when this one last went on
    bool is_backward = false;
  };

  /// Numbers the threads that launch: that which runs the steps first, or else that with the most launches.
  void choose_threads() {
    std::vector<std::int64_t> launches(states_.size());
    for (std::uint32_t call = 0; call < trace_.calls.size(); ++call)
      launches[trace_.calls[call].thread] += static_cast<std::int64_t>(launches_.ops_of(call).size());
    for (const Span& span : trace_.backwards) states_[span.thread].is_backward = true;
    const auto rank_of = [&](std::uint32_t thread) {
      return std::pair(states_[thread].is_backward ? 0 : launches[thread], launches[thread]);
    };
    std::vector<std::uint32_t> threads;
    for (std::uint32_t thread = 0; thread < states_.size(); ++thread)
      if (launches[thread] > 0) threads.push_back(thread);
    std::stable_sort(threads.begin(), threads.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return rank_of(a) > rank_of(b); });
    for (const std::uint32_t thread : threads) {
      State& state = states_[thread];
      state.number = static_cast<std::uint32_t>(result_.threads.size());
      state.at = begin_, state.call_end = begin_;
      result_.threads.push_back("thread " + trace_.threads[thread]);
    }
    for (const std::uint32_t thread : threads)
      if (states_[thread].number == 0)
        main_ = thread, states_[thread].is_backward = false;
      else if (states_[thread].is_backward)
        backward_.push_back(thread);
  }

  std::uint32_t node(std::uint32_t host_op) const { return static_cast<std::uint32_t>(trace_.ops.size()) + host_op; }

  /// Adds an operation that ends `end`, if not earlier than what the thread had come to; returns its node.
  std::uint32_t add(State& state, std::int64_t end, std::uint32_t name) {
    const std::int64_t duration = std::max<std::int64_t>(end - state.at, 0);
    if (duration == 0 && state.pending.empty() && state.last != kNone) return state.last;
    state.at += duration;
    const std::uint32_t added = node(static_cast<std::uint32_t>(result_.ops.size()));
    result_.ops.push_back({duration, state.at, state.number, name});
    for (const std::uint32_t from : state.pending) result_.edges.push_back({from, added});
    state.pending.clear();
    state.last = added;
    return added;
  }

  void hand_over(State& from, State& to, std::uint32_t from_thread, const Call& call) {
    if (to.seen.empty()) to.seen.assign(states_.size(), kNone);
    if (from.last == kNone || to.seen[from_thread] == from.last) return;
    to.seen[from_thread] = from.last;
    if (from.call_end > call.start) return;  // they run side by side
    to.pending.push_back(from.last);
    to.at = std::max(to.at, std::min(from.at, call.end()));
    ++result_.handovers;
  }

  void take_turns(const Call& call) {
    if (call.thread == main_) {
      for (const std::uint32_t thread : backward_) hand_over(states_[thread], states_[main_], thread, call);
    } else if (states_[call.thread].is_backward) {
      hand_over(states_[main_], states_[call.thread], main_, call);
    }
  }

  void launch(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    const auto ops = launches_.ops_of(number);
    if (ops.empty()) return;
    take_turns(call);
    State& state = states_[call.thread];
    const std::int64_t start = trace_.ops[ops.front()].start;
    std::int64_t end = call.end();
    if (start <= end)
      end = start;  // also if it is before the call, as where the clocks of host and device drift apart
    else if (times_.ready[ops.front()] <= end) {
      is_late_[number] = start > end + kLaunchLatency;
      end = std::min(start, end + kLaunchLatency);
    }
    const std::uint32_t launched = add(state, end, call.name);
    launched_[number] = launched, launched_at_[number] = state.at;
    ++result_.launches;
    for (const std::uint32_t op : ops) result_.edges.push_back({launched, op});
    state.call_end = std::max(state.call_end, call.end());
    wait(number, state);
  }

  void sync(std::uint32_t number) {
    const Call& call = trace_.calls[number];
    State& state = states_[call.thread];
    if (awaited_by(number).empty()) return;
    take_turns(call);
    if (call.start > state.at) add(state, call.start, call.name);
    state.call_end = std::max(state.call_end, call.end());
    wait(number, state);
  }

  std::span<const CallWait> awaited_by(std::uint32_t call) const {
    const auto first = std::lower_bound(waits_.of_host.begin(), waits_.of_host.end(), CallWait{call, 0});
    auto last = first;
    while (last != waits_.of_host.end() && last->call == call) ++last;
    return {first, last};
  }

  /// Makes a thread wait, in a call, for what it awaits: the rest of the call is its own time.
  void wait(std::uint32_t number, State& state) {
    const auto awaited = awaited_by(number);
    if (awaited.empty()) return;
    const Call& call = trace_.calls[number];
    for (const CallWait& one : awaited) {
      state.pending.push_back(one.op);
      state.at = std::max(state.at, std::min(trace_.ops[one.op].end(), call.end()));
    }
    add(state, call.end(), call.name);
  }

  /// Adds the delays of operations that started later than their launch, their stream and what they wait for explain:
  /// on a thread for each stream, behind all of these.
  void add_delays() {
    std::vector<State> delays(trace_.streams.size());
    std::vector<OpEdge> awaited = waits_.edges;
    std::sort(awaited.begin(), awaited.end(), [](const OpEdge& a, const OpEdge& b) { return a.to < b.to; });
    auto edge = awaited.begin();
    for (std::uint32_t op = 0; op < trace_.ops.size(); ++op) {
      while (edge != awaited.end() && edge->to < op) ++edge;
      const std::uint32_t call = launches_.call_of(op), before = times_.before[op];
      if (call == kNone || launched_[call] == kNone) continue;
      const DeviceOp& one = trace_.ops[op];
      const std::int64_t ready = std::max({times_.ready[op], launched_at_[call], begin_}), gap = one.start - ready;
      const bool waited = edge != awaited.end() && edge->to == op && gap <= kLaunchLatency;
      const bool is_late = is_late_[call] && launches_.ops_of(call).front() == op;
      if (gap <= (waited || is_late ? 0 : kStartGap)) continue;
      State& state = delays[one.stream];
      if (state.number == kNone) {
        state.number = static_cast<std::uint32_t>(result_.threads.size());
        const DeviceStream& stream = trace_.streams[one.stream];
        result_.threads.push_back(stream.device == trace_.streams[0].device
                                      ? fmt::format("delays {}", stream.id)
                                      : fmt::format("delays {}:{}", stream.device, stream.id));
      }
      state.at = ready;
      state.pending = {launched_[call]};
      if (before != kNone) state.pending.push_back(before);
      for (auto also = edge; also != awaited.end() && also->to == op; ++also) state.pending.push_back(also->from);
      result_.edges.push_back({add(state, one.start, waited ? kTakesUp : kNone), op});
      if (waited) continue;
      ++result_.late;
      result_.lateness += gap;
    }
  }

  /// Operations whose launch is not in the trace start when they did, as by a thread that it does not have.
  void add_unlaunched() {
    State state;
    state.number = static_cast<std::uint32_t>(result_.threads.size());
    state.at = begin_;
    for (std::uint32_t op = 0; op < trace_.ops.size(); ++op) {
      if (launches_.call_of(op) != kNone) continue;
      ++result_.unlaunched;
      if (trace_.ops[op].start > times_.ready[op] + kStartGap || state.last == kNone)
        result_.edges.push_back({add(state, trace_.ops[op].start, kNone), op});
    }
    if (state.last != kNone) result_.threads.emplace_back("before the trace");
  }

  const RankTrace& trace_;
  const Launches& launches_;
  const Waits& waits_;
  const StreamTimes& times_;
  std::int64_t begin_;
  HostThreads result_;
  std::vector<State> states_;  // by thread of the trace
  std::uint32_t main_ = kNone;
  std::vector<std::uint32_t> backward_;
  std::vector<std::uint32_t> launched_;    // by call: its operation
  std::vector<std::int64_t> launched_at_;  // by call: when that ended
  std::vector<bool> is_late_;              // by call: its operation started later on an idle stream than a launch takes
};

}  // namespace

HostThreads host_threads(const RankTrace& trace, const Launches& launches, const Waits& waits, const StreamTimes& times,
                         std::int64_t begin) {
  return Sweep(trace, launches, waits, times, begin).find();
}

}  // namespace manyworlds::experiments::profiler

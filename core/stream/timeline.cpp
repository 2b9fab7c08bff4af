#include "core/stream/timeline.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::core::stream {
namespace {

using workload::CollectiveCall;
using workload::KernelOp;
using workload::Op;
using workload::Program;
using workload::Role;

bool is_pipeline(Role role) {
  return workload::is_pipeline_transfer(role);
}

StepPart exposed_part(const Program& program, Role role) {
  return workload::is_of_dimension(role) ? program.exposed_dimensions.at(workload::dimension_of(role))
                                         : workload::exposed_part(role);
}

}  // namespace

Timeline::Timeline(const std::vector<Program>& programs, std::vector<std::uint32_t> program_of_rank,
                   const Interference& interference, Time tick_ps)
    : Timeline(programs, std::move(program_of_rank), std::vector<Interference>(programs.size(), interference),
               tick_ps) {}

Timeline::Timeline(const std::vector<Program>& programs, std::vector<std::uint32_t> program_of_rank,
                   std::vector<Interference> by_program, Time tick_ps)
    : programs_(programs),
      interference_(std::move(by_program)),
      clock_(tick_ps),
      program_of_(std::move(program_of_rank)),
      program_streams_(programs.size()),
      groups_(programs.size()),
      free_groups_(programs.size()),
      group_of_(program_of_) {
  for (std::uint32_t i = 0; i < programs.size(); ++i) {
    program_streams_[i] = streams_of(programs[i]);
    groups_[i].program = i;
    groups_[i].state.streams.resize(program_streams_[i].size());
  }
  for (const RepresentativeId rank : program_of_.ids()) {
    groups_[program_of_[rank]].ranks.push_back(rank);
    unfinished_ += programs[program_of_[rank]].ops.size();
  }
}

Timeline::ProgramStreams Timeline::streams_of(const Program& program) {
  std::size_t names = 0;
  for (const Op& op : program.ops) names = std::max(names, static_cast<std::size_t>(op.stream) + 1);
  std::vector<std::uint32_t> sizes(names, 0), number_of(names, 0);  // by name: its operations, and its number
  for (const Op& op : program.ops) ++sizes[static_cast<std::size_t>(op.stream)];
  ProgramStreams streams;
  for (std::size_t name = 0; name < names; ++name) {
    if (sizes[name] == 0) continue;
    if (static_cast<workload::Stream>(name) == workload::Stream::compute) streams.compute = streams.size();
    number_of[name] = static_cast<std::uint32_t>(streams.size());
    streams.ops.emplace_back().reserve(sizes[name]);
  }
  streams.stream.reserve(program.ops.size());
  streams.position.reserve(program.ops.size());
  for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
    const std::uint32_t stream = number_of[static_cast<std::size_t>(program.ops[op].stream)];
    streams.stream.push_back(stream);
    streams.position.push_back(static_cast<std::uint32_t>(streams.ops[stream].size()));
    streams.ops[stream].push_back(op);
  }
  return streams;
}

void Timeline::record(const std::vector<RepresentativeId>& ranks) {
  recorded_ranks_.assign(program_of_.size(), false);
  for (const RepresentativeId rank : ranks) {
    MANYWORLDS_CHECK(rank < recorded_ranks_.next_id(), "rank {} of {} is to be recorded", rank, recorded_ranks_.size());
    recorded_ranks_[rank] = true;
    LockstepGroup& group = groups_[group_of_[rank]];
    if (is_recorded(group)) continue;
    group.record = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
  }
}

void Timeline::begin(std::vector<Entry>& entries, WholeCollectives* whole) {
  for (const std::uint32_t group : group_of_) touch(group);  // a program may have no ranks
  advance(0, entries, whole);
}

Time Timeline::next_end() const {
  Time next = kNever;
  for (const RunningOps* running : {&running_kernels_, &running_whole_})
    if (!running->empty()) next = std::min(next, running->front().at);
  return next;
}

std::vector<Account> Timeline::accounts() const {
  std::vector<Account> all;
  for (const RepresentativeId rank : group_of_.ids()) {
    Account& account = all.emplace_back(groups_[group_of_[rank]].state.account);
    if (account_difference_.size() == 0) continue;
    for (const workload::StepPartInfo& part : workload::kStepParts)
      account[part.part] += account_difference_[rank][part.part];
  }
  return all;
}

void Timeline::touch(std::uint32_t group) {
  if (!std::exchange(groups_[group].touched, true)) touched_.push_back(group);
}

void Timeline::complete(RepresentativeId rank, std::uint32_t op, Time began) {
  groups_[group_of_[rank]].completions.push_back({rank, op, began});
  touch(group_of_[rank]);
}

void Timeline::run_kernel(std::uint32_t group, std::uint32_t op, Time until) {
  until = clock_.nearest(until);
  stream_state(groups_[group], streams_of(groups_[group]), op).ends = until;
  push(running_kernels_, {until, group, op});
}

void Timeline::push(RunningOps& running, const RunningOp& op) {
  running.push_back(op);
  std::push_heap(running.begin(), running.end(), std::greater<>());
}

Timeline::RunningOp Timeline::pop(RunningOps& running) {
  std::pop_heap(running.begin(), running.end(), std::greater<>());
  const RunningOp op = running.back();
  running.pop_back();
  return op;
}

void Timeline::drop_outdated(RunningOps& running) const {
  while (!running.empty() && !is_current(running.front())) pop(running);
}

bool Timeline::is_current(const RunningOp& running) const {
  const LockstepGroup& group = groups_[running.group];
  const ProgramStreams& streams = streams_of(group);
  const std::uint32_t number = streams.stream[running.op];
  const StreamState& stream = group.state.streams[number];
  return stream.done < stream.issued && streams.ops[number][stream.done] == running.op && stream.ends == running.at;
}

namespace {

/// Returns the duration of `work` at a pace (see Pace), rounded up.
Time duration_at_pace(Time work, std::int64_t numerator, std::int64_t denominator) {
  if (numerator == denominator) return work;
  return static_cast<Time>((Int128{work} * numerator + denominator - 1) / denominator);
}

}  // namespace

Pace Timeline::pace_of(const LockstepGroup& group) const {
  return interference_[group.program].pace_beside(group.state.collective_load);
}

/// Adds `delta` to the resources that collectives take from a group's ranks. If that changes the pace, the end of the
/// running compute kernel is computed anew from its remaining work.
void Timeline::add_collective_load(std::uint32_t index, std::int64_t delta, Time at) {
  if (delta == 0) return;
  State& state = groups_[index].state;
  const Pace before = pace_of(groups_[index]);
  state.collective_load += delta;
  const Pace now = pace_of(groups_[index]);
  const ProgramStreams& streams = streams_of(groups_[index]);
  if (before == now || streams.compute >= streams.size()) return;
  const StreamState& compute = state.streams[streams.compute];
  if (compute.is_idle() || compute.ends == at) return;
  const std::uint32_t op = streams.ops[streams.compute][compute.done];
  if (programs_[groups_[index].program].ops[op].kernel() == nullptr) return;  // a collective in a given program
  const Time elapsed = at - state.pace_changed_at;
  state.remaining_work -= static_cast<Time>(Int128{elapsed} * before.denominator / before.numerator);
  state.pace_changed_at = at;
  run_kernel(index, op, at + duration_at_pace(state.remaining_work, now.numerator, now.denominator));
}

void Timeline::end_op(std::uint32_t index, std::uint32_t op, Time at, const Cause& cause) {
  LockstepGroup& group = groups_[index];
  const ProgramStreams& streams = streams_of(group);
  StreamState& stream = stream_state(group, streams, op);
  MANYWORLDS_CHECK(stream.done + 1 == stream.issued && streams.ops[streams.stream[op]][stream.done] == op,
                   "rank {} ends op {} out of order", group.ranks.front(), op);
  if (is_recorded(group)) append_to_record(group, Span{op, stream.entered, at});
  ++stream.done;
  unfinished_ -= group.ranks.size();
  end_ = std::max(end_, at);
  group.state.ended = at;
  group.state.cause = cause;
  // Behind the compute stream's last operation, what ends was all that the rank waited for.
  if (streams.compute >= streams.size() ||
      group.state.streams[streams.compute].done == streams.ops[streams.compute].size()) {
    account_wait(group, at);
    group.state.busy_until = at;
  }
}

void Timeline::end_collective(std::uint32_t index, const Completion& completion, Time at) {
  LockstepGroup& group = groups_[index];
  const auto& call = std::get<CollectiveCall>(programs_[group.program].ops[completion.op].action);
  const StreamState& stream = stream_state(group, streams_of(group), completion.op);
  group.state.previous_cause = stream.cause_at_issue;
  end_op(index, completion.op, at, {stream.entered, completion.began, call.role, true});
  if (!is_pipeline(call.role)) may_join_.push_back(index);
  add_collective_load(index, -interference_[group.program].load_of(call.role, call.kind), at);
}

/// Ends the collectives that completed for the ranks of a group. The group stays whole if the completions are the same
/// for all of its ranks, and is split otherwise.
void Timeline::end_completed(std::uint32_t index, Time at) {
  const std::vector<Completion>& all = groups_[index].completions;
  if (all.empty()) return;
  const bool one_each = all.size() == groups_[index].ranks.size() &&
                        std::all_of(all.begin(), all.end(), [&](const Completion& c) { return c.is_like(all[0]); });
  if (!one_each) return split(index, at);
  end_collective(index, all[0], at);
  groups_[index].completions.clear();
}

void Timeline::advance(Time at, std::vector<Entry>& entries, WholeCollectives* whole) {
  MANYWORLDS_CHECK(clock_.ticks_at(at), "advance() was called at {}, which is between two ticks", at);
  if (whole != nullptr) end_whole(at, *whole);
  for (std::size_t i = 0, groups = touched_.size(); i < groups; ++i) end_completed(touched_[i], at);
  // Operations of zero duration end at the instant at which they start, so this repeats until no group changes.
  while (true) {
    while (!running_kernels_.empty() && running_kernels_.front().at == at)
      if (const RunningOp ended = pop(running_kernels_); is_current(ended)) end_kernel(ended, at);
    if (touched_.empty()) break;
    join_groups();
    std::sort(touched_.begin(), touched_.end());
    for (const std::uint32_t group : touched_) {
      groups_[group].touched = false;
      if (!groups_[group].ranks.empty()) issue(group, at, entries, whole);
    }
    touched_.clear();
  }
  drop_outdated(running_kernels_);
  drop_outdated(running_whole_);
}

/// Ends the collectives that WholeCollectives took and that end at `at`. If others end for the group at this instant,
/// they become completions as those have, in their order.
void Timeline::end_whole(Time at, const WholeCollectives& whole) {
  ending_.clear();
  while (!running_whole_.empty() && running_whole_.front().at == at)
    if (const RunningOp ended = pop(running_whole_); is_current(ended) && (ending_.empty() || ended != ending_.back()))
      ending_.push_back(ended);
  for (auto first = ending_.begin(), next = first; first != ending_.end(); first = next) {
    next = std::find_if(first, ending_.end(), [&](const RunningOp& one) { return one.group != first->group; });
    LockstepGroup& group = groups_[first->group];
    touch(first->group);
    const auto completion = [&](RepresentativeId rank, std::uint32_t op) {
      return Completion{rank, op, stream_state(group, streams_of(group), op).entered};
    };
    if (next - first == 1 && group.completions.empty()) {
      end_collective(first->group, completion(group.ranks.front(), first->op), at);
      continue;
    }
    for (auto one = first; one != next; ++one)
      for (const RepresentativeId rank : group.ranks) group.completions.push_back(completion(rank, one->op));
    std::stable_sort(group.completions.begin(), group.completions.end(), [&](const Completion& a, const Completion& b) {
      return whole.order_of(a.rank, a.op) < whole.order_of(b.rank, b.op);
    });
  }
}

void Timeline::end_kernel(const RunningOp& ended, Time at) {
  State& state = groups_[ended.group].state;
  const Op& op = programs_[groups_[ended.group].program].ops[ended.op];
  Time slowed = 0;
  if (op.stream == workload::Stream::compute) {
    slowed = at - state.busy_until;
    state.account[StepPart::slowed] += slowed;
    state.busy_until = at;
  }
  Cause cause;
  if (workload::is_own(op.stream)) {
    const StreamState& stream = stream_state(groups_[ended.group], streams_of(groups_[ended.group]), ended.op);
    cause.waiting = std::get<KernelOp>(op.action).category;
    cause.entered = stream.entered;
    state.previous_cause = stream.cause_at_issue;
  } else if (op.stream != workload::Stream::compute) {
    cause.waiting = op.stream == workload::Stream::host ? StepPart::host : StepPart::exposed_offload;
  }
  end_op(ended.group, ended.op, at, cause);
  if (is_recorded(groups_[ended.group])) records_[groups_[ended.group].record].spans.back().slowed = slowed;
  touch(ended.group);
}

bool Timeline::ready(const LockstepGroup& group, const Op& op) const {
  const Program& program = programs_[group.program];
  const ProgramStreams& streams = streams_of(group);
  for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) {
    const std::uint32_t before = program.waits[i];
    if (group.state.streams[streams.stream[before]].done <= streams.position[before]) return false;
  }
  return true;
}

void Timeline::issue(std::uint32_t index, Time at, std::vector<Entry>& entries, WholeCollectives* whole) {
  LockstepGroup& group = groups_[index];
  const Program& program = programs_[group.program];
  const ProgramStreams& streams = streams_of(group);
  State& state = group.state;
  issued_.clear();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    StreamState& stream = state.streams[i];
    if (!stream.is_idle() || stream.issued == streams.ops[i].size()) continue;
    const std::uint32_t number = streams.ops[i][stream.issued];
    const Op& op = program.ops[number];
    if (!ready(group, op)) continue;
    ++stream.issued;
    stream.entered = at;
    stream.cause_at_issue = state.cause;
    if (const CollectiveCall* call = op.collective()) {
      const bool may_be_whole = whole != nullptr && !is_pipeline(call->role);
      stream.ends = may_be_whole ? enter_whole(index, number, at, *whole) : kNever;
      if (stream.ends == kNever)
        issued_.push_back(number);
      else
        push(running_whole_, {stream.ends, index, number});
      add_collective_load(index, interference_[group.program].load_of(call->role, call->kind), at);
    } else if (const auto& kernel = std::get<KernelOp>(op.action); op.stream == workload::Stream::compute) {
      start_compute(index, number, kernel, at);
    } else {
      run_kernel(index, number, at + kernel.duration_ps);
    }
  }
  for (const RepresentativeId rank : group.ranks)
    for (const std::uint32_t op : issued_) entries.push_back({rank, op});
}

/// Returns when a collective ends for all ranks of a group, if WholeCollectives takes it; kNever otherwise.
Time Timeline::enter_whole(std::uint32_t index, std::uint32_t op, Time at, WholeCollectives& whole) {
  LockstepGroup& group = groups_[index];
  const workload::Role role = programs_[group.program].ops[op].collective()->role;
  auto known =
      std::find_if(group.leaders.begin(), group.leaders.end(), [&](const auto& of) { return of.first == role; });
  if (known == group.leaders.end()) known = group.leaders.insert(known, {role, whole.leaders(group.ranks, op)});
  if (known->second.empty()) return kNever;
  const Time lasts = whole.enter_whole(known->second, op);
  return lasts == kNever ? kNever : clock_.not_before(at + lasts);
}

void Timeline::start_compute(std::uint32_t index, std::uint32_t op, const KernelOp& kernel, Time at) {
  LockstepGroup& group = groups_[index];
  State& state = group.state;
  if (state.began == kNever) {
    state.began = unsynchronised_ ? at : 0;
    state.busy_until = state.began;
  }
  account_wait(group, at);
  const Time until = clock_.nearest(at + kernel.duration_ps);
  state.account[kernel.category] += until - at;
  state.busy_until = until;  // extended if the kernel is slowed down
  state.remaining_work = kernel.duration_ps;
  state.pace_changed_at = at;
  const Pace pace = pace_of(group);
  run_kernel(index, op, at + duration_at_pace(kernel.duration_ps, pace.numerator, pace.denominator));
}

/// Accounts for the idle time of the compute stream before it resumes at `until`: it waited for the operation that
/// ended last on the rank.
void Timeline::account_wait(LockstepGroup& group, Time until) {
  const Time from = group.state.busy_until;
  if (until != from) attribute_wait(group, group.state.cause, &group.state.previous_cause, from, until);
}

/// Divides a wait. The time before the operation that was waited for began is attributed to `before`, such as the
/// pipeline transfer that brought a collective's data, or earlier communication on the same stream. Between this rank's
/// entry into a collective and that of the last member it waited for other ranks (a stall, or a bubble for pipeline
/// transfers); afterwards it waited for the network (exposed communication).
void Timeline::attribute_wait(LockstepGroup& group, const Cause& cause, const Cause* before, Time from, Time until) {
  const bool pipeline = cause.collective && is_pipeline(cause.role);
  const StepPart exposed = cause.collective ? exposed_part(programs_[group.program], cause.role) : cause.waiting;
  const Time entered = pipeline ? from : std::clamp(cause.entered, from, until);
  const Time began = cause.collective ? std::clamp(cause.began, entered, until) : entered;
  if (entered != from && before != nullptr && (before->collective || before->waiting != StepPart::bubble))
    attribute_wait(group, *before, nullptr, from, entered);
  else
    add_wait(group, exposed, from, entered);
  add_wait(group, pipeline ? StepPart::bubble : StepPart::stall, entered, began);
  add_wait(group, exposed, began, until);
}

void Timeline::add_wait(LockstepGroup& group, StepPart why, Time from, Time until) {
  if (from == until) return;
  group.state.account[why] += until - from;
  if (is_recorded(group)) append_to_record(group, Idle{why, from, until});
}

void Timeline::append_to_record(const LockstepGroup& group, const Span& span) {
  records_[group.record].spans.push_back(span);
}

void Timeline::append_to_record(const LockstepGroup& group, const Idle& idle) {
  std::vector<Idle>& known = records_[group.record].idle;
  if (!known.empty() && known.back().end == idle.begin && known.back().why == idle.why)
    known.back().end = idle.end;
  else
    known.push_back(idle);
}

Time Timeline::duration() const {
  if (!unsynchronised_) return end_;
  Time longest = 0;
  for (const LockstepGroup& group : groups_)
    if (group.state.began != kNever) longest = std::max(longest, group.state.ended - group.state.began);
  return longest;
}

void Timeline::close_accounts() {
  const Time length = duration();
  for (LockstepGroup& group : groups_) {
    if (group.ranks.empty()) continue;
    State& state = group.state;
    const Time until = unsynchronised_ && state.began != kNever ? state.began + length : end_;
    if (state.busy_until == until) continue;
    add_wait(group, StepPart::bubble, state.busy_until, until);  // other ranks have not ended
    state.busy_until = until;
  }
}

std::string Timeline::deadlock() const {
  const auto name = [&](RepresentativeId rank, std::uint32_t index) {
    const Program& program = programs_[program_of_[rank]];
    const Op& op = program.ops[index];
    const std::string label = op.label < program.labels.size() ? program.labels[op.label] : "operation";
    return fmt::format("'{}' (operation {} of rank {}, stream {})", label, index, rank, program.name_of(op.stream));
  };
  for (const RepresentativeId rank : program_of_.ids()) {
    const Program& program = programs_[program_of_[rank]];
    const ProgramStreams& streams = program_streams_[program_of_[rank]];
    const std::vector<StreamState>& states = groups_[group_of_[rank]].state.streams;
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
      if (!states[stream].is_idle() || states[stream].issued == streams.ops[stream].size()) continue;
      const std::uint32_t index = streams.ops[stream][states[stream].issued];
      const Op& op = program.ops[index];
      for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) {
        const std::uint32_t before = program.waits[i];
        if (states[streams.stream[before]].done <= streams.position[before])
          return fmt::format("deadlock: {} waits for {}", name(rank, index), name(rank, before));
      }
    }
  }
  return "deadlock: every remaining operation waits for a collective that some member never enters";
}

}  // namespace manyworlds::core::stream

#include "core/stream/timeline.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::core::stream {
namespace {

using workload::Op;
using workload::Program;
using workload::Role;

constexpr std::int64_t kWhole = 1'000'000;  // millionths

std::size_t stream_of(const Op& op) {
  return static_cast<std::size_t>(op.stream);
}

/// What runs on the GPU; waiting for the host does not.
bool slows(const Op& op) {
  return op.booking != workload::Booking::host;
}

bool is_pipeline(Role role) {
  return workload::is_pipeline_transfer(role);
}

Wait exposed(Role role) {
  if (role == Role::tensor) return Wait::exposed_tp;
  if (role == Role::send_context || role == Role::recv_context || role == Role::context) return Wait::exposed_cp;
  if (role == Role::expert || role == Role::expert_tensor) return Wait::exposed_ep;
  return is_pipeline(role) ? Wait::exposed_pp : Wait::exposed_dp;
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
      class_of_(std::move(program_of_rank)),
      streams_(programs.size()),
      squads_(programs.size()),
      squad_of_(class_of_) {
  for (std::uint32_t i = 0; i < programs.size(); ++i) {
    squads_[i].program = i;
    for (std::uint32_t op = 0; op < programs[i].ops.size(); ++op) {
      auto& stream = streams_[i].ops[stream_of(programs[i].ops[op])];
      streams_[i].place.push_back(static_cast<std::uint32_t>(stream.size()));
      stream.push_back(op);
    }
  }
  for (std::uint32_t rank = 0; rank < class_of_.size(); ++rank) {
    squads_[class_of_[rank]].ranks.push_back(rank);
    unfinished_ += programs[class_of_[rank]].ops.size();
  }
}

void Timeline::record(const std::vector<std::uint32_t>& ranks) {
  followed_.assign(class_of_.size(), false);
  for (const std::uint32_t rank : ranks) {
    followed_.at(rank) = true;
    Squad& squad = squads_[squad_of_[rank]];
    if (is_recorded(squad)) continue;
    squad.record = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
  }
}

void Timeline::begin(std::vector<Entry>& entries) {
  for (const std::uint32_t squad : squad_of_) touch(squad);  // a program may have no ranks
  advance(0, entries);
}

Time Timeline::next_kernel() const {
  return running_.empty() ? kNever : running_.front().at;
}

std::vector<Account> Timeline::accounts() const {
  std::vector<Account> all(class_of_.size());
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) all[rank] = squads_[squad_of_[rank]].state.account;
  return all;
}

void Timeline::touch(std::uint32_t squad) {
  if (!std::exchange(squads_[squad].touched, true)) touched_.push_back(squad);
}

void Timeline::complete(std::uint32_t rank, std::uint32_t op, Time began) {
  squads_[squad_of_[rank]].completions.push_back({rank, op, began});
  touch(squad_of_[rank]);
}

void Timeline::run_kernel(std::uint32_t squad, std::uint32_t op, Time until) {
  until = clock_.nearest(until);
  squads_[squad].state.ends[stream_of(programs_[squads_[squad].program].ops[op])] = until;
  running_.push_back({until, squad, op});
  std::push_heap(running_.begin(), running_.end(), std::greater<>());
}

bool Timeline::current(const Running& running) const {
  const Squad& squad = squads_[running.squad];
  const std::size_t stream = stream_of(programs_[squad.program].ops[running.op]);
  const std::uint32_t head = squad.state.done[stream];
  return head < squad.state.issued[stream] && streams_[squad.program].ops[stream][head] == running.op &&
         squad.state.ends[stream] == running.at;
}

namespace {

/// How long `work` takes at a pace, rounded up.
Time paced(Time work, std::int64_t slow, std::int64_t alone) {
  if (slow == alone) return work;
  return static_cast<Time>((Wide{work} * slow + alone - 1) / alone);
}

bool adds(collective::Kind kind) {
  using collective::Kind;
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

}  // namespace

Timeline::Pace Timeline::pace_of(const Squad& squad) const {
  const std::int64_t communicating = squad.state.communicating;
  if (communicating == 0) return {1, 1};
  const Interference& of = interference_[squad.program];
  if (of.units == 0) return {kWhole + of.slowdown_ppm, kWhole};
  const std::int64_t left = of.units - communicating;
  MANYWORLDS_CHECK(left > 0, "collectives take {} of {} compute units", communicating, of.units);
  return {of.units, left};
}

/// An exchange of a context ring takes what its sending half does.
std::int64_t Timeline::taken_by(const Op& op, std::uint32_t program) const {
  if (is_pipeline(op.role)) return 0;
  const Interference& of = interference_[program];
  if (of.units == 0) return of.slowdown_ppm > 0 ? 1 : 0;
  if (op.role == Role::recv_context) return 0;
  return adds(op.kind) ? of.to_add : of.to_move;
}

/// So much more is taken by collectives on the ranks of a squad: its kernel goes on at another pace, if it is another.
void Timeline::communicate(std::uint32_t index, std::int64_t more, Time at) {
  if (more == 0) return;
  State& state = squads_[index].state;
  const Pace before = pace_of(squads_[index]);
  state.communicating += more;
  const Pace now = pace_of(squads_[index]);
  if (before == now) return;
  constexpr auto kCompute = static_cast<std::size_t>(workload::Stream::compute);
  if (state.issued[kCompute] == state.done[kCompute] || state.ends[kCompute] == at) return;
  const std::uint32_t op = streams_[squads_[index].program].ops[kCompute][state.done[kCompute]];
  if (!slows(programs_[squads_[index].program].ops[op])) return;
  const Time passed = at - state.paced_at;
  state.work_left -= static_cast<Time>(Wide{passed} * before.alone / before.slow);
  state.paced_at = at;
  run_kernel(index, op, at + paced(state.work_left, now.slow, now.alone));
}

void Timeline::end_op(std::uint32_t index, std::uint32_t op, Time at, const Cause& cause) {
  Squad& squad = squads_[index];
  const std::size_t stream = stream_of(programs_[squad.program].ops[op]);
  std::uint32_t& done = squad.state.done[stream];
  MANYWORLDS_CHECK(done + 1 == squad.state.issued[stream] && streams_[squad.program].ops[stream][done] == op,
                   "rank {} ends op {} out of order", squad.ranks.front(), op);
  if (is_recorded(squad)) note(squad, Span{op, squad.state.entered[stream], at});
  ++done;
  unfinished_ -= squad.ranks.size();
  end_ = std::max(end_, at);
  squad.state.ended = at;
  squad.state.cause = cause;
}

void Timeline::end_collective(std::uint32_t index, const Completion& completion, Time at) {
  const Squad& squad = squads_[index];
  const Op& op = programs_[squad.program].ops[completion.op];
  const std::size_t stream = stream_of(op);
  squads_[index].state.before_cause = squad.state.issued_after[stream];
  end_op(index, completion.op, at, {squad.state.entered[stream], completion.began, op.role, true});
  communicate(index, -taken_by(op, squad.program), at);
}

/// Ends what ended for the ranks of a squad, which stay together if it was the same for all.
void Timeline::take_completions(std::uint32_t index, Time at) {
  const std::vector<Completion>& all = squads_[index].completions;
  if (all.empty()) return;
  const bool one_each = all.size() == squads_[index].ranks.size() &&
                        std::all_of(all.begin(), all.end(), [&](const Completion& c) { return c.is_like(all[0]); });
  if (!one_each) return split(index, at);
  end_collective(index, all[0], at);
  squads_[index].completions.clear();
}

void Timeline::split(std::uint32_t index, Time at) {
  std::vector<Completion> all = std::move(squads_[index].completions);
  squads_[index].completions.clear();
  std::stable_sort(all.begin(), all.end(), [](const Completion& a, const Completion& b) { return a.rank < b.rank; });
  // By what ended for them: where it begins in `all`, and how long it is.
  struct Part {
    std::size_t begin, size;
    std::vector<std::uint32_t> ranks;
  };
  std::vector<Part> parts;
  std::size_t begin = 0;
  for (const std::uint32_t rank : squads_[index].ranks) {
    std::size_t end = begin;
    while (end < all.size() && all[end].rank == rank) ++end;
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& one) {
      return one.size == end - begin &&
             std::equal(all.begin() + static_cast<std::ptrdiff_t>(begin),
                        all.begin() + static_cast<std::ptrdiff_t>(end),
                        all.begin() + static_cast<std::ptrdiff_t>(one.begin),
                        [](const Completion& a, const Completion& b) { return a.is_like(b); });
    });
    if (part == parts.end()) part = parts.insert(part, {begin, end - begin, {}});
    part->ranks.push_back(rank);
    begin = end;
  }
  std::vector<std::uint32_t> members{index};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    members.push_back(static_cast<std::uint32_t>(squads_.size()));
    squads_.push_back({squads_[index].program, {}, squads_[index].state, {}, false, kNoRecord});
    touch(members.back());
  }
  for (std::size_t i = 0, kernels = running_.size(); i < kernels; ++i)
    if (running_[i].squad == index)
      for (std::size_t part = 1; part < parts.size(); ++part) {
        running_.push_back({running_[i].at, members[part], running_[i].op});
      }
  std::make_heap(running_.begin(), running_.end(), std::greater<>());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const std::uint32_t rank : parts[i].ranks) squad_of_[rank] = members[i];
    squads_[members[i]].ranks = std::move(parts[i].ranks);
  }
  if (const std::uint32_t record = std::exchange(squads_[index].record, kNoRecord); record != kNoRecord)
    divide_record(record, members);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t c = 0; c < parts[i].size; ++c) end_collective(members[i], all[parts[i].begin + c], at);
  }
}

/// What was recorded before a split is so of every part in which a rank is followed.
void Timeline::divide_record(std::uint32_t record, const std::vector<std::uint32_t>& squads) {
  bool given = false;
  for (const std::uint32_t part : squads) {
    Squad& squad = squads_[part];
    if (std::none_of(squad.ranks.begin(), squad.ranks.end(), [&](std::uint32_t rank) { return followed_[rank]; }))
      continue;
    squad.record = given ? static_cast<std::uint32_t>(records_.size()) : record;
    if (std::exchange(given, true)) records_.push_back(Record(records_[record]));
  }
}

void Timeline::advance(Time at, std::vector<Entry>& entries) {
  MANYWORLDS_CHECK(clock_.ticks_at(at), "the streams are to move at {}, between two ticks", at);
  for (std::size_t i = 0, squads = touched_.size(); i < squads; ++i) take_completions(touched_[i], at);
  // Kernels of no duration end at the instant they start, so this goes on until nothing moves.
  while (true) {
    while (!running_.empty() && running_.front().at == at) {
      const Running ended = running_.front();
      std::pop_heap(running_.begin(), running_.end(), std::greater<>());
      running_.pop_back();
      if (current(ended)) end_kernel(ended, at);
    }
    if (touched_.empty()) break;
    std::sort(touched_.begin(), touched_.end());
    for (const std::uint32_t squad : touched_) {
      squads_[squad].touched = false;
      issue(squad, at, entries);
    }
    touched_.clear();
  }
  while (!running_.empty() && !current(running_.front())) {
    std::pop_heap(running_.begin(), running_.end(), std::greater<>());
    running_.pop_back();
  }
}

void Timeline::end_kernel(const Running& ended, Time at) {
  State& state = squads_[ended.squad].state;
  const Op& op = programs_[squads_[ended.squad].program].ops[ended.op];
  Time slowed = 0;
  if (op.stream == workload::Stream::compute) {
    slowed = at - state.busy_until;
    state.account.waited[static_cast<std::size_t>(Wait::slowed)] += slowed;
    state.busy_until = at;
  }
  Cause cause;
  cause.copy = op.stream != workload::Stream::compute;
  end_op(ended.squad, ended.op, at, cause);
  if (is_recorded(squads_[ended.squad])) records_[squads_[ended.squad].record].spans.back().slowed = slowed;
  touch(ended.squad);
}

bool Timeline::ready(const Squad& squad, const Op& op) const {
  const Program& program = programs_[squad.program];
  const Streams& streams = streams_[squad.program];
  for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) {
    const std::uint32_t before = program.waits[i];
    if (squad.state.done[stream_of(program.ops[before])] <= streams.place[before]) return false;
  }
  return true;
}

void Timeline::issue(std::uint32_t index, Time at, std::vector<Entry>& entries) {
  Squad& squad = squads_[index];
  const Program& program = programs_[squad.program];
  const Streams& streams = streams_[squad.program];
  State& state = squad.state;
  issued_.clear();
  for (std::size_t stream = 0; stream < workload::kStreams; ++stream) {
    if (state.issued[stream] != state.done[stream] || state.issued[stream] == streams.ops[stream].size()) continue;
    const std::uint32_t number = streams.ops[stream][state.issued[stream]];
    const Op& op = program.ops[number];
    if (!ready(squad, op)) continue;
    ++state.issued[stream];
    state.entered[stream] = at;
    state.issued_after[stream] = state.cause;
    if (op.is_collective) {
      issued_.push_back(number);
      communicate(index, taken_by(op, squad.program), at);
      continue;
    }
    if (op.stream != workload::Stream::compute) {
      run_kernel(index, number, at + op.duration_ps);
      continue;
    }
    if (state.began == kNever) {
      state.began = apart_ ? at : 0;
      state.busy_until = state.began;
    }
    book_wait(squad, at);
    const Time until = clock_.nearest(at + op.duration_ps);
    state.account.busy[static_cast<std::size_t>(op.booking)] += until - at;
    state.busy_until = until;  // until it is known to last longer
    state.work_left = op.duration_ps;
    state.paced_at = at;
    const Pace pace = slows(op) ? pace_of(squad) : Pace{1, 1};
    run_kernel(index, number, at + paced(op.duration_ps, pace.slow, pace.alone));
  }
  for (const std::uint32_t rank : squad.ranks)
    for (const std::uint32_t op : issued_) entries.push_back({rank, op});
}

/// The compute stream starts again at `until`. What ended last on the rank is what it waited for.
void Timeline::book_wait(Squad& squad, Time until) {
  const Time from = squad.state.busy_until;
  if (until != from) book_cause(squad, squad.state.cause, &squad.state.before_cause, from, until);
}

/// Between this rank's entry and the last member's it waited for others (a stall, or the bubble of a pipeline), and
/// after that the network was at work: exposed. Before its entry it waited for what `before` says, such as a transfer
/// of the pipeline that brought the collective its data, or earlier communication of its stream.
void Timeline::book_cause(Squad& squad, const Cause& cause, const Cause* before, Time from, Time until) {
  if (!cause.collective) return book(squad, cause.copy ? Wait::exposed_offload : Wait::bubble, from, until);
  const bool pipeline = is_pipeline(cause.role);
  const Time entered = pipeline ? from : std::clamp(cause.entered, from, until);
  const Time began = std::clamp(cause.began, entered, until);
  if (entered != from && before != nullptr && (before->collective || before->copy))
    book_cause(squad, *before, nullptr, from, entered);
  else
    book(squad, exposed(cause.role), from, entered);
  book(squad, pipeline ? Wait::bubble : Wait::stall, entered, began);
  book(squad, exposed(cause.role), began, until);
}

void Timeline::book(Squad& squad, Wait why, Time from, Time until) {
  if (from == until) return;
  squad.state.account.waited[static_cast<std::size_t>(why)] += until - from;
  if (is_recorded(squad)) note(squad, Idle{why, from, until});
}

void Timeline::note(const Squad& squad, const Span& span) {
  records_[squad.record].spans.push_back(span);
}

void Timeline::note(const Squad& squad, const Idle& idle) {
  std::vector<Idle>& known = records_[squad.record].idle;
  if (!known.empty() && known.back().end == idle.begin && known.back().why == idle.why)
    known.back().end = idle.end;
  else
    known.push_back(idle);
}

Time Timeline::lasts() const {
  if (!apart_) return end_;
  Time most = 0;
  for (const Squad& squad : squads_)
    if (squad.state.began != kNever) most = std::max(most, squad.state.ended - squad.state.began);
  return most;
}

void Timeline::settle() {
  const Time length = lasts();
  for (Squad& squad : squads_) {
    // Trailing collectives (parameters gathered after the optimizer) are exposed; the rest is bubble.
    State& state = squad.state;
    const Time until = apart_ && state.began != kNever ? state.began + length : end_;
    if (state.busy_until == until) continue;
    if (state.cause.collective && !is_pipeline(state.cause.role)) {
      book_wait(squad, until);
    } else {
      book(squad, Wait::bubble, state.busy_until, until);
    }
    state.busy_until = until;
  }
}

std::string Timeline::deadlock() const {
  const auto name = [&](std::uint32_t rank, std::uint32_t index) {
    const Program& program = programs_[class_of_[rank]];
    const Op& op = program.ops[index];
    const std::string label = op.label < program.labels.size() ? program.labels[op.label] : "operation";
    return fmt::format("'{}' (operation {} of rank {}, stream {})", label, index, rank,
                       workload::kStreamNames[stream_of(op)]);
  };
  for (std::uint32_t rank = 0; rank < class_of_.size(); ++rank) {
    const Program& program = programs_[class_of_[rank]];
    const Streams& streams = streams_[class_of_[rank]];
    for (std::size_t stream = 0; stream < workload::kStreams; ++stream) {
      const State& state = squads_[squad_of_[rank]].state;
      if (state.issued[stream] != state.done[stream] || state.issued[stream] == streams.ops[stream].size()) continue;
      const std::uint32_t index = streams.ops[stream][state.issued[stream]];
      const Op& op = program.ops[index];
      for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) {
        const std::uint32_t before = program.waits[i];
        if (state.done[stream_of(program.ops[before])] <= streams.place[before])
          return fmt::format("deadlock: {} waits for {}", name(rank, index), name(rank, before));
      }
    }
  }
  return "deadlock: every operation left waits for a collective that some member never enters";
}

}  // namespace manyworlds::core::stream

#include "core/stream/timeline.hpp"

#include <algorithm>
#include <functional>

#include "core/error.hpp"

namespace manyworlds::core::stream {
namespace {

using workload::Op;
using workload::Program;
using workload::Role;

constexpr std::array kStreamNames{"compute",      "tensor",        "data",          "send_forward",
                                  "recv_forward", "send_backward", "recv_backward", "copy"};

std::size_t stream_of(const Op& op) {
  return static_cast<std::size_t>(op.stream);
}

bool is_pipeline(Role role) {
  return role == Role::send_forward || role == Role::recv_forward || role == Role::send_backward ||
         role == Role::recv_backward;
}

Wait exposed(Role role) {
  if (role == Role::tensor) return Wait::exposed_tp;
  return is_pipeline(role) ? Wait::exposed_pp : Wait::exposed_dp;
}

}  // namespace

Timeline::Timeline(const std::vector<Program>& programs, std::vector<std::uint32_t> program_of_rank)
    : programs_(programs),
      class_of_(std::move(program_of_rank)),
      streams_(programs.size()),
      ranks_(class_of_.size()),
      causes_(class_of_.size()),
      accounts_(class_of_.size()) {
  for (std::size_t i = 0; i < programs.size(); ++i) {
    for (std::uint32_t op = 0; op < programs[i].ops.size(); ++op) {
      auto& stream = streams_[i].ops[stream_of(programs[i].ops[op])];
      streams_[i].place.push_back(static_cast<std::uint32_t>(stream.size()));
      stream.push_back(op);
    }
  }
  for (const std::uint32_t program : class_of_) unfinished_ += programs[program].ops.size();
}

void Timeline::begin(std::vector<Entry>& entries) {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) touched_.push_back(rank), ranks_[rank].touched = true;
  advance(0, entries);
}

Time Timeline::next_kernel() const {
  return running_.empty() ? kNever : running_.front().at;
}

void Timeline::complete(std::uint32_t rank, std::uint32_t op, Time at, Time began) {
  const Op& what = this->op(rank, op);
  end_op(rank, op, at, {ranks_[rank].entered[stream_of(what)], began, what.role, true});
}

void Timeline::end_op(std::uint32_t rank, std::uint32_t op, Time at, const Cause& cause) {
  const Program& program = programs_[class_of_[rank]];
  const std::size_t stream = stream_of(program.ops[op]);
  std::uint32_t& done = ranks_[rank].done[stream];
  MANYWORLDS_CHECK(done + 1 == ranks_[rank].issued[stream] && streams_[class_of_[rank]].ops[stream][done] == op,
                   "rank {} ends op {} out of order", rank, op);
  ++done;
  --unfinished_;
  end_ = std::max(end_, at);
  causes_[rank] = cause;
  if (!ranks_[rank].touched) touched_.push_back(rank), ranks_[rank].touched = true;
}

void Timeline::advance(Time at, std::vector<Entry>& entries) {
  // Kernels of no duration end at the instant they start, so this goes on until nothing moves.
  while (true) {
    while (!running_.empty() && running_.front().at == at) {
      const Running ended = running_.front();
      std::pop_heap(running_.begin(), running_.end(), std::greater<>());
      running_.pop_back();
      end_op(ended.rank, ended.op, at, Cause{});
    }
    if (touched_.empty()) return;
    std::sort(touched_.begin(), touched_.end());
    for (const std::uint32_t rank : touched_) {
      ranks_[rank].touched = false;
      issue(rank, at, entries);
    }
    touched_.clear();
  }
}

bool Timeline::ready(std::uint32_t rank, const Op& op) const {
  const Program& program = programs_[class_of_[rank]];
  const Streams& streams = streams_[class_of_[rank]];
  for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) {
    const std::uint32_t before = program.waits[i];
    if (ranks_[rank].done[stream_of(program.ops[before])] <= streams.place[before]) return false;
  }
  return true;
}

void Timeline::issue(std::uint32_t rank, Time at, std::vector<Entry>& entries) {
  const Program& program = programs_[class_of_[rank]];
  const Streams& streams = streams_[class_of_[rank]];
  Rank& state = ranks_[rank];
  for (std::size_t stream = 0; stream < workload::kStreams; ++stream) {
    if (state.issued[stream] != state.done[stream] || state.issued[stream] == streams.ops[stream].size()) continue;
    const std::uint32_t index = streams.ops[stream][state.issued[stream]];
    const Op& op = program.ops[index];
    if (!ready(rank, op)) continue;
    ++state.issued[stream];
    if (op.is_collective) {
      state.entered[stream] = at;
      entries.push_back({rank, index});
      continue;
    }
    if (op.stream == workload::Stream::compute) {
      book_wait(rank, at);
      accounts_[rank].busy[static_cast<std::size_t>(op.booking)] += op.duration_ps;
      state.busy_until = at + op.duration_ps;
    }
    running_.push_back({at + op.duration_ps, rank, index});
    std::push_heap(running_.begin(), running_.end(), std::greater<>());
  }
}

/// The compute stream of `rank` starts again at `until`. What ended last on the rank is what it waited for. Between
/// this rank's entry and the last member's it waited for others (a stall, or the bubble of a pipeline); before that
/// its stream was busy with earlier communication, and after that the network was at work: both are exposed.
void Timeline::book_wait(std::uint32_t rank, Time until) {
  const Time from = ranks_[rank].busy_until;
  if (until == from) return;
  const Cause& cause = causes_[rank];
  auto& waited = accounts_[rank].waited;
  const auto slot = [&](Wait wait) -> Time& { return waited[static_cast<std::size_t>(wait)]; };
  if (!cause.collective) {
    slot(Wait::bubble) += until - from;
    return;
  }
  const bool pipeline = is_pipeline(cause.role);
  const Time entered = pipeline ? from : std::clamp(cause.entered, from, until);
  const Time began = std::clamp(cause.began, entered, until);
  slot(exposed(cause.role)) += (entered - from) + (until - began);
  slot(pipeline ? Wait::bubble : Wait::stall) += began - entered;
}

void Timeline::settle() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    // Trailing collectives (parameters gathered after the optimizer) are exposed; the rest is bubble.
    const Cause& cause = causes_[rank];
    const Time from = ranks_[rank].busy_until;
    if (from == end_) continue;
    if (cause.collective && !is_pipeline(cause.role)) {
      book_wait(rank, end_);
    } else {
      accounts_[rank].waited[static_cast<std::size_t>(Wait::bubble)] += end_ - from;
    }
    ranks_[rank].busy_until = end_;
  }
}

std::string Timeline::deadlock() const {
  const auto name = [&](std::uint32_t rank, std::uint32_t index) {
    const Program& program = programs_[class_of_[rank]];
    const Op& op = program.ops[index];
    const std::string label = op.label < program.labels.size() ? program.labels[op.label] : "operation";
    return fmt::format("'{}' (operation {} of rank {}, stream {})", label, index, rank, kStreamNames[stream_of(op)]);
  };
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Program& program = programs_[class_of_[rank]];
    const Streams& streams = streams_[class_of_[rank]];
    for (std::size_t stream = 0; stream < workload::kStreams; ++stream) {
      const Rank& state = ranks_[rank];
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

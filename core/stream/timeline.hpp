// Streams of kernels and collectives on every rank, with CUDA's semantics: operations of a stream run in order, and
// an operation waits for the operations it names. Kernels take their duration; collectives are reported as entries
// and end when the network says so.
//
// Collectives take compute units and memory bandwidth from kernels: while at least one that is no pipeline transfer is
// under way on a rank, from its entry to its end, the rank's compute stream is slower, by a fixed share or by the
// compute units that each of them takes.
//
// All of it happens on the ticks of a clock: a kernel ends on the tick nearest to when it would, also one whose pace
// has changed, and collectives end on ticks as whoever calls complete() sees to.
//
// Ranks of one program to which the same has happened are in the same state: they stand together as one squad, until
// something ends for some of them only.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/stream/clock.hpp"
#include "core/stream/record.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::stream {

struct Entry {
  std::uint32_t rank = 0;
  std::uint32_t op = 0;
};

/// What collectives take from the kernels beside them.
struct Interference {
  // NOLINTNEXTLINE(google-explicit-constructor): a share is all there is to most of them
  Interference(std::int64_t ppm = 0) : slowdown_ppm(ppm) {}

  std::int64_t slowdown_ppm = 0;  // so many millionths longer kernels take while any is under way
  std::int64_t units = 0;         // above 0, instead: the GPU's compute units, of which each collective under way takes
  std::int64_t to_move = 0, to_add = 0;  // so many: one that moves data, and one that adds it up
};

/// Times of one rank's compute stream; they add up to Timeline::lasts().
struct Account {
  std::array<Time, workload::kBookings> busy{};
  std::array<Time, kWaits> waited{};
};

class Timeline {
 public:
  /// `programs` outlive the timeline; `program_of_rank` names one for each rank. The clock ticks every `tick_ps`.
  Timeline(const std::vector<workload::Program>& programs, std::vector<std::uint32_t> program_of_rank,
           const Interference& interference = {}, Time tick_ps = 1);
  /// The same with what collectives take from the kernels of each program.
  Timeline(const std::vector<workload::Program>& programs, std::vector<std::uint32_t> program_of_rank,
           std::vector<Interference> by_program, Time tick_ps = 1);

  /// A rank's step begins with its first kernel, not with the first of all ranks: where no rank waits for another
  /// between two steps, each begins the next when it has ended its own. Call before begin().
  void begin_apart() { apart_ = true; }
  /// Keeps a Record of each of these ranks. Call before begin().
  void record(const std::vector<std::uint32_t>& ranks);
  /// Issues what can start at time 0; appends collectives entered, squad by squad.
  void begin(std::vector<Entry>& entries);
  /// When the next kernel ends; kNever if none runs.
  Time next_kernel() const;
  /// A collective that a rank had entered ends for it at the instant of the next advance(). `began` is when its last
  /// member entered.
  void complete(std::uint32_t rank, std::uint32_t op, Time began);
  /// Ends the kernels that end at `at`, a tick, and issues all that can start then, also after complete().
  void advance(Time at, std::vector<Entry>& entries);

  bool finished() const { return unfinished_ == 0; }
  Time end() const { return end_; }
  /// The step of the rank whose step is longest: end(), unless ranks begin apart.
  Time lasts() const;
  const workload::Op& op(std::uint32_t rank, std::uint32_t op) const { return programs_[class_of_[rank]].ops[op]; }
  /// By rank.
  std::vector<Account> accounts() const;
  /// Closes the accounts and records when the step has lasted as long as lasts(): what is left of a rank's is bubble.
  void settle();
  /// Records, and which of them is that of `rank`, one of record()'s: ranks to which the same happened have one.
  const std::vector<Record>& records() const { return records_; }
  std::uint32_t record_of(std::uint32_t rank) const { return squads_[squad_of_[rank]].record; }
  /// The ranks to which the same happened as to `rank`, itself among them; ascending.
  const std::vector<std::uint32_t>& like(std::uint32_t rank) const { return squads_[squad_of_[rank]].ranks; }
  /// For a step that cannot go on: one line naming an operation that waits and the one it waits for.
  std::string deadlock() const;

 private:
  struct Streams {  // of a program
    std::array<std::vector<std::uint32_t>, workload::kStreams> ops;
    std::vector<std::uint32_t> place;  // of each op in its stream
  };
  struct Running {
    Time at;
    std::uint32_t squad, op;
    bool operator>(const Running& other) const { return at != other.at ? at > other.at : squad > other.squad; }
  };
  /// What ended last, which a stream that starts again had waited for.
  struct Cause {
    Time entered = 0, began = 0;
    workload::Role role = workload::Role::tensor;
    bool collective = false, copy = false;
  };
  /// A collective that ended for a rank.
  struct Completion {
    std::uint32_t rank, op;
    Time began;
    bool is_like(const Completion& other) const { return op == other.op && began == other.began; }
  };
  struct State {
    std::array<std::uint32_t, workload::kStreams> issued{}, done{};  // ops of each stream
    std::array<Time, workload::kStreams> entered{};  // when the operation at the head of each stream was issued
    std::array<Time, workload::kStreams> ends{};     // when the kernel at the head of each stream ends, as it looks
    Time work_left = 0, paced_at = 0;  // of the compute stream's kernel, when its pace last changed; in whole ps
    std::int64_t communicating = 0;    // collectives under way that slow kernels down, or the units that they take
    Time busy_until = 0;               // of the compute stream, for the account
    Time began = kNever, ended = 0;    // of the rank's step: its first kernel, its last operation
    std::array<Cause, workload::kStreams> issued_after{};  // what ended last when the head of each stream was issued
    Cause cause, before_cause;  // what ended last of all, and, of a collective, what ended last when it was issued
    Account account;
  };
  static constexpr std::uint32_t kNoRecord = UINT32_MAX;
  struct Squad {
    std::uint32_t program = 0;
    std::vector<std::uint32_t> ranks;  // ascending
    State state;
    std::vector<Completion> completions;  // of this instant
    bool touched = false;
    std::uint32_t record = kNoRecord;
  };

  void touch(std::uint32_t squad);
  void take_completions(std::uint32_t squad, Time at);
  void split(std::uint32_t squad, Time at);
  void end_kernel(const Running& ended, Time at);
  bool ready(const Squad& squad, const workload::Op& op) const;
  void end_op(std::uint32_t squad, std::uint32_t op, Time at, const Cause& cause);
  void end_collective(std::uint32_t squad, const Completion& completion, Time at);
  void issue(std::uint32_t squad, Time at, std::vector<Entry>& entries);
  bool is_recorded(const Squad& squad) const { return squad.record != kNoRecord; }
  void divide_record(std::uint32_t record, const std::vector<std::uint32_t>& squads);
  [[gnu::noinline]] void note(const Squad& squad, const Span& span);
  [[gnu::noinline]] void note(const Squad& squad, const Idle& idle);
  void book_wait(Squad& squad, Time until);
  void book_cause(Squad& squad, const Cause& cause, const Cause* before, Time from, Time until);
  void book(Squad& squad, Wait why, Time from, Time until);
  /// Until the tick nearest to `until`.
  void run_kernel(std::uint32_t squad, std::uint32_t op, Time until);
  /// Whether that kernel still runs and ends when `running` says.
  bool current(const Running& running) const;
  /// How long kernels take, over how long they take alone.
  struct Pace {
    std::int64_t slow, alone;
    bool operator==(const Pace&) const = default;
  };
  Pace pace_of(const Squad& squad) const;
  std::int64_t taken_by(const workload::Op& op, std::uint32_t program) const;
  void communicate(std::uint32_t squad, std::int64_t more, Time at);

  const std::vector<workload::Program>& programs_;
  const std::vector<Interference> interference_;  // by program
  const Clock clock_;
  std::vector<std::uint32_t> class_of_;
  std::vector<Streams> streams_;  // by program
  std::vector<Squad> squads_;
  std::vector<std::uint32_t> squad_of_;  // by rank
  std::vector<Running> running_;         // a heap, earliest first; some are not current
  std::vector<std::uint32_t> touched_;   // squads to which something happens at this instant
  std::vector<std::uint32_t> issued_;    // collectives, while they are issued
  std::vector<bool> followed_;           // by rank; empty if none is
  std::vector<Record> records_;
  std::size_t unfinished_ = 0;
  Time end_ = 0;
  bool apart_ = false;
};

}  // namespace manyworlds::core::stream

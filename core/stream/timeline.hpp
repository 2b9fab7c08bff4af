// The streams of kernels and collectives on every rank, with CUDA's semantics: operations of a stream run in order, and
// an operation waits for the operations that it lists. A kernel runs for its duration; a collective is reported as an
// entry and ends when the caller completes it.
//
// Collectives take compute units and memory bandwidth from kernels. While a rank is inside at least one collective that
// is not a pipeline transfer, its compute stream is slower: by a fixed share, or in proportion to the compute units
// that these collectives occupy.
//
// All events fall on the ticks of a clock. The end of a kernel is rounded to the nearest tick, also after its pace has
// changed; callers of complete() must do so on ticks.
//
// Ranks that run one program and have had the same events are in the same state. They are simulated as one lockstep
// group until an operation ends for only some of them. Groups join again where a collective ends for both at one
// instant and leaves them in states that nothing can tell apart any more, such as the ranks of a node after a transfer
// that came to each of them over another path. Their accounts differ by then, so that a rank has what its own differs
// by.
//
// A collective of which nothing but its own members decides when it ends (WholeCollectives) is like a kernel to a group
// that has all of its members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/stream/clock.hpp"
#include "core/stream/interference.hpp"
#include "core/stream/record.hpp"
#include "core/workload/program/ids.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::stream {

using workload::RepresentativeId;

struct Entry {
  RepresentativeId rank;
  std::uint32_t op = 0;
};

/// What knows of collectives how long they last if all of their members enter at one instant.
class WholeCollectives {
 public:
  virtual ~WholeCollectives() = default;
  /// Returns one member of each of the collectives that `ranks` enter by `op`, if they are all of the members; nothing
  /// otherwise. It is the same for all operations of a role.
  virtual std::vector<RepresentativeId> leaders(const std::vector<RepresentativeId>& ranks, std::uint32_t op) const = 0;
  /// Enters all members of the collectives of `leaders` at once. Returns after how long all of them leave at once,
  /// whatever else happens; kNever if that is not known, and then nothing was entered.
  virtual Time enter_whole(const std::vector<RepresentativeId>& leaders, std::uint32_t op) = 0;
  /// Returns the place of a rank's operation in the order in which collectives that end at one instant do so.
  virtual std::uint64_t order_of(RepresentativeId rank, std::uint32_t op) const = 0;
};

/// The parts of the time of one rank's compute stream; they add up to Timeline::duration().
using Account = workload::ByPart<Time>;

class Timeline {
 public:
  /// `programs` must outlive the timeline; `program_of_rank` has the index of each rank's program, by
  /// RepresentativeId. The clock ticks every `tick_ps` picoseconds.
  Timeline(const std::vector<workload::Program>& programs, std::vector<std::uint32_t> program_of_rank,
           const Interference& interference = {}, Time tick_ps = 1);
  /// The same with a different interference for each program.
  Timeline(const std::vector<workload::Program>& programs, std::vector<std::uint32_t> program_of_rank,
           std::vector<Interference> by_program, Time tick_ps = 1);

  /// Measures each rank's step from its own first kernel instead of from the first kernel of all ranks. This is for
  /// configurations in which no rank waits for another between two steps. Must be called before begin().
  void begin_unsynchronised() { unsynchronised_ = true; }
  /// Keeps a Record of each of these ranks. Must be called before begin().
  void record(const std::vector<RepresentativeId>& ranks);
  /// Issues all operations that can start at time 0 and appends the collectives entered, group by group. Of those that
  /// `whole`, if given, takes, nothing is appended, and they need not be completed.
  void begin(std::vector<Entry>& entries, WholeCollectives* whole = nullptr);
  /// Returns the end of the kernel that ends next, or of the collective that WholeCollectives took; kNever if there is
  /// none.
  Time next_end() const;
  /// Completes a collective for a rank that has entered it, at the instant of the next advance(). `began` is the entry
  /// time of the collective's last member.
  void complete(RepresentativeId rank, std::uint32_t op, Time began);
  /// Ends the kernels that end at `at`, which must be a tick, and the collectives completed since the last call; issues
  /// every operation that can then start and appends the collectives entered, as begin() does.
  void advance(Time at, std::vector<Entry>& entries, WholeCollectives* whole = nullptr);

  bool finished() const { return unfinished_ == 0; }
  Time end() const { return end_; }
  /// Returns the duration of the longest step of any rank: end(), unless ranks are unsynchronised.
  Time duration() const;
  const workload::Op& op(RepresentativeId rank, std::uint32_t op) const { return programs_[program_of_[rank]].ops[op]; }
  /// Returns the account of each rank.
  std::vector<Account> accounts() const;
  /// Closes the accounts and records at the end of the step. The time between a rank's last kernel and the end is
  /// bubble, or exposed communication if it ended with a collective.
  void close_accounts();
  /// Returns the records, and the index of the record of `rank`, which must have been given to record(). Ranks of one
  /// lockstep group share a record.
  const std::vector<Record>& records() const { return records_; }
  std::uint32_t record_of(RepresentativeId rank) const { return groups_[group_of_[rank]].record; }
  /// Returns the ranks of the lockstep group of `rank`, itself included, ascending. Groups with a record never join
  /// others, so these have had the same events as a recorded rank.
  const std::vector<RepresentativeId>& lockstep_ranks(RepresentativeId rank) const {
    return groups_[group_of_[rank]].ranks;
  }
  /// Describes a deadlock in one line, with an operation that waits and the one that it waits for.
  std::string deadlock() const;

 private:
  /// The operations of a program by stream. Streams are numbered here among those that the program uses, ascending.
  struct ProgramStreams {
    std::vector<std::vector<std::uint32_t>> ops;  // by stream
    std::vector<std::uint32_t> stream, position;  // by op: its stream, and its position there
    std::size_t compute = SIZE_MAX;               // the compute stream, if it is used
    std::size_t size() const { return ops.size(); }
  };
  struct RunningOp {
    Time at;
    std::uint32_t group, op;
    auto operator<=>(const RunningOp&) const = default;
  };
  /// The operation that ended last, for which a resuming stream is taken to have waited.
  struct Cause {
    Time entered = 0, began = 0;
    workload::Role role = workload::Role::tensor;
    bool collective = false;
    StepPart waiting = StepPart::bubble;  // what waiting for another operation counts as
    bool operator==(const Cause&) const = default;
  };
  /// The completion of a collective for one rank.
  struct Completion {
    RepresentativeId rank;
    std::uint32_t op;
    Time began;
    bool is_like(const Completion& other) const { return op == other.op && began == other.began; }
  };
  struct StreamState {
    std::uint32_t issued = 0, done = 0;  // number of ops
    Time entered = 0;                    // issue time of the op at the head
    /// Expected end of the kernel at the head, or of the collective that WholeCollectives took; kNever for others.
    Time ends = 0;
    Cause cause_at_issue;  // the cause when the head was issued
    bool is_idle() const { return issued == done; }
  };
  struct State {
    std::vector<StreamState> streams;
    Time remaining_work = 0,
         pace_changed_at = 0;          // work (ps) of the compute kernel left at its last change of pace, and when
    std::int64_t collective_load = 0;  // collectives that slow kernels down, or the units that they take
    Time busy_until = 0;               // time up to which the compute stream's account is complete
    Time began = kNever, ended = 0;    // start of the first kernel and end of the last operation
    Cause cause, previous_cause;       // the last end; the cause at its issue, if it says when it began
    Account account;
  };
  static constexpr std::uint32_t kNoRecord = UINT32_MAX;
  struct LockstepGroup {
    std::uint32_t program = 0;
    std::vector<RepresentativeId> ranks;  // ascending
    State state;
    std::vector<Completion> completions;  // at this instant
    bool touched = false;
    std::uint32_t record = kNoRecord;
    /// By role, if they were asked for since its ranks have changed: WholeCollectives::leaders().
    std::vector<std::pair<workload::Role, std::vector<RepresentativeId>>> leaders = {};
  };

  static ProgramStreams streams_of(const workload::Program& program);
  const ProgramStreams& streams_of(const LockstepGroup& group) const { return program_streams_[group.program]; }
  /// Returns the state of the stream of an operation.
  static StreamState& stream_state(LockstepGroup& group, const ProgramStreams& streams, std::uint32_t op) {
    return group.state.streams[streams.stream[op]];
  }
  void touch(std::uint32_t group);
  void end_whole(Time at, const WholeCollectives& whole);
  void end_completed(std::uint32_t group, Time at);
  void split(std::uint32_t group, Time at);
  std::uint32_t open_group(std::uint32_t program);
  void join_groups();
  void join(std::uint32_t into, std::uint32_t other);
  bool alike(const LockstepGroup& one, const LockstepGroup& other) const;
  std::uint64_t hash_of(const LockstepGroup& group) const;
  void end_kernel(const RunningOp& ended, Time at);
  bool ready(const LockstepGroup& group, const workload::Op& op) const;
  void end_op(std::uint32_t group, std::uint32_t op, Time at, const Cause& cause);
  void end_collective(std::uint32_t group, const Completion& completion, Time at);
  void issue(std::uint32_t group, Time at, std::vector<Entry>& entries, WholeCollectives* whole);
  Time enter_whole(std::uint32_t group, std::uint32_t op, Time at, WholeCollectives& whole);
  void start_compute(std::uint32_t group, std::uint32_t op, const workload::KernelOp& kernel, Time at);
  bool is_recorded(const LockstepGroup& group) const { return group.record != kNoRecord; }
  void split_record(std::uint32_t record, const std::vector<std::uint32_t>& groups);
  [[gnu::noinline]] void append_to_record(const LockstepGroup& group, const Span& span);
  [[gnu::noinline]] void append_to_record(const LockstepGroup& group, const Idle& idle);
  void account_wait(LockstepGroup& group, Time until);
  void attribute_wait(LockstepGroup& group, const Cause& cause, const Cause* before, Time from, Time until);
  void add_wait(LockstepGroup& group, StepPart why, Time from, Time until);
  /// Runs a kernel until the tick nearest to `until`.
  void run_kernel(std::uint32_t group, std::uint32_t op, Time until);
  /// A min-heap by end time; may contain outdated entries.
  using RunningOps = std::vector<RunningOp>;
  static void push(RunningOps& running, const RunningOp& op);
  static RunningOp pop(RunningOps& running);
  /// Whether the operation still runs and still ends at `running.at`.
  bool is_current(const RunningOp& running) const;
  void drop_outdated(RunningOps& running) const;
  Pace pace_of(const LockstepGroup& group) const;
  void add_collective_load(std::uint32_t group, std::int64_t delta, Time at);

  const std::vector<workload::Program>& programs_;
  const std::vector<Interference> interference_;  // by program
  const Clock clock_;
  IdVector<RepresentativeId, std::uint32_t> program_of_;
  std::vector<ProgramStreams> program_streams_;  // by program
  std::vector<LockstepGroup> groups_;  // without ranks: those of free_groups_, and of programs that no rank runs
  std::vector<std::vector<std::uint32_t>> free_groups_;     // by program
  std::vector<std::uint32_t> may_join_;                     // groups for which a collective ended at this instant
  IdVector<RepresentativeId, Account> account_difference_;  // to that of its group; empty if no groups have joined
  IdVector<RepresentativeId, std::uint32_t> group_of_;
  RunningOps running_kernels_, running_whole_;       // the latter: collectives that WholeCollectives took
  std::vector<std::uint32_t> touched_;               // groups with an event at this instant
  RunningOps ending_;                                // scratch of end_whole()
  std::vector<std::uint32_t> issued_;                // scratch of issue(): the collectives issued
  IdVector<RepresentativeId, bool> recorded_ranks_;  // whether it is recorded; empty if none is
  std::vector<Record> records_;
  std::size_t unfinished_ = 0;
  Time end_ = 0;
  bool unsynchronised_ = false;
};

}  // namespace manyworlds::core::stream

// Streams of kernels and collectives on every rank, with CUDA's semantics: operations of a stream run in order, and
// an operation waits for the operations it names. Kernels take their duration; collectives are reported as entries
// and end when the network says so.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "core/workload/program.hpp"

namespace manyworlds::core::stream {

struct Entry {
  std::uint32_t rank = 0;
  std::uint32_t op = 0;
};

/// Why a compute stream waited.
enum class Wait : std::uint8_t { exposed_tp, exposed_dp, exposed_pp, bubble, stall };
inline constexpr std::size_t kWaits = 5;

/// Times of one rank's compute stream; they add up to the end of the step.
struct Account {
  std::array<Time, workload::kBookings> busy{};
  std::array<Time, kWaits> waited{};
};

class Timeline {
 public:
  /// `programs` outlive the timeline; `program_of_rank` names one for each rank.
  Timeline(const std::vector<workload::Program>& programs, std::vector<std::uint32_t> program_of_rank);

  /// Issues what can start at time 0; appends collectives entered, in order of rank and stream.
  void begin(std::vector<Entry>& entries);
  /// When the next kernel ends; kNever if none runs.
  Time next_kernel() const;
  /// A collective that a rank had entered ends at `at` for it. `began` is when its last member entered.
  void complete(std::uint32_t rank, std::uint32_t op, Time at, Time began);
  /// Ends the kernels that end at `at` and issues all that can start then, also after complete().
  void advance(Time at, std::vector<Entry>& entries);

  bool finished() const { return unfinished_ == 0; }
  Time end() const { return end_; }
  const workload::Op& op(std::uint32_t rank, std::uint32_t op) const { return programs_[class_of_[rank]].ops[op]; }
  const std::vector<Account>& accounts() const { return accounts_; }
  /// Closes the accounts at end(): what is left of a rank's step is bubble.
  void settle();
  /// For a step that cannot go on: one line naming an operation that waits and the one it waits for.
  std::string deadlock() const;

 private:
  struct Streams {  // of a program
    std::array<std::vector<std::uint32_t>, workload::kStreams> ops;
    std::vector<std::uint32_t> place;  // of each op in its stream
  };
  struct Rank {
    std::array<std::uint32_t, workload::kStreams> issued{}, done{};  // ops of each stream
    std::array<Time, workload::kStreams> entered{};  // when the collective at the head of each stream was entered
    Time busy_until = 0;                             // of the compute stream, for the account
    bool touched = false;
  };
  struct Running {
    Time at;
    std::uint32_t rank, op;
    bool operator>(const Running& other) const { return at != other.at ? at > other.at : rank > other.rank; }
  };
  struct Cause {
    Time entered = 0, began = 0;
    workload::Role role = workload::Role::tensor;
    bool collective = false;
  };

  bool ready(std::uint32_t rank, const workload::Op& op) const;
  void end_op(std::uint32_t rank, std::uint32_t op, Time at, const Cause& cause);
  void issue(std::uint32_t rank, Time at, std::vector<Entry>& entries);
  void book_wait(std::uint32_t rank, Time until);

  const std::vector<workload::Program>& programs_;
  std::vector<std::uint32_t> class_of_;
  std::vector<Streams> streams_;  // by program
  std::vector<Rank> ranks_;
  std::vector<Cause> causes_;  // by rank: what ended last
  std::vector<Account> accounts_;
  std::vector<Running> running_;        // a heap, earliest first
  std::vector<std::uint32_t> touched_;  // ranks on which something ended at this instant
  std::size_t unfinished_ = 0;
  Time end_ = 0;
};

}  // namespace manyworlds::core::stream

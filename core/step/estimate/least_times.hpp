// What the collectives of a step, and the passes of one rank, take at least, for lower bounds.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/step/estimate/strided_collectives.hpp"
#include "core/step/layout/configuration.hpp"
#include "core/stream/interference.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::step {

/// The ends of kernels and sections of launches are rounded where they are simulated: a bound leaves out this part of
/// what a sum has in exact figures.
inline constexpr Time kRoundedShare = 1'000'000;

/// Least times of the collectives of a configuration, which must outlive it.
class LeastTimes {
 public:
  LeastTimes(const Configuration& configuration, const Links& links)
      : configuration_(configuration), strategy_(configuration.strategy), links_(links) {}

  /// Returns a time in picoseconds that no such collective falls below; 0 where none is known.
  Time of(workload::Role role, collective::Kind kind, std::int64_t bytes, const collective::Split& split = {});
  /// Returns how long each network interface is busy at least, on average over all GPUs of a stage, with a
  /// reduce-scatter, an all-gather or an all-reduce of `bytes` bytes in every group of the role. Each node of a group
  /// sends at least its sums for the shards of all others, or receives their shards, whatever the algorithm, so that
  /// collectives that run side by side take no less than the sum of these.
  Time interfaces_ps(workload::Role role, std::int64_t bytes) const;

 private:
  struct Group {
    std::int64_t members = 1, stride = 1;  // ranks, and the distance of neighbours
  };
  Group group_of(workload::Role role) const;
  Time compute(workload::Role role, collective::Kind kind, std::int64_t bytes);
  Time compute(const Configuration& configuration, const Group& group, workload::Role role, collective::Kind kind,
               std::int64_t bytes) const;

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const Links links_;
  std::map<std::tuple<workload::Role, collective::Kind, std::int64_t>, Time> known_;
};

/// A pass of one rank by itself: kernels run in order, collectives in order on their streams, and no other rank is
/// waited for. Begins with all streams free, so that passes in a row take at least the sum of theirs. If it is
/// interleaved, kernels of another pass run whenever it waits for an exchange of tokens, and its collectives end
/// meanwhile.
///
/// From the begin of collectives until all of them are waited for, on one stream, no less time goes by than kernels
/// take alone, `k`, and what these lose beside collectives that last `c` together, a share `q` of it: if nothing runs
/// for `i` of that time, collectives are beside kernels for `c - i` at least, and `k + i + q (c - i)` is least without
/// `i`.
class Chain {
 public:
  Chain(LeastTimes& least, const stream::Interference& interference, bool is_interleaved)
      : least_(least), interference_(interference), is_interleaved_(is_interleaved) {}

  void add(const workload::PhaseList& pass) {
    for (const auto& phase : pass)
      for (const auto& work : phase.ops) add(work);
  }
  Time now() const { return now_; }

 private:
  /// A stream of collectives, some of which are not waited for yet.
  struct Stream {
    Time free = 0;   // when its last collective ends
    Time begin = 0;  // of the first of those
    Time kernels = 0, lost = 0;
    std::size_t open = 0;
  };

  void add(const workload::WorkItem& work);
  void join(const workload::Join& join);
  void start(const workload::CollectiveStart& collective);

  static std::size_t stream_of(workload::Role role) {
    if (role == workload::Role::expert || role == workload::Role::expert_tensor) return 1;
    return role == workload::Role::send_context || role == workload::Role::context ? 2 : 0;
  }

  LeastTimes& least_;
  const stream::Interference& interference_;
  const bool is_interleaved_;
  bool exchanges_ = false;  // tokens are exchanged since the last time it waited for that
  Time now_ = 0;
  std::array<Stream, 3> streams_{};                       // of tensor, expert and context collectives
  std::vector<std::pair<workload::Role, Time>> started_;  // collectives not yet joined, and their ends
};

}  // namespace manyworlds::core::step

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
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::step {

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

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const Links links_;
  std::map<std::tuple<workload::Role, collective::Kind, std::int64_t>, Time> known_;
  std::optional<Configuration> chosen_;  // whose library has one algorithm and protocol of those that it may choose
};

/// A pass of one rank by itself: kernels run in order, collectives in order on their streams, and no other rank is
/// waited for. Begins with all streams free, so that passes in a row take at least the sum of theirs. If it is
/// interleaved, kernels of another pass run whenever it waits for an exchange of tokens, and its collectives end
/// meanwhile.
class Chain {
 public:
  Chain(LeastTimes& least, bool is_interleaved) : least_(least), is_interleaved_(is_interleaved) {}

  void add(const workload::PhaseList& pass) {
    for (const auto& phase : pass)
      for (const auto& work : phase.ops) add(work);
  }
  Time now() const { return now_; }

 private:
  void add(const workload::WorkItem& work) {
    if (const workload::KernelWork* kernel = work.kernel())
      now_ += kernel->cost.ps;
    else if (const workload::CollectiveStart* collective = work.start())
      start(*collective);
    else
      join(std::get<workload::Join>(work.action));
  }

  void join(const workload::Join& join) {
    if (!is_interleaved_ || join.role || !exchanges_) {
      now_ = after_join(now_, join, started_);
      return;
    }
    exchanges_ = false;
    started_.clear();
    stream_free_ = {};
  }

  void start(const workload::CollectiveStart& collective) {
    Time& free = stream_free_.at(stream_of(collective.role));
    free = std::max(now_, free) + least_.of(collective.role, collective.kind, collective.bytes, collective.split);
    started_.emplace_back(collective.role, free);
    exchanges_ |= collective.role == workload::Role::expert;
  }

  static std::size_t stream_of(workload::Role role) {
    if (role == workload::Role::expert || role == workload::Role::expert_tensor) return 1;
    return role == workload::Role::send_context || role == workload::Role::context ? 2 : 0;
  }

  LeastTimes& least_;
  const bool is_interleaved_;
  bool exchanges_ = false;  // tokens are exchanged since the last time it waited for that
  Time now_ = 0;
  std::array<Time, 3> stream_free_{};                     // of tensor, expert and context collectives
  std::vector<std::pair<workload::Role, Time>> started_;  // collectives not yet joined, and their ends
};

}  // namespace manyworlds::core::step

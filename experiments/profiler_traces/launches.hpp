// Which call launched each operation of the device, and the order in which each stream was given its operations.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::profiler {

class Launches {
 public:
  /// The trace must outlive this.
  explicit Launches(const RankTrace& trace);

  /// Returns the call that launched an operation; kNone if the trace does not have it.
  std::uint32_t call_of(std::uint32_t op) const { return call_of_[op]; }
  /// Returns the operations that a call launched, in order of start.
  std::span<const std::uint32_t> ops_of(std::uint32_t call) const {
    return {ops_.data() + first_[call], first_[call + 1] - first_[call]};
  }
  /// Returns the last operation that a stream was given before a time, and the first from then on; kNone if there is
  /// none.
  std::uint32_t last_before(std::uint32_t stream, std::int64_t time) const;
  std::uint32_t first_from(std::uint32_t stream, std::int64_t time) const;
  /// Returns when an operation was given to its stream: when its call began.
  std::int64_t issued(std::uint32_t op) const;
  std::size_t streams() const { return by_stream_.size(); }

 private:
  using Issued = std::pair<std::int64_t, std::uint32_t>;

  const RankTrace& trace_;
  std::vector<std::uint32_t> call_of_;  // by operation
  std::vector<std::size_t> first_;      // by call: where its operations begin in ops_
  std::vector<std::uint32_t> ops_;
  std::vector<std::vector<Issued>> by_stream_;  // time and operation, ascending
};

}  // namespace manyworlds::experiments::profiler

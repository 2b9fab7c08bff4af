// The recording of a step as plain data: the records of requested ranks, and the interval of every collective. A step
// simulated in parts (composed) and one in a single event loop (coupled) give equal recordings.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory/footprint.hpp"
#include "core/step/compile/compiled_step.hpp"
#include "core/stream/record.hpp"

namespace manyworlds::core::step {

/// The interval of a collective instance as the streams see it, on ticks of their clock.
struct CollectiveInterval {
  Time first = kNever;   // entry of the first member
  Time second = kNever;  // entry of the second member; nothing is exchanged before it
  Time last = kNever;    // entry of the last member
  Time ended = kNever;   // exit of the last member
  bool operator==(const CollectiveInterval&) const = default;
};

/// The recorded ranks are set by the caller, the rest is filled in by Step.
struct Recording {
  struct Rank {
    RankId rank;
    std::uint32_t record = 0;          // index in `records`; ranks in lockstep share one
    std::uint32_t lockstep_count = 1;  // ranks of its stage, itself included, with the same events at the same instants
    bool operator==(const Rank&) const = default;
  };
  Time end = 0;             // end of the step; 0 if it did not finish, and then the rest is empty
  std::vector<Rank> ranks;  // ascending
  std::vector<stream::Record> records;
  IdVector<InstanceId, CollectiveInterval> intervals;
  bool operator==(const Recording&) const = default;
};

/// The utilization of a network link over time.
struct LinkUtilization {
  std::uint32_t link = 0;
  std::int64_t bytes = 0;  // total over the step, headers included
  /// (instant, bytes per second from then on), from the beginning of the first collective to the end of the last. A
  /// collective's bytes are spread evenly from CollectiveInterval::second (or first, if switches reduce or
  /// replicate: a member then sends without waiting for a second) to CollectiveInterval::ended.
  std::vector<std::pair<Time, double>> rates;
};

/// Returns at most `max_links` network links, in descending order of total serialisation time. Links without traffic
/// are left out.
std::vector<LinkUtilization> busiest_links(const CompiledStep& compiled, const Recording& recording,
                                           std::size_t max_links);

/// The memory that a rank holds from an instant on.
struct MemoryAt {
  Time at = 0;
  memory::Footprint held;
};

/// Returns the memory of a rank over time, ascending. It follows core::memory::footprints_by_pass(): the maximum of a
/// pass is held from the start of its first kernel to the end of its last, but not before the previous pass in the
/// schedule has ended. If several entries have one instant, the last one applies. The largest is
/// core::memory::footprint() of the rank's class.
std::vector<MemoryAt> memory_over_time(const CompiledStep& compiled, const Recording& recording,
                                       const Recording::Rank& rank);

}  // namespace manyworlds::core::step

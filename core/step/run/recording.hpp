// What a step did, as plain data: the records of the ranks that somebody asks about, and when every collective was
// under way. Both compositions give the same one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory/footprint.hpp"
#include "core/step/world/world.hpp"
#include "core/stream/record.hpp"

namespace manyworlds::core::step {

/// When an instance of a collective was under way, as the streams notice it: on ticks of their clock.
struct Course {
  Time first = kNever;   // a member enters
  Time second = kNever;  // another one does: before that no two members exchange anything
  Time last = kNever;    // the last member enters
  Time ended = kNever;   // the last member has left
  bool operator==(const Course&) const = default;
};

struct Recording {
  struct Rank {
    std::uint32_t rank = 0;
    std::uint32_t record = 0;  // in `records`
    std::uint32_t alike = 1;   // ranks of its stage to which the same happened at the same instants, itself included
    bool operator==(const Rank&) const = default;
  };
  Time end = 0;             // of the step; 0: it did not run to its end, and the rest is empty
  std::vector<Rank> ranks;  // ascending
  std::vector<stream::Record> records;
  std::vector<Course> courses;  // by instance of the world
  bool operator==(const Recording&) const = default;
};

/// A network link while collectives are on it.
struct LinkCourse {
  std::uint32_t link = 0;
  std::int64_t bytes = 0;  // that cross it in the step, headers included
  /// (instant, bytes per second from then on), from the first collective to the end of the last. A collective's bytes
  /// are spread evenly from Course::second (first, where a switch takes part) to Course::ended.
  std::vector<std::pair<Time, double>> rates;
};

/// The `most` network links that serialise longest, those that do first; links that carry nothing are left out.
std::vector<LinkCourse> busiest_links(const World& world, const Recording& recording, std::size_t most);

/// Memory of a rank from an instant on.
struct MemoryAt {
  Time at = 0;
  memory::Footprint held;
};

/// As core::memory walks the rank's schedule: what a pass holds at most is held from its first kernel to the end of its
/// last, and not before the pass ahead of it in the schedule is over. Ascending; of several at one instant the last one
/// stays. The largest is core::memory::footprint() of the rank's class.
std::vector<MemoryAt> memory_over_time(const World& world, const Recording& recording, const Recording::Rank& rank);

}  // namespace manyworlds::core::step

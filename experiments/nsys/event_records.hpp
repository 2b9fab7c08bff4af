// Where events of CUDA were recorded, so that a wait for one finds what it is for.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/nsys/database.hpp"

namespace manyworlds::experiments::nsys {

/// A call that recorded an event on a stream.
struct EventRecord {
  std::int64_t process = 0, context = 0, event = 0;
  std::int64_t correlation = 0;  // of the call; ascending in a process in the order of calls
  std::int64_t sync = -1;        // the identity that waits for this record have too; below 0: the export has none
  std::int64_t device = -1, stream = 0;
};

class EventRecords {
 public:
  /// Reads the records of an export, if it has any (--cuda-event-trace).
  explicit EventRecords(const Database& database);

  bool are_there() const { return !records_.empty(); }
  /// Returns the record that a call which waits for an event is for: that with its identity `sync`, or else the last
  /// one of the event before the call. nullptr if there is none.
  const EventRecord* find(std::int64_t process, std::int64_t context, std::int64_t event, std::int64_t sync,
                          std::int64_t correlation) const;

 private:
  std::vector<EventRecord> records_;    // by process, context, event and correlation
  std::vector<std::uint32_t> by_sync_;  // those with an identity, by process and that
};

}  // namespace manyworlds::experiments::nsys

// The clock of the streams. GPU operations begin and end on its ticks, at whatever picosecond the network finishes, so
// that equal traffic in two places of a step has equal offsets and is simulated once (docs/model/compute.md, "A clock
// that ticks").
#pragma once

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace manyworlds::core::stream {

class Clock {
 public:
  explicit Clock(Time tick_ps) : tick_ps_(tick_ps) {
    MANYWORLDS_CHECK(tick_ps >= 1, "the tick of a clock must be at least 1 ps, not {} ps", tick_ps);
  }

  /// Returns the tick nearest to `at`, halves rounded up; kernel ends are rounded this way.
  Time nearest(Time at) const { return (at + tick_ps_ / 2) / tick_ps_ * tick_ps_; }
  /// Returns the first tick at or after `at`: a stream sees a network event no earlier than it happens.
  Time not_before(Time at) const { return (at + tick_ps_ - 1) / tick_ps_ * tick_ps_; }
  bool ticks_at(Time at) const { return at % tick_ps_ == 0; }

 private:
  Time tick_ps_;
};

}  // namespace manyworlds::core::stream

// Completions quantised to ticks: exits from the network between two ticks of the streams' clock are held until the
// second tick, where the streams see all of them together.
#pragma once

#include <algorithm>
#include <vector>

#include "core/step/network/network_model.hpp"
#include "core/stream/clock.hpp"

namespace manyworlds::core::step {

class TickedCompletions {
 public:
  explicit TickedCompletions(stream::Clock clock) : clock_(clock) {}

  /// Returns the tick at which the held exits become visible, or kNever if none is held.
  Time due() const { return due_; }

  /// Takes the exits at `at`, the instant returned by the network's next(). `at` must not be after due().
  void take_exits(NetworkModel& network, Time at) {
    const Time due = clock_.not_before(at);
    MANYWORLDS_CHECK(due_ == kNever || due_ == due, "exits of {} are held, those at {} come too late", due_, at);
    due_ = due;
    network.take_exits(at, pending_);
  }

  /// Returns and removes the exits due at the tick `at`, ascending by member, whatever their order within the tick.
  std::vector<Member> take_due(Time at) {
    std::vector<Member> exits;
    if (due_ != at) return exits;
    exits.swap(pending_);
    due_ = kNever;
    std::sort(exits.begin(), exits.end());
    return exits;
  }

 private:
  stream::Clock clock_;
  std::vector<Member> pending_;
  Time due_ = kNever;
};

}  // namespace manyworlds::core::step

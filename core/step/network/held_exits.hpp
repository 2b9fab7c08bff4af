// Exits that the streams have not noticed: what leaves the network between two ticks of their clock waits for the
// second one, where all of it is noticed together.
#pragma once

#include <algorithm>
#include <vector>

#include "core/step/network/network_side.hpp"
#include "core/stream/clock.hpp"

namespace manyworlds::core::step {

class HeldExits {
 public:
  explicit HeldExits(stream::Clock clock) : clock_(clock) {}

  /// The tick at which those held are noticed; kNever if none is held.
  Time due() const { return due_; }

  /// Takes those at `at`, the instant that the network's next() gave; not after due().
  void take(NetworkSide& network, Time at) {
    const Time due = clock_.not_before(at);
    MANYWORLDS_CHECK(due_ == kNever || due_ == due, "exits of {} are held, those at {} come too late", due_, at);
    due_ = due;
    network.take(at, held_);
  }

  /// Those that are due at `at`, ascending, whenever in the tick they were.
  std::vector<Member> noticed(Time at) {
    std::vector<Member> exits;
    if (due_ != at) return exits;
    exits.swap(held_);
    due_ = kNever;
    std::sort(exits.begin(), exits.end());
    return exits;
  }

 private:
  stream::Clock clock_;
  std::vector<Member> held_;
  Time due_ = kNever;
};

}  // namespace manyworlds::core::step

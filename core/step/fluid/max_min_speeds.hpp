// The speeds of collectives that share links as fluids. Each needs a share of the time of every link that it uses; if
// the links cannot give everything, the speeds are max-min fair: no collective can be faster without making one slower
// that is not faster than it (Bertsekas and Gallager, Data Networks, section 6.5.2; the same in the flow-level models
// of SimGrid, Casanova et al. 2014). A collective's flows want the rate of its NICs, so that flows with equal shares of
// a link have equal speeds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace manyworlds::core::step {

/// A speed, or a share of a link's time: a fraction of 2^32. A collective alone has speed kFullSpeed at most.
using FluidShare = std::int64_t;
inline constexpr FluidShare kFullSpeed = FluidShare{1} << 32;

class MaxMinSpeeds {
 public:
  /// What each of `count` collectives that go alike takes of a link's time at full speed. It may be more than all of
  /// it.
  struct Load {
    std::uint32_t link = 0;
    FluidShare share = 0;
    std::uint32_t count = 1;
  };
  using Loads = std::vector<Load>;

  /// Of links that are full at one speed, the one that comes first in `preference` (by link) is the bottleneck; without
  /// it, and of equals, the one with the lowest number.
  explicit MaxMinSpeeds(std::size_t links, std::vector<std::uint8_t> preference = {})
      : links_(links), preference_(std::move(preference)) {}

  /// Adds a collective, or several that go alike, with a number that no present one has. `loads` must outlive it here.
  void add(std::uint32_t number, const Loads& loads);
  void remove(std::uint32_t number);
  /// Updates the speeds after any number of additions and removals, and returns the collectives whose speed changed
  /// since the last call, ascending. New ones have had full speed.
  std::vector<std::uint32_t> update();
  FluidShare speed(std::uint32_t number) const { return members_[number].speed; }
  /// Returns the link that limits a collective which is slower than full speed.
  std::uint32_t bottleneck(std::uint32_t number) const { return members_[number].bottleneck; }

 private:
  struct Member {
    const Loads* loads = nullptr;  // null: there is no collective with this number
    FluidShare speed = kFullSpeed;
    std::uint32_t bottleneck = 0;  // the link that limits it, unless it has full speed
    bool is_affected = false, is_fixed = false;
  };
  struct Link {
    FluidShare load = 0;                  // of all that use it, at full speed
    bool is_affected = false;             // some of its users may get another speed
    std::vector<std::uint32_t> users;     // collectives, in no order that matters
    FluidShare fixed = 0, open_load = 0;  // during update(): what is used at fixed speeds, and the load of the others
  };
  bool is_short(const Link& link) const { return link.load > kFullSpeed; }
  void affect(std::uint32_t link);
  void find_affected();
  void fill();
  void fix(std::uint32_t number, FluidShare speed, std::uint32_t bottleneck);

  std::vector<Member> members_;
  std::vector<Link> links_;
  std::vector<std::uint8_t> preference_;
  std::vector<std::uint32_t> touched_;                    // links that were short before or after a change
  std::vector<std::uint32_t> affected_links_, affected_;  // of update()
};

}  // namespace manyworlds::core::step

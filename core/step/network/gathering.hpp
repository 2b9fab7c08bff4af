// Who meets whom: which collectives become active at an instant, which components of collectives on the way they share
// links with, and so what hangs together from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/step/network/network_side.hpp"

namespace manyworlds::core::step {

inline constexpr std::uint32_t kNoComponent = UINT32_MAX;

/// What enters at one instant and hangs together: new instances, and components they touch or go on in. Ascending.
struct Meeting {
  std::vector<std::uint32_t> instances, components;
  std::vector<Member> entries;
};

class Gathering {
 public:
  explicit Gathering(const World& world);

  /// True if nothing is left of a component, which has then left its links.
  using Drained = std::function<bool(std::uint32_t component)>;
  /// Sorts what enters into meetings. An instance becomes active when two of its members have entered, since before
  /// that nothing of it can move (one is enough where it can send to a switch); entries of active instances go on in
  /// their components. What it gives stands until the next call.
  std::span<Meeting> gather(const std::vector<Member>& members, const Drained& drained);

  std::uint32_t component_of(std::uint32_t instance) const { return instances_[instance].component; }
  void place(std::uint32_t instance, std::uint32_t component) { instances_[instance].component = component; }
  /// Each link belongs to the component that uses it; kNoComponent: to none.
  void occupy(std::span<const std::uint32_t> links, std::uint32_t component) {
    for (const std::uint32_t link : links) owner_[link] = component;
  }

 private:
  struct Arrivals {
    std::vector<std::uint32_t> fresh;  // instances
    std::vector<Member> going_on;
  };
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  std::uint32_t open_list();
  Meeting& open_meeting();
  const Arrivals& arrivals(const std::vector<Member>& members);

  struct Instance {
    std::uint32_t waiting = kNobody;         // in waiting_: members that entered before anything could move
    std::uint32_t component = kNoComponent;  // once it is active
  };
  const World& world_;
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> owner_;     // by link of the graph
  std::vector<std::uint32_t> first_at_;  // by link of the graph: the first fresh instance on it, while gathering
  std::vector<std::vector<std::uint32_t>> waiting_;
  std::vector<std::uint32_t> free_;  // of waiting_
  std::vector<Meeting> meetings_;    // the last ones, and room for more
  std::size_t met_ = 0;
  Arrivals arrived_;                       // while gathering
  std::vector<std::uint32_t> meeting_of_;  // by root, while gathering
};

}  // namespace manyworlds::core::step

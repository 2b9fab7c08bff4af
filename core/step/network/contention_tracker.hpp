// Contention tracking: which collectives become active at an instant, with which running components they share links,
// and thus which collectives and components must be simulated together from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/step/network/network_model.hpp"

namespace manyworlds::core::step {

inline constexpr std::uint32_t kNoComponent = UINT32_MAX;

/// A connected set of entries at one instant: newly active instances, the components with which they share links or to
/// which entering members belong, and the entries. All ascending.
struct ContentionGroup {
  std::vector<InstanceId> instances;
  std::vector<std::uint32_t> components;
  std::vector<Member> entries;
};

class ContentionTracker {
 public:
  explicit ContentionTracker(const CompiledStep& compiled);

  /// Returns whether nothing is left of a component; if so, its links are released.
  using Drained = std::function<bool(std::uint32_t component)>;
  /// Divides entering members into contention groups. An instance becomes active when two of its members have entered,
  /// since before that it can send nothing (one suffices if it can send to a switch); later members enter the component
  /// of their instance. The result is valid until the next call.
  std::span<ContentionGroup> contention_groups(const std::vector<Member>& members, const Drained& drained);

  std::uint32_t component_of(InstanceId instance) const { return instances_[instance].component; }
  void place(InstanceId instance, std::uint32_t component) { instances_[instance].component = component; }
  /// Returns the links that an instance may use, ascending.
  const std::vector<std::uint32_t>& links_of(InstanceId instance);
  /// Assigns links to the component that uses them, or to none (kNoComponent).
  void assign_links(std::span<const std::uint32_t> links, std::uint32_t component) {
    for (const std::uint32_t link : links) component_of_link_[link] = component;
  }

 private:
  struct Arrivals {
    std::vector<InstanceId> newly_active;
    std::vector<Member> continuing;  // members of active instances
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t open_list();
  ContentionGroup& open_group();
  const Arrivals& arrivals(const std::vector<Member>& members);

  struct Instance {
    std::uint32_t waiting = kNone;           // index in waiting_ of the members that entered before it became active
    std::uint32_t component = kNoComponent;  // once it is active
  };
  const CompiledStep& compiled_;
  std::map<const Connections*, std::vector<std::uint32_t>> spread_links_;  // of connections whose packets spread
  IdVector<InstanceId, Instance> instances_;
  std::vector<std::uint32_t> component_of_link_;  // by link of the graph: the component that uses it
  std::vector<std::uint32_t> first_on_link_;  // by link of the graph: scratch, the first newly active instance on it
  std::vector<std::vector<std::uint32_t>> waiting_;
  std::vector<std::uint32_t> free_;                 // unused entries of waiting_
  std::vector<ContentionGroup> contention_groups_;  // the first `group_count_` are the current ones
  std::size_t group_count_ = 0;
  Arrivals arrivals_;                         // scratch
  std::vector<std::uint32_t> group_of_root_;  // by root, scratch
};

}  // namespace manyworlds::core::step

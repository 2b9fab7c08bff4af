// The two levels of a calendar queue (Brown, CACM 1988): 16,384 buckets of 128 ps for near events, 2,048 slots of 262
// ns for later ones, and a heap for the rest. Events are nodes that belong to the queue; a bucket or slot is a list of
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/network/engine/occupancy_bitmap.hpp"

namespace manyworlds::core::network {

/// `nodes`, an argument of most functions, has next(index), the link of a node in its list, and bucket(index), the
/// number of its bucket or at least the low kBucketBits bits of it.
class CalendarLevels {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr int kBucketShift = 7;  // log2 of the bucket width, 128 ps
  static constexpr int kBucketBits = 14;  // log2 of the number of buckets

  CalendarLevels() : buckets_(kBuckets, kNone), slots_(kSlots, kNone) {}

  void clear() {
    clear(buckets_, occupied_buckets_);
    clear(slots_, occupied_slots_);
    far_.clear();
  }
  /// Restarts an empty queue at time 0.
  void restart() { current_ = -1; }

  /// Returns the number of the open bucket; events belong into later ones.
  std::int64_t current() const { return current_; }
  /// Returns whether push_near() takes the bucket, as nearly always.
  [[gnu::always_inline]] bool is_near(std::int64_t bucket) const {
    return static_cast<std::uint64_t>(bucket - current_ - 1) < kBuckets - (1u << kSlotShift);
  }
  template <class Nodes>
  [[gnu::always_inline]] void push_near(Nodes&& nodes, std::uint32_t index, std::int64_t bucket) {
    prepend(nodes, buckets_, occupied_buckets_, static_cast<std::uint32_t>(bucket) & (kBuckets - 1), index);
  }
  /// Returns the first node of a bucket for which is_near(), or kNone.
  [[gnu::always_inline]] std::uint32_t near_first(std::int64_t bucket) const {
    return buckets_[static_cast<std::uint32_t>(bucket) & (kBuckets - 1)];
  }
  /// Returns the first node of the next near bucket that has events, or kNone if there is none.
  std::uint32_t peek() const {
    const std::uint32_t found = occupied_buckets_.next(static_cast<std::uint32_t>((current_ + 1) & (kBuckets - 1)));
    return found < kBuckets ? buckets_[found] : kNone;
  }
  /// Adds a node to any bucket after the open one.
  template <class Nodes>
  void push(Nodes&& nodes, std::uint32_t index, std::int64_t bucket) {
    const std::int64_t slot = bucket >> kSlotShift, here = current_ >> kSlotShift;
    if (slot < here + kSlotsAhead)
      push_near(nodes, index, bucket);
    else if (slot < here + kSlots)
      prepend(nodes, slots_, occupied_slots_, static_cast<std::uint32_t>(slot) & (kSlots - 1), index);
    else
      far_.push_back({bucket, index}), std::push_heap(far_.begin(), far_.end(), std::greater<>());
  }

  /// Opens the next bucket that has events, takes its list out and returns the first node; kNone if that bucket is
  /// after `last`. The queue must not be empty.
  template <class Nodes>
  std::uint32_t open_next(Nodes&& nodes, std::int64_t last) {
    while (true) {
      const auto from = static_cast<std::uint32_t>((current_ + 1) & (kBuckets - 1));
      const std::uint32_t found = occupied_buckets_.next(from);
      if (found < kBuckets) {
        const std::int64_t bucket = current_ + 1 + ((found - from) & (kBuckets - 1));
        if (bucket > last) return kNone;
        if (bucket >> kSlotShift != current_ >> kSlotShift) advance_to_slot(nodes, bucket >> kSlotShift);
        current_ = bucket;
        occupied_buckets_.clear(found);
        return std::exchange(buckets_[found], kNone);
      }
      // The buckets are empty: continue with the first slot that has events, or with the first event of the heap.
      const std::int64_t here = current_ >> kSlotShift;
      const auto first = static_cast<std::uint32_t>((here + kSlotsAhead) & (kSlots - 1));
      const std::uint32_t slot = occupied_slots_.next(first);
      const std::int64_t next =
          slot < kSlots ? here + kSlotsAhead + ((slot - first) & (kSlots - 1)) : far_.front().first >> kSlotShift;
      if (next << kSlotShift > last) return kNone;
      advance_to_slot(nodes, next);
    }
  }

  /// Calls visit(index) for the nodes of all buckets, slots and the heap.
  template <class Nodes, class Visit>
  void for_each(const Nodes& nodes, Visit visit) const {
    for_each_list(nodes, buckets_, occupied_buckets_, visit);
    for_each_list(nodes, slots_, occupied_slots_, visit);
    for (const auto& [bucket, index] : far_) visit(index);
  }

 private:
  static constexpr std::uint32_t kBuckets = 1u << kBucketBits, kSlots = 2'048;
  static constexpr int kSlotShift = 11;                                // log2 of the buckets per slot
  static constexpr std::int64_t kSlotsAhead = kBuckets >> kSlotShift;  // slots that the buckets cover

  template <class Bitmap>
  static void clear(std::vector<std::uint32_t>& lists, Bitmap& occupied) {
    for (std::uint32_t place; (place = occupied.next(0)) < lists.size(); occupied.clear(place)) lists[place] = kNone;
  }
  template <class Nodes, class Bitmap>
  [[gnu::always_inline]] static void prepend(Nodes& nodes, std::vector<std::uint32_t>& lists, Bitmap& occupied,
                                             std::uint32_t place, std::uint32_t index) {
    if ((nodes.next(index) = lists[place]) == kNone) occupied.set(place);
    lists[place] = index;
  }

  /// Makes `slot` the current slot: moves the events of slots that the buckets now cover into buckets, and events of
  /// the heap that the slots now cover into slots.
  template <class Nodes>
  [[gnu::noinline]] void advance_to_slot(Nodes& nodes, std::int64_t slot) {
    for (std::int64_t near = std::max((current_ >> kSlotShift) + kSlotsAhead, slot); near < slot + kSlotsAhead;
         ++near) {
      const auto place = static_cast<std::uint32_t>(near) & (kSlots - 1);
      if (slots_[place] == kNone) continue;
      occupied_slots_.clear(place);
      for (std::uint32_t index = std::exchange(slots_[place], kNone); index != kNone;) {
        const std::uint32_t next = nodes.next(index);
        push_near(nodes, index, nodes.bucket(index));
        index = next;
      }
    }
    current_ = (slot << kSlotShift) - 1;  // the last bucket of the slot before, from which push() counts
    while (!far_.empty() && far_.front().first >> kSlotShift < slot - 1 + kSlots) {
      const auto [bucket, index] = far_.front();
      std::pop_heap(far_.begin(), far_.end(), std::greater<>());
      far_.pop_back();
      push(nodes, index, bucket);
    }
  }

  template <class Nodes, class Bitmap, class Visit>
  static void for_each_list(const Nodes& nodes, const std::vector<std::uint32_t>& lists, const Bitmap& occupied,
                            Visit visit) {
    const auto places = static_cast<std::uint32_t>(lists.size());
    std::uint32_t place = occupied.next(0);
    while (place < places) {
      for (std::uint32_t index = lists[place]; index != kNone; index = nodes.next(index)) visit(index);
      if (++place == places) break;
      const std::uint32_t found = occupied.next(place);
      if (found < place) break;  // the search wrapped around
      place = found;
    }
  }

  std::int64_t current_ = -1;                   // number of the open bucket
  std::vector<std::uint32_t> buckets_, slots_;  // first node of each list, or kNone
  OccupancyBitmap<kBuckets> occupied_buckets_;
  OccupancyBitmap<kSlots> occupied_slots_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> far_;  // heap of (bucket, node) beyond the slots
};

}  // namespace manyworlds::core::network

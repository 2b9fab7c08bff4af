// The event queue of the event-driven engine, a calendar queue (Brown, CACM 1988) of two levels: 16,384 buckets of
// 128 ps for near events, 2,048 slots of 262 ns for later ones, and a heap for the rest. Events leave in the exact
// order of Event::before(), whichever bucket they were in.
//
// The packets on one link, and the acks of one flow, arrive in order, so only the first of each has an event: a few
// events per busy link, not one per packet.
//
// A radix heap instead took 1.9 times as long for a permutation of 1,024 hosts under DCQCN (1,540 instructions per
// link-hop in total, against 534) and 1.1 times for one of 128, because it moves near events from bucket to bucket.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/network/engine/occupancy_bitmap.hpp"

namespace manyworlds::core::network {

/// Events of equal time and kind may leave in any order; the engine guarantees that they commute.
struct Event {
  static constexpr int kKindShift = 60;
  Event(Time when, std::uint64_t kind, std::uint64_t subject) : at(when), packed(kind << kKindShift | subject) {}

  Time at;
  std::uint64_t packed;  // event kind in the top 4 bits, then the subject (a link or a flow)

  std::uint64_t kind() const { return packed >> kKindShift; }
  std::uint64_t subject() const { return packed & ((1ull << kKindShift) - 1); }
  bool before(const Event& other) const { return at != other.at ? at < other.at : kind() < other.kind(); }
};

class EventWheel {
 public:
  EventWheel() : open_(kInsertionSortMax, Event{0, 0, 0}), buckets_(kBuckets, kNone), slots_(kSlots, kNone) {}

  bool empty() const { return size_ == 0; }
  void clear() {
    if (size_ > 0) {
      for_each_place([&](auto& lists, auto& occupied, std::uint32_t place) {
        lists[place] = kNone;
        occupied.clear(place);
      });
    }
    nodes_.clear();
    free_ = kNone;
    open_count_ = 0;
    late_.clear();
    far_.clear();
    current_ = -1;
    size_ = 0;
  }

  /// Returns whether no further event is due at `now`, which must be the time of the last event taken.
  bool nothing_at(Time now) const {
    return (open_count_ == 0 || open_[open_count_ - 1].at > now) && (late_.empty() || late_.front().at > now);
  }

  /// Returns the first event. The queue must not be empty.
  const Event& top() {
    if (late_.empty()) {
      if (open_count_ == 0) advance();
      return open_[open_count_ - 1];
    }
    return late_is_first() ? late_.front() : open_[open_count_ - 1];
  }
  [[gnu::always_inline]] void pop() {
    --size_;
    if (late_.empty() || !late_is_first())
      --open_count_;
    else
      pop_late();
  }

  /// Removes and returns the first event.
  Event take() {
    const Event event = top();
    pop();
    return event;
  }

  void push(const Event& event) {
    ++size_;
    const std::int64_t bucket = event.at >> kBucketShift;
    // Nearly all events are near: after the open bucket and before the first slot.
    if (static_cast<std::uint64_t>(bucket - current_ - 1) < kBuckets - (1u << kSlotShift) && free_ != kNone) [[likely]]
      prepend(buckets_, occupied_buckets_, static_cast<std::uint32_t>(bucket) & (kBuckets - 1), event);
    else
      place(event);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 0; i < open_count_; ++i) visit(open_[i]);
    for (const Event& event : late_) visit(event);
    for (const Event& event : far_) visit(event);
    const_cast<EventWheel*>(this)->for_each_place([&](auto& lists, auto&, std::uint32_t place) {
      for (std::uint32_t node = lists[place]; node != kNone; node = nodes_[node].next) visit(nodes_[node].event);
    });
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kBuckets = 16'384, kSlots = 2'048;
  static constexpr int kBucketShift = 7;  // log2 of the bucket width, 128 ps
  static constexpr int kSlotShift = 11;   // log2 of the buckets per slot
  static constexpr std::size_t kInsertionSortMax = 16;
  static constexpr std::int64_t kSlotsAhead = kBuckets >> kSlotShift;  // slots that the buckets cover

  struct Node {
    Event event;
    std::uint32_t next;
  };

  static bool after(const Event& a, const Event& b) { return b.before(a); }

  [[gnu::noinline]] void place(const Event event) {
    if (free_ == kNone) add_nodes();
    const std::int64_t bucket = event.at >> kBucketShift, slot = bucket >> kSlotShift;
    if (bucket <= current_)
      late_.push_back(event), std::push_heap(late_.begin(), late_.end(), after);
    else if (slot < (current_ >> kSlotShift) + kSlotsAhead)
      prepend(buckets_, occupied_buckets_, static_cast<std::uint32_t>(bucket) & (kBuckets - 1), event);
    else if (slot < (current_ >> kSlotShift) + kSlots)
      prepend(slots_, occupied_slots_, static_cast<std::uint32_t>(slot & (kSlots - 1)), event);
    else
      far_.push_back(event), std::push_heap(far_.begin(), far_.end(), after);
  }

  template <class Bitmap>
  [[gnu::always_inline]] void prepend(std::vector<std::uint32_t>& lists, Bitmap& occupied, std::uint32_t place,
                                      const Event& event) {
    const std::uint32_t node = free_, before = lists[place];
    Node& new_node = nodes_[node];
    free_ = new_node.next;
    new_node.event = event;
    new_node.next = before;
    lists[place] = node;
    if (before == kNone) occupied.set(place);
  }
  void add_nodes() {
    const auto first = static_cast<std::uint32_t>(nodes_.size()), last = first == 0 ? 64 : 2 * first;
    for (std::uint32_t node = first; node < last; ++node) nodes_.push_back({{0, 0, 0}, node + 1});
    nodes_.back().next = kNone;
    free_ = first;
  }

  /// Appends the events of a bucket or slot to `to` and empties it.
  template <class Bitmap>
  void drain(std::vector<std::uint32_t>& lists, Bitmap& occupied, std::uint32_t place, std::vector<Event>& to) {
    const std::uint32_t first = lists[place];
    lists[place] = kNone;
    occupied.clear(place);
    std::uint32_t last = first;
    for (std::uint32_t node = first; node != kNone; node = nodes_[node].next) to.push_back(nodes_[last = node].event);
    nodes_[last].next = free_;
    free_ = first;
  }

  [[gnu::noinline]] void pop_late() {
    std::pop_heap(late_.begin(), late_.end(), after);
    late_.pop_back();
  }
  bool late_is_first() const { return open_count_ == 0 || late_.front().before(open_[open_count_ - 1]); }

  /// Opens the next nonempty bucket.
  [[gnu::noinline]] void advance() {
    while (true) {
      const auto from = static_cast<std::uint32_t>((current_ + 1) & (kBuckets - 1));
      const std::uint32_t found = occupied_buckets_.next(from);
      if (found < kBuckets) {
        advance_to(current_ + 1 + ((found - from) & (kBuckets - 1)));
        open_bucket(found);
        return;
      }
      // All buckets are empty: advance to the first nonempty slot or to the first far event.
      const std::int64_t here = current_ >> kSlotShift;
      const auto first = static_cast<std::uint32_t>((here + kSlotsAhead) & (kSlots - 1));
      const std::uint32_t slot = occupied_slots_.next(first);
      const std::int64_t next = slot < kSlots ? here + kSlotsAhead + ((slot - first) & (kSlots - 1))
                                              : far_.front().at >> (kBucketShift + kSlotShift);
      advance_to((next << kSlotShift) - 1, next);
    }
  }

  /// Returns the sort key of an event within its bucket: the low bits of its time, then its kind.
  static std::uint64_t sort_key(const Event& event) {
    return static_cast<std::uint64_t>(event.at) << (64 - kBucketShift) | event.kind();
  }

  /// Moves the events of a bucket to open_, in descending order. Up to kInsertionSortMax events are sorted by
  /// insertion; lists return the latest push first, so that many of them are in order already. More events are
  /// radix-sorted by kind, then by the low bits of the time.
  void open_bucket(std::uint32_t place) {
    const std::uint32_t first = buckets_[place];
    buckets_[place] = kNone;
    occupied_buckets_.clear(place);
    std::uint32_t last = first, node = first;
    Event* into = open_.data();
    for (Event* const end = into + kInsertionSortMax; node != kNone && into != end; ++into) {
      const Event event = nodes_[node].event;
      const std::uint64_t key = sort_key(event);
      Event* hole = into;
      for (; hole != open_.data() && sort_key(hole[-1]) < key; --hole) *hole = hole[-1];
      *hole = event;
      node = nodes_[last = node].next;
    }
    open_count_ = static_cast<std::uint32_t>(into - open_.data());
    if (node != kNone) [[unlikely]] {
      for (; node != kNone; node = nodes_[last = node].next) {
        if (open_count_ == open_.size()) open_.resize(2 * open_count_, Event{0, 0, 0});
        open_[open_count_++] = nodes_[node].event;
      }
      sort_open();
    }
    nodes_[last].next = free_;
    free_ = first;
  }
  [[gnu::noinline]] void sort_open() {
    counting_sort<16>({open_.data(), open_count_}, scratch_, [](const Event& event) { return event.kind(); });
    counting_sort<1u << kBucketShift>({scratch_.data(), open_count_}, open_, [](const Event& event) {
      return static_cast<std::uint64_t>(event.at) & ((1u << kBucketShift) - 1);
    });
  }

  /// Stable counting sort by one digit, descending.
  template <std::uint32_t Digits, class Digit>
  static void counting_sort(std::span<const Event> from, std::vector<Event>& to, Digit digit) {
    std::array<std::uint32_t, Digits> begin{};
    for (const Event& event : from) ++begin[digit(event)];
    std::uint32_t sum = 0;
    for (std::uint32_t i = Digits; i-- > 0;) sum += std::exchange(begin[i], sum);
    if (to.size() < from.size()) to.resize(from.size(), Event{0, 0, 0});
    for (const Event& event : from) to[begin[digit(event)]++] = event;
  }

  void advance_to(std::int64_t bucket) { advance_to(bucket, bucket >> kSlotShift); }

  /// Makes `bucket` the current bucket, in `slot`, and moves events of slots that are now near into buckets, and far
  /// events that are now within reach into slots.
  void advance_to(std::int64_t bucket, std::int64_t slot) {
    const std::int64_t old = current_ >> kSlotShift;
    current_ = bucket;
    if (slot == old) return;
    for (std::int64_t near = std::max(old + kSlotsAhead, slot); near < slot + kSlotsAhead; ++near) {
      const auto place = static_cast<std::uint32_t>(near & (kSlots - 1));
      if (slots_[place] == kNone) continue;
      scratch_.clear();
      drain(slots_, occupied_slots_, place, scratch_);
      for (const Event& event : scratch_)
        prepend(buckets_, occupied_buckets_, static_cast<std::uint32_t>((event.at >> kBucketShift) & (kBuckets - 1)),
                event);
    }
    while (!far_.empty() && far_.front().at >> (kBucketShift + kSlotShift) < (current_ >> kSlotShift) + kSlots) {
      std::pop_heap(far_.begin(), far_.end(), after);
      const Event event = far_.back();
      far_.pop_back();
      place(event);
    }
  }

  template <class Visit>
  void for_each_place(Visit visit) {
    for (std::uint32_t at = 0; (at = occupied_buckets_.next(at)) < kBuckets;) {
      visit(buckets_, occupied_buckets_, at);
      if (++at == kBuckets || occupied_buckets_.next(at) < at) break;
    }
    for (std::uint32_t at = 0; (at = occupied_slots_.next(at)) < kSlots;) {
      visit(slots_, occupied_slots_, at);
      if (++at == kSlots || occupied_slots_.next(at) < at) break;
    }
  }

  std::int64_t current_ = -1;  // the open bucket, whose events are in open_
  std::size_t size_ = 0;
  std::uint32_t open_count_ = 0;  // events in open_ that have not been taken
  std::vector<Event> open_;       // events of the current bucket, in descending order
  std::vector<Event> late_;       // heap of events pushed into the open bucket or an earlier one
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  std::vector<std::uint32_t> buckets_, slots_;  // first node of each list, or kNone
  OccupancyBitmap<kBuckets> occupied_buckets_;
  OccupancyBitmap<kSlots> occupied_slots_;
  std::vector<Event> far_;  // heap of events beyond the slots
  std::vector<Event> scratch_;
};

}  // namespace manyworlds::core::network

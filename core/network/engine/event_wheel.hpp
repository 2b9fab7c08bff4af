// The pending events of an engine as a calendar: 16,384 buckets of 128 ps for what is near, 2,048 slots of 262 ns for
// what is not, a heap for the rest. Events leave in the exact order of Event::before(), whatever bucket they lay in.
//
// What travels on one link, and the acks of one flow, come in order, so only the first of each stands here: a few
// events per busy link, not one per packet.
//
// A radix heap in its place took 1.9 times as long for a permutation of 1,024 hosts under DCQCN (1,540 instructions per
// link-hop in all, against 534) and 1.1 times for one of 128: what comes soon is moved down from bucket to bucket.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/network/engine/occupancy.hpp"

namespace manyworlds::core::network {

/// Events of one time and kind may come in any order: whoever makes them sees to it that they commute.
struct Event {
  static constexpr int kKindShift = 60;
  Event(Time when, std::uint64_t kind, std::uint64_t of) : at(when), what(kind << kKindShift | of) {}

  Time at;
  std::uint64_t what;  // its kind on top, then what it is about

  std::uint64_t kind() const { return what >> kKindShift; }
  std::uint64_t of() const { return what & ((1ull << kKindShift) - 1); }
  bool before(const Event& other) const { return at != other.at ? at < other.at : kind() < other.kind(); }
};

class EventWheel {
 public:
  EventWheel() : open_(kFew, Event{0, 0, 0}), buckets_(kBuckets, kNone), slots_(kSlots, kNone) {}

  bool empty() const { return size_ == 0; }
  void clear() {
    if (size_ > 0) {
      for_each_place([&](auto& lists, auto& taken, std::uint32_t place) {
        lists[place] = kNone;
        taken.clear(place);
      });
    }
    nodes_.clear();
    free_ = kNone;
    left_ = 0;
    late_.clear();
    far_.clear();
    current_ = -1;
    size_ = 0;
  }

  /// True if no event at `now` is left; `now` is that of the last event taken.
  bool nothing_at(Time now) const {
    return (left_ == 0 || open_[left_ - 1].at > now) && (late_.empty() || late_.front().at > now);
  }

  /// The first event; there must be one.
  const Event& top() {
    if (late_.empty()) {
      if (left_ == 0) advance();
      return open_[left_ - 1];
    }
    return late_first() ? late_.front() : open_[left_ - 1];
  }
  [[gnu::always_inline]] void pop() {
    --size_;
    if (late_.empty() || !late_first())
      --left_;
    else
      pop_late();
  }

  /// top() and pop() in one.
  Event take() {
    const Event event = top();
    pop();
    return event;
  }

  void push(const Event& event) {
    ++size_;
    const std::int64_t bucket = event.at >> kBucketShift;
    // Nearly all is near: ahead of the open bucket, and behind the first slot.
    if (static_cast<std::uint64_t>(bucket - current_ - 1) < kBuckets - (1u << kSlotShift) && free_ != kNone) [[likely]]
      chain(buckets_, taken_buckets_, static_cast<std::uint32_t>(bucket) & (kBuckets - 1), event);
    else
      place(event);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 0; i < left_; ++i) visit(open_[i]);
    for (const Event& event : late_) visit(event);
    for (const Event& event : far_) visit(event);
    const_cast<EventWheel*>(this)->for_each_place([&](auto& lists, auto&, std::uint32_t place) {
      for (std::uint32_t node = lists[place]; node != kNone; node = nodes_[node].next) visit(nodes_[node].event);
    });
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kBuckets = 16'384, kSlots = 2'048;
  static constexpr int kBucketShift = 7;  // of 128 ps
  static constexpr int kSlotShift = 11;   // buckets in a slot
  static constexpr std::size_t kFew = 16;
  static constexpr std::int64_t kSlotsAhead = kBuckets >> kSlotShift;  // that buckets cover

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
      chain(buckets_, taken_buckets_, static_cast<std::uint32_t>(bucket) & (kBuckets - 1), event);
    else if (slot < (current_ >> kSlotShift) + kSlots)
      chain(slots_, taken_slots_, static_cast<std::uint32_t>(slot & (kSlots - 1)), event);
    else
      far_.push_back(event), std::push_heap(far_.begin(), far_.end(), after);
  }

  template <class Taken>
  [[gnu::always_inline]] void chain(std::vector<std::uint32_t>& lists, Taken& taken, std::uint32_t place,
                                    const Event& event) {
    const std::uint32_t node = free_, before = lists[place];
    Node& made = nodes_[node];
    free_ = made.next;
    made.event = event;
    made.next = before;
    lists[place] = node;
    if (before == kNone) taken.set(place);
  }
  void add_nodes() {
    const auto first = static_cast<std::uint32_t>(nodes_.size()), last = first == 0 ? 64 : 2 * first;
    for (std::uint32_t node = first; node < last; ++node) nodes_.push_back({{0, 0, 0}, node + 1});
    nodes_.back().next = kNone;
    free_ = first;
  }

  /// Moves the events of a place to the end of `to`.
  template <class Taken>
  void unchain(std::vector<std::uint32_t>& lists, Taken& taken, std::uint32_t place, std::vector<Event>& to) {
    const std::uint32_t first = lists[place];
    lists[place] = kNone;
    taken.clear(place);
    std::uint32_t last = first;
    for (std::uint32_t node = first; node != kNone; node = nodes_[node].next) to.push_back(nodes_[last = node].event);
    nodes_[last].next = free_;
    free_ = first;
  }

  [[gnu::noinline]] void pop_late() {
    std::pop_heap(late_.begin(), late_.end(), after);
    late_.pop_back();
  }
  bool late_first() const { return left_ == 0 || late_.front().before(open_[left_ - 1]); }

  /// Opens the next bucket that has events.
  [[gnu::noinline]] void advance() {
    while (true) {
      const auto from = static_cast<std::uint32_t>((current_ + 1) & (kBuckets - 1));
      const std::uint32_t found = taken_buckets_.next(from);
      if (found < kBuckets) {
        move_to(current_ + 1 + ((found - from) & (kBuckets - 1)));
        open_bucket(found);
        return;
      }
      // Nothing near: on to the slot or the far event that comes first.
      const std::int64_t here = current_ >> kSlotShift;
      const auto first = static_cast<std::uint32_t>((here + kSlotsAhead) & (kSlots - 1));
      const std::uint32_t slot = taken_slots_.next(first);
      const std::int64_t next = slot < kSlots ? here + kSlotsAhead + ((slot - first) & (kSlots - 1))
                                              : far_.front().at >> (kBucketShift + kSlotShift);
      move_to((next << kSlotShift) - 1, next);
    }
  }

  /// All that tells events of one bucket apart.
  static std::uint64_t rank_of(const Event& event) {
    return static_cast<std::uint64_t>(event.at) << (64 - kBucketShift) | event.kind();
  }

  /// A bucket's events, the last first. Few are put in order as they come; chains hand back last what came first, so
  /// that many are in order at once. Many: by kind, then by the last bits of the time.
  void open_bucket(std::uint32_t place) {
    const std::uint32_t first = buckets_[place];
    buckets_[place] = kNone;
    taken_buckets_.clear(place);
    std::uint32_t last = first, node = first;
    Event* into = open_.data();
    for (Event* const end = into + kFew; node != kNone && into != end; ++into) {
      const Event event = nodes_[node].event;
      const std::uint64_t rank = rank_of(event);
      Event* hole = into;
      for (; hole != open_.data() && rank_of(hole[-1]) < rank; --hole) *hole = hole[-1];
      *hole = event;
      node = nodes_[last = node].next;
    }
    left_ = static_cast<std::uint32_t>(into - open_.data());
    if (node != kNone) [[unlikely]] {
      for (; node != kNone; node = nodes_[last = node].next) {
        if (left_ == open_.size()) open_.resize(2 * left_, Event{0, 0, 0});
        open_[left_++] = nodes_[node].event;
      }
      sort_open();
    }
    nodes_[last].next = free_;
    free_ = first;
  }
  [[gnu::noinline]] void sort_open() {
    distribute<16>({open_.data(), left_}, moved_, [](const Event& event) { return event.kind(); });
    distribute<1u << kBucketShift>({moved_.data(), left_}, open_, [](const Event& event) {
      return static_cast<std::uint64_t>(event.at) & ((1u << kBucketShift) - 1);
    });
  }

  /// Stable, the largest digit first.
  template <std::uint32_t Digits, class Digit>
  static void distribute(std::span<const Event> from, std::vector<Event>& to, Digit digit) {
    std::array<std::uint32_t, Digits> begin{};
    for (const Event& event : from) ++begin[digit(event)];
    std::uint32_t sum = 0;
    for (std::uint32_t i = Digits; i-- > 0;) sum += std::exchange(begin[i], sum);
    if (to.size() < from.size()) to.resize(from.size(), Event{0, 0, 0});
    for (const Event& event : from) to[begin[digit(event)]++] = event;
  }

  void move_to(std::int64_t bucket) { move_to(bucket, bucket >> kSlotShift); }

  /// Makes `bucket` the current one; what lies in slots that come near with `slot` goes into buckets.
  void move_to(std::int64_t bucket, std::int64_t slot) {
    const std::int64_t old = current_ >> kSlotShift;
    current_ = bucket;
    if (slot == old) return;
    for (std::int64_t near = std::max(old + kSlotsAhead, slot); near < slot + kSlotsAhead; ++near) {
      const auto place = static_cast<std::uint32_t>(near & (kSlots - 1));
      if (slots_[place] == kNone) continue;
      moved_.clear();
      unchain(slots_, taken_slots_, place, moved_);
      for (const Event& event : moved_)
        chain(buckets_, taken_buckets_, static_cast<std::uint32_t>((event.at >> kBucketShift) & (kBuckets - 1)), event);
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
    for (std::uint32_t at = 0; (at = taken_buckets_.next(at)) < kBuckets;) {
      visit(buckets_, taken_buckets_, at);
      if (++at == kBuckets || taken_buckets_.next(at) < at) break;
    }
    for (std::uint32_t at = 0; (at = taken_slots_.next(at)) < kSlots;) {
      visit(slots_, taken_slots_, at);
      if (++at == kSlots || taken_slots_.next(at) < at) break;
    }
  }

  std::int64_t current_ = -1;  // bucket whose events are open
  std::size_t size_ = 0;
  std::uint32_t left_ = 0;   // of the open ones
  std::vector<Event> open_;  // of the current bucket, descending
  std::vector<Event> late_;  // placed when their bucket was open already or had been passed over: a heap
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  std::vector<std::uint32_t> buckets_, slots_;  // first node of each
  Occupancy<kBuckets> taken_buckets_;
  Occupancy<kSlots> taken_slots_;
  std::vector<Event> far_;  // a heap
  std::vector<Event> moved_;
};

}  // namespace manyworlds::core::network

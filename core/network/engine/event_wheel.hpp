// The event queue of the event-driven engine, a calendar queue (calendar_levels.hpp). Events leave in the exact order
// of Event::before(), whichever bucket they were in.
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
#include "core/network/engine/calendar_levels.hpp"

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
  EventWheel() : open_(kInsertionSortMax, Event{0, 0, 0}) {}

  bool empty() const { return size_ == 0; }
  void clear() {
    if (size_ > 0) levels_.clear();
    levels_.restart();
    nodes_.clear();
    open_count_ = 0;
    late_.clear();
    size_ = 0;
  }

  /// Returns whether no further event is due at `now`, which must be the time of the last event taken.
  bool nothing_at(Time now) const {
    return (open_count_ == 0 || open_[open_count_ - 1].at > now) && (late_.empty() || late_.front().at > now);
  }

  /// Returns the first event. The queue must not be empty.
  const Event& top() {
    if (late_.empty()) {
      if (open_count_ == 0) open_bucket(levels_.open_next(nodes_, INT64_MAX));
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
    const std::int64_t bucket = event.at >> CalendarLevels::kBucketShift;
    if (levels_.is_near(bucket) && nodes_.free != kNone) [[likely]]
      levels_.push_near(nodes_, nodes_.take(event), bucket);
    else
      push_elsewhere(event, bucket);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 0; i < open_count_; ++i) visit(open_[i]);
    for (const Event& event : late_) visit(event);
    levels_.for_each(nodes_, [&](std::uint32_t index) { visit(nodes_.all[index].event); });
  }

 private:
  static constexpr std::uint32_t kNone = CalendarLevels::kNone;
  static constexpr std::size_t kInsertionSortMax = 16;
  static constexpr int kBucketShift = CalendarLevels::kBucketShift;

  /// The events of the levels.
  struct Nodes {
    struct Node {
      Event event;
      std::uint32_t next;
    };
    std::vector<Node> all;
    std::uint32_t free = kNone;

    std::uint32_t& next(std::uint32_t index) { return all[index].next; }
    std::uint32_t next(std::uint32_t index) const { return all[index].next; }
    std::int64_t bucket(std::uint32_t index) const { return all[index].event.at >> kBucketShift; }
    void clear() {
      all.clear();
      free = kNone;
    }
    /// Returns a free node, of which there must be one, with this event.
    [[gnu::always_inline]] std::uint32_t take(const Event& event) {
      const std::uint32_t node = free;
      free = all[node].next;
      all[node].event = event;
      return node;
    }
    [[gnu::noinline]] void grow() {
      const auto first = static_cast<std::uint32_t>(all.size()), last = first == 0 ? 64 : 2 * first;
      for (std::uint32_t node = first; node < last; ++node) all.push_back({{0, 0, 0}, node + 1});
      all.back().next = kNone;
      free = first;
    }
  };

  static bool after(const Event& a, const Event& b) { return b.before(a); }

  [[gnu::noinline]] void push_elsewhere(const Event event, std::int64_t bucket) {
    if (bucket <= levels_.current()) {
      late_.push_back(event), std::push_heap(late_.begin(), late_.end(), after);
      return;
    }
    if (nodes_.free == kNone) nodes_.grow();
    levels_.push(nodes_, nodes_.take(event), bucket);
  }

  [[gnu::noinline]] void pop_late() {
    std::pop_heap(late_.begin(), late_.end(), after);
    late_.pop_back();
  }
  bool late_is_first() const { return open_count_ == 0 || late_.front().before(open_[open_count_ - 1]); }

  /// Returns the sort key of an event within its bucket: the low bits of its time, then its kind.
  static std::uint64_t sort_key(const Event& event) {
    return static_cast<std::uint64_t>(event.at) << (64 - kBucketShift) | event.kind();
  }

  /// Moves the events of a bucket to open_, in descending order. Up to kInsertionSortMax events are sorted by
  /// insertion; lists return the latest push first, so that many of them are in order already. More events are
  /// radix-sorted by kind, then by the low bits of the time.
  [[gnu::noinline]] void open_bucket(const std::uint32_t first) {
    std::uint32_t last = first, node = first;
    Event* into = open_.data();
    for (Event* const end = into + kInsertionSortMax; node != kNone && into != end; ++into) {
      const Event event = nodes_.all[node].event;
      const std::uint64_t key = sort_key(event);
      Event* hole = into;
      for (; hole != open_.data() && sort_key(hole[-1]) < key; --hole) *hole = hole[-1];
      *hole = event;
      node = nodes_.all[last = node].next;
    }
    open_count_ = static_cast<std::uint32_t>(into - open_.data());
    if (node != kNone) [[unlikely]] {
      for (; node != kNone; node = nodes_.all[last = node].next) {
        if (open_count_ == open_.size()) open_.resize(2 * open_count_, Event{0, 0, 0});
        open_[open_count_++] = nodes_.all[node].event;
      }
      sort_open();
    }
    nodes_.all[last].next = nodes_.free;
    nodes_.free = first;
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

  std::size_t size_ = 0;
  std::uint32_t open_count_ = 0;  // events in open_ that have not been taken
  std::vector<Event> open_;       // events of the open bucket, in descending order
  std::vector<Event> late_;       // heap of events pushed into the open bucket or an earlier one
  std::vector<Event> scratch_;    // of the sort
  CalendarLevels levels_;
  Nodes nodes_;
};

}  // namespace manyworlds::core::network

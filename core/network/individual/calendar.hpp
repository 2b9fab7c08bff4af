// The pending events of the second engine as a calendar: 16,384 buckets of 128 ps for what is near, 2,048 slots of
// 262 ns for what is not, a heap for the rest. Every packet under way stands here, and events leave in one total order
// (time, kind and order of the flow, packet), whatever bucket they lay in: ties between packets are part of the answer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace manyworlds::core::network::individual {

struct Event {
  Time at = 0;
  std::uint64_t order = 0;  // kind in the top byte, then the order of the flow or the slot of the link
  std::uint64_t what = 0;   // a packet (its number, then its place), a flow, or a link

  bool before(const Event& other) const {
    if (at != other.at) return at < other.at;
    if (order != other.order) return order < other.order;
    return what < other.what;
  }
};

/// Which of N places are taken, with a quick way to the next one.
template <std::uint32_t N>
class Occupancy {
 public:
  void set(std::uint32_t place) {
    words_[place / 64] |= 1ull << place % 64;
    summary_[place / 4096] |= 1ull << place / 64 % 64;
  }
  void clear(std::uint32_t place) {
    if ((words_[place / 64] &= ~(1ull << place % 64)) == 0) summary_[place / 4096] &= ~(1ull << place / 64 % 64);
  }
  /// The first taken place at or after `from`, going round; N if none is taken.
  std::uint32_t next(std::uint32_t from) const {
    const std::uint32_t found = first(from);
    return found < N || from == 0 ? found : first(0);
  }

 private:
  std::uint32_t first(std::uint32_t from) const {
    if (from >= N) return N;
    if (const std::uint64_t here = words_[from / 64] >> from % 64; here != 0)
      return from + static_cast<std::uint32_t>(std::countr_zero(here));
    std::uint32_t word = from / 64 + 1;
    while (word < N / 64) {
      if (const std::uint64_t some = summary_[word / 64] >> word % 64; some != 0) {
        word += static_cast<std::uint32_t>(std::countr_zero(some));
        return word * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[word]));
      }
      word = (word / 64 + 1) * 64;
    }
    return N;
  }
  std::array<std::uint64_t, N / 64> words_{};
  std::array<std::uint64_t, (N / 64 + 63) / 64> summary_{};
};

class Calendar {
 public:
  Calendar() : buckets_(kBuckets, kNone), slots_(kSlots, kNone) {}

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
    open_.clear();
    far_.clear();
    current_ = -1;
    size_ = 0;
  }

  /// True if no event at `now` is left; `now` is that of the last event taken.
  bool nothing_at(Time now) const { return open_.empty() || open_.back().at > now; }

  /// The first event; there must be one.
  const Event& top() {
    if (open_.empty()) advance();
    return open_.back();
  }
  void pop() {
    open_.pop_back();
    --size_;
  }

  void push(const Event& event) {
    ++size_;
    // Nearly all is near: ahead of the open bucket, and behind the first slot.
    const std::int64_t bucket = event.at >> kBucketShift;
    if (static_cast<std::uint64_t>(bucket - current_ - 1) < kBuckets - (1u << kSlotShift)) [[likely]]
      chain(buckets_.data(), taken_buckets_, static_cast<std::uint32_t>(bucket & (kBuckets - 1)), event);
    else
      place(event);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Event& event : open_) visit(event);
    for (const Event& event : far_) visit(event);
    const_cast<Calendar*>(this)->for_each_place([&](auto& lists, auto&, std::uint32_t place) {
      for (std::uint32_t node = lists[place]; node != kNone; node = nodes_[node].next) visit(nodes_[node].event);
    });
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kBuckets = 16'384, kSlots = 2'048;
  static constexpr int kBucketShift = 7;                               // of 128 ps
  static constexpr int kSlotShift = 11;                                // buckets in a slot
  static constexpr std::size_t kMostOpen = 256;                        // before a bucket far ahead is closed again
  static constexpr std::int64_t kSlotsAhead = kBuckets >> kSlotShift;  // that buckets cover

  struct Node {
    Event event;
    std::uint32_t next;
  };

  static bool after(const Event& a, const Event& b) { return b.before(a); }

  void place(const Event& event) {
    const std::int64_t bucket = event.at >> kBucketShift;
    if (bucket <= current_) {
      if (bucket < current_ && open_.size() > kMostOpen) go_back(bucket);
      if (bucket <= current_) return insert_open(event);
    }
    const std::int64_t slot = bucket >> kSlotShift, here = current_ >> kSlotShift;
    if (slot < here + kSlotsAhead)
      chain(buckets_.data(), taken_buckets_, static_cast<std::uint32_t>(bucket & (kBuckets - 1)), event);
    else if (slot < here + kSlots)
      chain(slots_.data(), taken_slots_, static_cast<std::uint32_t>(slot & (kSlots - 1)), event);
    else
      far_.push_back(event), std::push_heap(far_.begin(), far_.end(), after);
  }

  template <class Taken>
  void chain(std::uint32_t* lists, Taken& taken, std::uint32_t place, const Event& event) {
    const std::uint32_t node = free_;
    if (node == kNone) [[unlikely]]
      return grow(), chain(lists, taken, place, event);
    Node& into = nodes_[node];
    free_ = into.next;
    into.event = event;
    into.next = lists[place];
    if (into.next == kNone) taken.set(place);
    lists[place] = node;
  }

  [[gnu::noinline]] void grow() {
    const std::size_t size = nodes_.size();
    nodes_.resize(std::max<std::size_t>(64, 2 * size));
    for (std::size_t node = nodes_.size(); node-- > size;) {
      nodes_[node].next = free_;
      free_ = static_cast<std::uint32_t>(node);
    }
  }

  template <class Taken, class Visit>
  void unchain(std::vector<std::uint32_t>& lists, Taken& taken, std::uint32_t place, Visit visit) {
    std::uint32_t node = lists[place];
    lists[place] = kNone;
    taken.clear(place);
    while (node != kNone) {
      const std::uint32_t next = nodes_[node].next;
      const Event event = nodes_[node].event;
      nodes_[node].next = free_;
      free_ = node;
      visit(event);
      node = next;
    }
  }

  void insert_open(const Event& event) {
    std::size_t hole = open_.size();
    open_.push_back(event);
    for (; hole > 0 && open_[hole - 1].before(event); --hole) open_[hole] = open_[hole - 1];
    open_[hole] = event;
  }

  /// Somebody looked far ahead, and now much comes before it: everything is placed again from `bucket` on.
  void go_back(std::int64_t bucket) {
    std::vector<Event> all;
    all.reserve(size_);
    for_each([&](const Event& event) { all.push_back(event); });
    const std::size_t size = size_;
    clear();
    size_ = size;
    for (const Event& event : all) bucket = std::min(bucket, event.at >> kBucketShift);
    current_ = bucket - 1;
    for (const Event& event : all) place(event);
  }

  /// Opens the next bucket that has events.
  void advance() {
    while (true) {
      const auto from = static_cast<std::uint32_t>((current_ + 1) & (kBuckets - 1));
      const std::uint32_t found = taken_buckets_.next(from);
      if (found < kBuckets) {
        move_to(current_ + 1 + ((found - from) & (kBuckets - 1)));
        return open_bucket(found);
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

  /// Chains hand back last what came first, so that many buckets are in descending order at once.
  void open_bucket(std::uint32_t place) {
    std::uint32_t node = buckets_[place];
    buckets_[place] = kNone;
    taken_buckets_.clear(place);
    bool sorted = true;
    while (true) {
      Node& from = nodes_[node];
      if (!open_.empty() && open_.back().before(from.event)) sorted = false;
      open_.push_back(from.event);
      const std::uint32_t next = from.next;
      from.next = free_;
      free_ = node;
      if (next == kNone) break;
      node = next;
    }
    if (!sorted) sort_open();
  }

  void sort_open() {
    if (open_.size() > 12) return std::sort(open_.begin(), open_.end(), after);
    for (std::size_t i = 1; i < open_.size(); ++i) {
      const Event event = open_[i];
      std::size_t hole = i;
      for (; hole > 0 && open_[hole - 1].before(event); --hole) open_[hole] = open_[hole - 1];
      open_[hole] = event;
    }
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
      unchain(slots_, taken_slots_, place, [&](const Event& event) { moved_.push_back(event); });
      for (const Event& event : moved_)
        chain(buckets_.data(), taken_buckets_, static_cast<std::uint32_t>((event.at >> kBucketShift) & (kBuckets - 1)),
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
  std::vector<Event> open_;  // descending
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  std::vector<std::uint32_t> buckets_, slots_;  // first node of each
  Occupancy<kBuckets> taken_buckets_;
  Occupancy<kSlots> taken_slots_;
  std::vector<Event> far_;  // a heap
  std::vector<Event> moved_;
};

}  // namespace manyworlds::core::network::individual

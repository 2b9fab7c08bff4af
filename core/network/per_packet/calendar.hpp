// The pending events of the second engine as a calendar: 16,384 buckets of 128 ps for what is near, 2,048 slots of
// 262 ns for what is not, a heap for the rest. Every packet under way stands here, and events leave in one total order
// (time, kind and order of the flow, packet), whatever bucket they lay in: ties between packets are part of the answer.
//
// An event is a record of the slab, linked into its bucket. One word of it is all of the order that usually matters:
// the time within the bucket, then kind and order. Fabrics whose links are all alike keep step, so that thousands of
// events may share an instant: those are sorted by radix, over the digits in which they differ.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/network/engine/occupancy.hpp"
#include "core/network/per_packet/packet.hpp"

namespace manyworlds::core::network::individual {

struct Event {
  Time at = 0;
  std::uint64_t key = 0;   // time within its bucket, then order
  std::uint64_t what = 0;  // number of the record, then its place in the slab
};

class Calendar {
 public:
  static constexpr int kOrderBits = 57;

  Calendar() : open_(kSmall), buckets_(kBuckets, kNone), slots_(kSlots, kNone) {}

  bool empty() const { return size_ == 0; }
  void clear() {
    if (size_ > 0) {
      std::fill(buckets_.begin(), buckets_.end(), kNone);
      std::fill(slots_.begin(), slots_.end(), kNone);
      taken_buckets_ = {};
      taken_slots_ = {};
    }
    left_ = 0;
    size_ = 0;
    late_.clear();
    far_.clear();
  }

  /// From now on take() gives what is before (`until`, `order`).
  void give_before(Time until, std::uint64_t order) {
    until_ = until;
    until_order_ = order;
    limit_open();
  }
  /// Takes the first event, if it is to be given. Nothing may be pushed before the last event taken nor, after this was
  /// refused, before the limit.
  bool take(PacketSlab& slab, Event& taken) {
    if (!late_.empty()) [[unlikely]]
      return take_late(taken);
    if (left_ == 0 && !advance(slab)) return false;
    const Due& due = open_[left_ - 1];
    if (due.key >= limit_key_) return false;
    taken = event_of(due);
    --left_;
    --size_;
    return true;
  }

  void push(PacketSlab& slab, std::uint32_t index, Time at, std::uint64_t order) {
    ++size_;
    const std::int64_t bucket = at >> kBucketShift;
    Packet& record = slab[index];
    record.key = static_cast<std::uint64_t>(at) << kOrderBits | order;
    // Nearly all is near: ahead of the open bucket, and behind the first slot.
    if (static_cast<std::uint64_t>(bucket - current_ - 1) < kBuckets - (1u << kSlotShift)) [[likely]]
      chain(buckets_.data(), taken_buckets_, static_cast<std::uint32_t>(bucket) & (kBuckets - 1), record, index);
    else
      place(record, index, at);
  }

 private:
  static constexpr std::uint32_t kBuckets = 16'384, kSlots = 2'048;
  static constexpr int kBucketShift = 64 - kOrderBits;                 // of 128 ps
  static constexpr int kSlotShift = 11;                                // buckets in a slot
  static constexpr std::int64_t kSlotsAhead = kBuckets >> kSlotShift;  // that buckets cover
  static constexpr std::uint32_t kSmall = 12, kMany = 192;  // events that are sorted in the simplest way; by radix

  struct Due {
    std::uint64_t key;  // time within its bucket, then order
    std::uint64_t what;
    bool before(const Due& other) const { return key != other.key ? key < other.key : what < other.what; }
  };
  struct Far {
    Time at;
    std::uint32_t index;
  };

  static bool after(const Due& a, const Due& b) { return b.before(a); }
  static bool later(const Far& a, const Far& b) { return a.at != b.at ? a.at > b.at : a.index > b.index; }
  static Due due_of(const Packet& record, std::uint32_t index) {
    return {record.key, static_cast<std::uint64_t>(record.number) << 32 | index};
  }
  Event event_of(const Due& due) const {
    return {opened_at_ + static_cast<Time>(due.key >> kOrderBits), due.key, due.what};
  }
  /// What of the open bucket may be taken.
  void limit_open() {
    const std::int64_t bucket = until_ >> kBucketShift;
    limit_key_ = bucket > current_    ? UINT64_MAX
                 : bucket == current_ ? static_cast<std::uint64_t>(until_) << kOrderBits | until_order_
                                      : 0;
  }

  /// Something was pushed into the bucket that was open already.
  [[gnu::noinline]] bool take_late(Event& taken) {
    const bool late = left_ == 0 || late_.front().before(open_[left_ - 1]);
    const Due due = late ? late_.front() : open_[left_ - 1];
    if (due.key >= limit_key_) return false;
    taken = event_of(due);
    --size_;
    if (late) {
      std::pop_heap(late_.begin(), late_.end(), after);
      late_.pop_back();
    } else {
      --left_;
    }
    return true;
  }

  [[gnu::noinline]] void place(Packet& record, std::uint32_t index, Time at) {
    const std::int64_t bucket = at >> kBucketShift;
    if (bucket == current_) {
      late_.push_back(due_of(record, index)), std::push_heap(late_.begin(), late_.end(), after);
      return;
    }
    record.bucket = static_cast<std::uint32_t>(bucket) & (kBuckets - 1);
    const std::int64_t slot = bucket >> kSlotShift, here = current_ >> kSlotShift;
    if (slot < here + kSlotsAhead)
      chain(buckets_.data(), taken_buckets_, record.bucket, record, index);
    else if (slot < here + kSlots)
      chain(slots_.data(), taken_slots_, static_cast<std::uint32_t>(slot) & (kSlots - 1), record, index);
    else
      far_.push_back({at, index}), std::push_heap(far_.begin(), far_.end(), later);
  }

  template <class Taken>
  static void chain(std::uint32_t* lists, Taken& taken, std::uint32_t place, Packet& record, std::uint32_t index) {
    if ((record.next = lists[place]) == kNone) taken.set(place);
    lists[place] = index;
  }

  /// Opens the next bucket that has events, unless it is after the limit.
  bool advance(PacketSlab& slab) {
    while (size_ > 0) {
      const auto from = static_cast<std::uint32_t>((current_ + 1) & (kBuckets - 1));
      const std::uint32_t found = taken_buckets_.next(from);
      if (found < kBuckets) {
        const std::int64_t bucket = current_ + 1 + ((found - from) & (kBuckets - 1));
        if (bucket << kBucketShift > until_) return false;
        if (bucket >> kSlotShift != current_ >> kSlotShift) come_near(slab, bucket >> kSlotShift);
        current_ = bucket;
        opened_at_ = bucket << kBucketShift;
        limit_open();
        open_bucket(slab, found);
        return true;
      }
      // Nothing near: on to the slot or the far event that comes first.
      const std::int64_t here = current_ >> kSlotShift;
      const auto first = static_cast<std::uint32_t>((here + kSlotsAhead) & (kSlots - 1));
      const std::uint32_t slot = taken_slots_.next(first);
      const std::int64_t next = slot < kSlots ? here + kSlotsAhead + ((slot - first) & (kSlots - 1))
                                              : far_.front().at >> (kBucketShift + kSlotShift);
      if (next << (kSlotShift + kBucketShift) > until_) return false;
      come_near(slab, next);
      current_ = (next << kSlotShift) - 1;
    }
    return false;
  }

  /// Chains hand back last what came first, so that many buckets are in descending order at once.
  void open_bucket(const PacketSlab& slab, std::uint32_t place) {
    const Packet* const records = &slab[0];
    std::uint32_t index = std::exchange(buckets_[place], kNone);
    taken_buckets_.clear(place);
    Due* into = open_.data();
    Due* const end = into + kSmall;
    for (; index != kNone && into != end; ++into) {
      const Due due = due_of(records[index], index);
      index = records[index].next;
      Due* hole = into;
      for (; hole != open_.data() && hole[-1].before(due); --hole) *hole = hole[-1];
      *hole = due;
    }
    left_ = static_cast<std::uint32_t>(into - open_.data());
    if (index != kNone) [[unlikely]]
      open_rest(slab, index);
  }
  /// Of a bucket with many events.
  [[gnu::noinline]] void open_rest(const PacketSlab& slab, std::uint32_t index) {
    for (; index != kNone; index = slab[index].next) {
      if (left_ == open_.size()) open_.resize(2 * open_.size());
      open_[left_++] = due_of(slab[index], index);
    }
    if (!std::is_sorted(open_.begin(), open_.begin() + left_, after)) sort_open();
  }

  void sort_open() {
    if (left_ <= kMany) return std::sort(open_.begin(), open_.begin() + left_, after);
    sort_by_digits();
    Due* const open = open_.data();  // only equal keys are out of order
    for (std::uint32_t i = 1; i < left_; ++i) {
      if (!open[i - 1].before(open[i])) continue;
      const Due due = open[i];
      std::uint32_t hole = i;
      for (; hole > 0 && open[hole - 1].before(due); --hole) open[hole] = open[hole - 1];
      open[hole] = due;
    }
  }

  /// Descending by key.
  void sort_by_digits() {
    std::uint64_t differ = 0;
    for (std::uint32_t i = 1; i < left_; ++i) differ |= open_[i].key ^ open_[0].key;
    other_.resize(open_.size());
    while (differ != 0) {
      const int shift = std::countr_zero(differ);
      differ = shift < 56 ? differ >> (shift + 8) << (shift + 8) : 0;
      std::array<std::uint32_t, 256> begin{};
      for (std::uint32_t i = 0; i < left_; ++i) ++begin[~(open_[i].key >> shift) & 255];
      std::uint32_t sum = 0;
      for (std::uint32_t& count : begin) sum += std::exchange(count, sum);
      for (std::uint32_t i = 0; i < left_; ++i) other_[begin[~(open_[i].key >> shift) & 255]++] = open_[i];
      open_.swap(other_);
    }
  }

  /// What lies in slots that come near with `slot` goes into buckets.
  void come_near(PacketSlab& slab, std::int64_t slot) {
    for (std::int64_t near = std::max((current_ >> kSlotShift) + kSlotsAhead, slot); near < slot + kSlotsAhead;
         ++near) {
      const auto place = static_cast<std::uint32_t>(near) & (kSlots - 1);
      if (slots_[place] == kNone) continue;
      taken_slots_.clear(place);
      for (std::uint32_t index = std::exchange(slots_[place], kNone); index != kNone;) {
        Packet& record = slab[index];
        const std::uint32_t next = record.next;
        chain(buckets_.data(), taken_buckets_, record.bucket, record, index);
        index = next;
      }
    }
    current_ = (slot << kSlotShift) - 1;  // still in the slot before, from where place() counts
    while (!far_.empty() && far_.front().at >> (kBucketShift + kSlotShift) < slot - 1 + kSlots) {
      const Far first = far_.front();
      std::pop_heap(far_.begin(), far_.end(), later);
      far_.pop_back();
      place(slab[first.index], first.index, first.at);
    }
  }

  std::int64_t current_ = -1;  // bucket whose events are open
  Time opened_at_ = 0;         // its first instant
  std::size_t size_ = 0;
  Time until_ = 0;
  std::uint64_t until_order_ = 0, limit_key_ = 0;
  std::uint32_t left_ = 0;  // of the open ones
  std::vector<Due> open_;   // descending
  std::vector<Due> late_;   // a heap
  std::vector<Due> other_;
  std::vector<std::uint32_t> buckets_, slots_;  // first record of each
  Occupancy<kBuckets> taken_buckets_;
  Occupancy<kSlots> taken_slots_;
  std::vector<Far> far_;  // a heap
};

}  // namespace manyworlds::core::network::individual

// The event queue of the per-packet engine, a calendar queue (calendar_levels.hpp). Every packet in flight has an event
// here. Events leave in one total order (time, event kind, tie order of the flow, packet number), whichever bucket they
// were in, because the order of simultaneous packets determines the result.
//
// An event is a packet record of the slab, linked into its bucket. One word of it holds nearly all of the order: the
// time within the bucket, then kind and tie order. On fabrics with equal links packets move in lockstep, so that
// thousands of events may share an instant; such buckets are radix-sorted over the digits in which their keys differ.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/network/engine/calendar_levels.hpp"
#include "core/network/per_packet/packet.hpp"

namespace manyworlds::core::network::per_packet {

struct Event {
  Time at = 0;
  std::uint64_t key = 0;               // time within its bucket (high bits), then kind and tie order
  std::uint64_t number_and_index = 0;  // packet number or subject (high 32 bits), then the index in the slab
};

class Calendar {
 public:
  static constexpr int kOrderBits = 64 - CalendarLevels::kBucketShift;

  Calendar() : open_(kInsertionSortMax) {}

  bool empty() const { return size_ == 0; }
  void clear() {
    if (size_ > 0) levels_.clear();
    open_count_ = 0;
    size_ = 0;
    late_.clear();
  }

  /// Sets the limit: pop() returns only events before (`until`, `order`).
  void set_limit(Time until, std::uint64_t order) {
    until_ = until;
    until_order_ = order;
    update_limit_key();
  }
  /// Removes the first event into `taken` and returns true, or returns false if there is none before the limit. No
  /// event may be pushed before the last event taken or, after a call that returned false, before the limit.
  bool pop(PacketSlab& slab, Event& taken) {
    if (!late_.empty()) [[unlikely]]
      return pop_late(taken);
    if (open_count_ == 0 && !advance(slab)) return false;
    const Entry& entry = open_[open_count_ - 1];
    if (entry.key >= limit_key_) return false;
    taken = event_of(entry);
    --open_count_;
    --size_;
    return true;
  }

  void push(PacketSlab& slab, std::uint32_t index, Time at, std::uint64_t order) {
    ++size_;
    const std::int64_t bucket = at >> kBucketShift;
    Packet& record = slab[index];
    record.key = static_cast<std::uint64_t>(at) << kOrderBits | order;
    if (levels_.is_near(bucket)) [[likely]]
      levels_.push_near(Nodes{slab}, index, bucket);
    else
      push_elsewhere(slab, index, bucket);
  }

 private:
  static constexpr int kBucketShift = CalendarLevels::kBucketShift;
  // Bucket sizes up to which insertion sort and std::sort are used; larger ones are radix-sorted.
  static constexpr std::uint32_t kInsertionSortMax = 12, kStdSortMax = 192;

  struct Entry {
    std::uint64_t key;               // as Event::key
    std::uint64_t number_and_index;  // packet number or subject, then the index in the slab
    bool before(const Entry& other) const {
      return key != other.key ? key < other.key : number_and_index < other.number_and_index;
    }
  };
  /// The packets of the levels.
  struct Nodes {
    PacketSlab& slab;
    std::uint32_t& next(std::uint32_t index) { return slab[index].next; }
    std::uint32_t bucket(std::uint32_t index) const { return slab[index].bucket; }
  };

  static bool after(const Entry& a, const Entry& b) { return b.before(a); }
  static Entry entry_of(const Packet& record, std::uint32_t index) {
    return {record.key, static_cast<std::uint64_t>(record.number) << 32 | index};
  }
  Event event_of(const Entry& entry) const {
    return {open_begin_ + static_cast<Time>(entry.key >> kOrderBits), entry.key, entry.number_and_index};
  }
  /// Updates limit_key_: entries of the open bucket below it may be taken.
  void update_limit_key() {
    const std::int64_t bucket = until_ >> kBucketShift;
    limit_key_ = bucket > levels_.current()    ? UINT64_MAX
                 : bucket == levels_.current() ? static_cast<std::uint64_t>(until_) << kOrderBits | until_order_
                                               : 0;
  }

  /// pop() when events were pushed into the bucket that was already open.
  [[gnu::noinline]] bool pop_late(Event& taken) {
    const bool late = open_count_ == 0 || late_.front().before(open_[open_count_ - 1]);
    const Entry entry = late ? late_.front() : open_[open_count_ - 1];
    if (entry.key >= limit_key_) return false;
    taken = event_of(entry);
    --size_;
    if (late) {
      std::pop_heap(late_.begin(), late_.end(), after);
      late_.pop_back();
    } else {
      --open_count_;
    }
    return true;
  }

  /// push() into the open bucket, or far ahead.
  [[gnu::noinline]] void push_elsewhere(PacketSlab& slab, std::uint32_t index, std::int64_t bucket) {
    if (bucket == levels_.current()) {
      late_.push_back(entry_of(slab[index], index)), std::push_heap(late_.begin(), late_.end(), after);
      return;
    }
    slab[index].bucket = static_cast<std::uint32_t>(bucket) & ((1u << CalendarLevels::kBucketBits) - 1);
    levels_.push(Nodes{slab}, index, bucket);
  }

  /// Opens the next bucket that has events. Returns false if there is none or it is after the limit.
  bool advance(PacketSlab& slab) {
    if (size_ == 0) return false;
    const std::uint32_t first = levels_.open_next(Nodes{slab}, until_ >> kBucketShift);
    update_limit_key();
    if (first == kNone) return false;
    open_begin_ = levels_.current() << kBucketShift;
    open_bucket(slab, first);
    return true;
  }

  /// Sorts the events of a bucket into open_, descending. Its list returns the event pushed last first, so many buckets
  /// are in descending order already.
  void open_bucket(const PacketSlab& slab, std::uint32_t index) {
    const Packet* const records = &slab[0];
    Entry* into = open_.data();
    Entry* const end = into + kInsertionSortMax;
    for (; index != kNone && into != end; ++into) {
      const Entry entry = entry_of(records[index], index);
      index = records[index].next;
      Entry* hole = into;
      for (; hole != open_.data() && hole[-1].before(entry); --hole) *hole = hole[-1];
      *hole = entry;
    }
    open_count_ = static_cast<std::uint32_t>(into - open_.data());
    if (index != kNone) [[unlikely]]
      open_many(slab, index);
  }
  /// Continues open_bucket() for a bucket with many events.
  [[gnu::noinline]] void open_many(const PacketSlab& slab, std::uint32_t index) {
    for (; index != kNone; index = slab[index].next) {
      if (open_count_ == open_.size()) open_.resize(2 * open_.size());
      open_[open_count_++] = entry_of(slab[index], index);
    }
    if (!std::is_sorted(open_.begin(), open_.begin() + open_count_, after)) sort_open();
  }

  void sort_open() {
    if (open_count_ <= kStdSortMax) return std::sort(open_.begin(), open_.begin() + open_count_, after);
    sort_by_digits();
    Entry* const open = open_.data();  // only entries with equal keys are still out of order
    for (std::uint32_t i = 1; i < open_count_; ++i) {
      if (!open[i - 1].before(open[i])) continue;
      const Entry entry = open[i];
      std::uint32_t hole = i;
      for (; hole > 0 && open[hole - 1].before(entry); --hole) open[hole] = open[hole - 1];
      open[hole] = entry;
    }
  }

  /// Radix sort of open_, descending by key; digits in which all keys agree are skipped.
  void sort_by_digits() {
    std::uint64_t differing_bits = 0;
    for (std::uint32_t i = 1; i < open_count_; ++i) differing_bits |= open_[i].key ^ open_[0].key;
    sort_buffer_.resize(open_.size());
    while (differing_bits != 0) {
      const int shift = std::countr_zero(differing_bits);
      differing_bits = shift < 56 ? differing_bits >> (shift + 8) << (shift + 8) : 0;
      std::array<std::uint32_t, 256> begin{};
      for (std::uint32_t i = 0; i < open_count_; ++i) ++begin[~(open_[i].key >> shift) & 255];
      std::uint32_t sum = 0;
      for (std::uint32_t& count : begin) sum += std::exchange(count, sum);
      for (std::uint32_t i = 0; i < open_count_; ++i) sort_buffer_[begin[~(open_[i].key >> shift) & 255]++] = open_[i];
      open_.swap(sort_buffer_);
    }
  }

  Time open_begin_ = 0;  // the first instant of the open bucket
  std::size_t size_ = 0;
  Time until_ = 0;
  std::uint64_t until_order_ = 0, limit_key_ = 0;
  std::uint32_t open_count_ = 0;    // entries of open_ that were not taken yet
  std::vector<Entry> open_;         // the events of the open bucket, descending
  std::vector<Entry> late_;         // a heap of events pushed into the open bucket
  std::vector<Entry> sort_buffer_;  // the buffer of the radix sort
  CalendarLevels levels_;
};

}  // namespace manyworlds::core::network::per_packet

// The event queue of the per-packet engine, a calendar queue (calendar_levels.hpp). Every packet in flight has an event
// here. Events leave in one total order (time, event kind, tie order of the flow, packet number), whichever bucket they
// were in, because the order of simultaneous packets determines the result.
//
// An event is an entry of two words: nearly all of the order (the time within the bucket, then kind and tie order), and
// the index of a packet record in the slab. A bucket is a list of chunks of entries, not of records, as a walk over
// records that are spread over memory took nearly half of the time: it waits for each of them before it knows the next.
// On fabrics with equal links packets move in lockstep, so that thousands of events may share an instant; such buckets
// are radix-sorted over the digits in which their keys differ.
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

  Calendar() : open_(2 * kInsertionSortMax) {}

  bool empty() const { return size_ == 0; }
  /// Returns the memory of its events, in bytes.
  std::size_t bytes() const { return chunks_.bytes(); }
  void clear() {
    if (size_ > 0) levels_.clear();
    chunks_.clear();
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
  bool pop(Event& taken) {
    if (!late_.empty()) [[unlikely]]
      return pop_late(taken);
    if (open_count_ == 0 && !advance()) return false;
    const Entry& entry = open_[open_count_ - 1];
    if (entry.key >= limit_key_) return false;
    taken = event_of(entry);
    --open_count_;
    --size_;
    return true;
  }

  /// Replaces the kind and tie order of every pending event whose `order`, of these two, and index change() alters. Not
  /// between two calls of pop() for events of one instant.
  template <class Change>
  void reorder(Change change);

  /// Returns whether a bucket was opened since the last call.
  bool take_just_opened() { return std::exchange(just_opened_, false); }
  /// Calls visit(index) with the indices in the slab of some of the events of the next bucket.
  template <class Visit>
  void visit_next_bucket(Visit visit) const {
    const std::uint32_t chunk = levels_.peek();
    if (chunk == kNone) return;
    const Chunk& next = chunks_[chunk];
    for (std::uint32_t i = 0; i < next.count; ++i) visit(static_cast<std::uint32_t>(next.entries[i].number_and_index));
  }
  /// Returns the index in the slab of the event that is taken after `ahead` others of the open bucket; kNone if there
  /// are not as many.
  std::uint32_t upcoming(std::uint32_t ahead) const {
    return ahead < open_count_ ? static_cast<std::uint32_t>(open_[open_count_ - 1 - ahead].number_and_index) : kNone;
  }

  /// Adds the event of a packet, or of a subject, whose record in the slab is `index`; `number` breaks ties of equal
  /// times and orders.
  void push(Time at, std::uint64_t order, std::uint32_t number, std::uint32_t index) {
    ++size_;
    const std::int64_t bucket = at >> kBucketShift;
    const Entry entry{static_cast<std::uint64_t>(at) << kOrderBits | order,
                      static_cast<std::uint64_t>(number) << 32 | index};
    if (levels_.is_near(bucket)) [[likely]] {
      const std::uint32_t first = levels_.near_first(bucket);
      if (first != kNone && chunks_[first].count < Chunk::kMax)
        chunks_[first].add(entry);
      else
        levels_.push_near(chunks_, chunks_.take(entry), bucket);
    } else {
      push_elsewhere(entry, bucket);
    }
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
  /// Events of one bucket. The first cache line has as much as most buckets have.
  struct alignas(64) Chunk {
    static constexpr std::uint32_t kMax = 7;
    std::uint32_t next = kNone;  // in the list of the bucket, or of free chunks
    std::uint32_t count = 0;
    std::int64_t bucket = 0;  // of a chunk that is in no bucket yet
    std::array<Entry, kMax> entries;

    void add(const Entry& entry) { entries[count++] = entry; }
  };
  static_assert(sizeof(Chunk) == 128);

  /// The nodes of the levels.
  class Chunks {
   public:
    Chunk& operator[](std::uint32_t chunk) { return all_[chunk]; }
    const Chunk& operator[](std::uint32_t chunk) const { return all_[chunk]; }
    std::uint32_t& next(std::uint32_t chunk) { return all_[chunk].next; }
    std::uint32_t next(std::uint32_t chunk) const { return all_[chunk].next; }
    std::int64_t bucket(std::uint32_t chunk) const { return all_[chunk].bucket; }
    /// Returns a chunk with one entry.
    std::uint32_t take(const Entry& entry) {
      if (free_ == kNone) {
        free_ = static_cast<std::uint32_t>(all_.size());
        all_.emplace_back();
      }
      const std::uint32_t chunk = std::exchange(free_, all_[free_].next);
      all_[chunk].count = 0;
      all_[chunk].add(entry);
      return chunk;
    }
    void release(std::uint32_t chunk) { all_[chunk].next = std::exchange(free_, chunk); }
    void clear() {
      all_.clear();
      free_ = kNone;
    }
    std::size_t bytes() const { return all_.capacity() * sizeof(Chunk); }

   private:
    std::vector<Chunk> all_;
    std::uint32_t free_ = kNone;
  };

  static bool after(const Entry& a, const Entry& b) { return b.before(a); }
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
  [[gnu::noinline]] void push_elsewhere(const Entry& entry, std::int64_t bucket) {
    if (bucket == levels_.current()) {
      late_.push_back(entry), std::push_heap(late_.begin(), late_.end(), after);
      return;
    }
    const std::uint32_t chunk = chunks_.take(entry);
    chunks_[chunk].bucket = bucket;
    levels_.push(chunks_, chunk, bucket);
  }

  /// Opens the next bucket that has events. Returns false if there is none or it is after the limit.
  bool advance() {
    if (size_ == 0) return false;
    const std::uint32_t first = levels_.open_next(chunks_, until_ >> kBucketShift);
    update_limit_key();
    if (first == kNone) return false;
    open_begin_ = levels_.current() << kBucketShift;
    just_opened_ = true;
    open_bucket(first);
    return true;
  }

  /// Moves the events of a bucket into open_, descending. The last entry of a chunk was pushed last, so that many
  /// buckets are in descending order already.
  void open_bucket(std::uint32_t chunk) {
    const Chunk& only = chunks_[chunk];
    if (only.next != kNone) [[unlikely]]
      return open_many(chunk);
    Entry* const open = open_.data();
    for (std::uint32_t i = 0; i < only.count; ++i) {
      const Entry& entry = only.entries[only.count - 1 - i];
      std::uint32_t hole = i;
      for (; hole > 0 && open[hole - 1].before(entry); --hole) open[hole] = open[hole - 1];
      open[hole] = entry;
    }
    open_count_ = only.count;
    chunks_.release(chunk);
  }
  /// open_bucket() for a bucket with several chunks.
  [[gnu::noinline]] void open_many(std::uint32_t chunk) {
    open_count_ = 0;
    while (chunk != kNone) {
      const Chunk& from = chunks_[chunk];
      const std::uint32_t next = from.next;
      if (next != kNone) __builtin_prefetch(&chunks_[next]);
      if (open_count_ + from.count > open_.size()) open_.resize(2 * open_.size());
      for (std::uint32_t i = from.count; i-- > 0;) open_[open_count_++] = from.entries[i];
      chunks_.release(chunk);
      chunk = next;
    }
    if (open_count_ <= kInsertionSortMax)
      sort_by_insertion();
    else if (!std::is_sorted(open_.begin(), open_.begin() + open_count_, after))
      sort_open();
  }
  void sort_by_insertion() {
    Entry* const open = open_.data();
    for (std::uint32_t i = 1; i < open_count_; ++i) {
      if (!open[i - 1].before(open[i])) continue;
      const Entry entry = open[i];
      std::uint32_t hole = i;
      for (; hole > 0 && open[hole - 1].before(entry); --hole) open[hole] = open[hole - 1];
      open[hole] = entry;
    }
  }

  void sort_open() {
    if (open_count_ <= kStdSortMax) return std::sort(open_.begin(), open_.begin() + open_count_, after);
    sort_by_digits();
    sort_by_insertion();  // only entries with equal keys are still out of order
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
  bool just_opened_ = false;
  std::uint32_t open_count_ = 0;    // entries of open_ that were not taken yet
  std::vector<Entry> open_;         // the events of the open bucket, descending
  std::vector<Entry> late_;         // a heap of events pushed into the open bucket
  std::vector<Entry> sort_buffer_;  // the buffer of the radix sort
  Chunks chunks_;
  CalendarLevels levels_;
};

template <class Change>
void Calendar::reorder(Change change) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kOrderBits) - 1;
  const auto at = [&](Entry& entry) {
    const std::uint64_t order = change(entry.key & kMask, static_cast<std::uint32_t>(entry.number_and_index));
    entry.key = (entry.key & ~kMask) | order;
  };
  levels_.for_each(std::as_const(chunks_), [&](std::uint32_t chunk) {
    for (std::uint32_t i = 0; i < chunks_[chunk].count; ++i) at(chunks_[chunk].entries[i]);
  });
  for (std::uint32_t i = 0; i < open_count_; ++i) at(open_[i]);
  std::sort(open_.begin(), open_.begin() + open_count_, after);
  for (Entry& entry : late_) at(entry);
  std::make_heap(late_.begin(), late_.end(), after);
}

}  // namespace manyworlds::core::network::per_packet

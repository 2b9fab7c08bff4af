// A packet as an individual: a plain record in one slab, linked into the queue it waits in.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::network::individual {

inline constexpr std::uint32_t kNone = UINT32_MAX;

/// Data may be trimmed to its header; all others are control: one header long, and first in a port that has priorities.
enum class PacketKind : std::uint8_t { data, header, ack, nack, pull, request };

inline constexpr std::uint8_t kMarked = 0x80;

/// One cache line. It is its own event while it is under way: it waits in a bucket of the calendar, in the queue of a
/// port, or among what a NIC is offered, never in two of them. Events that are no packets borrow a record: a note.
struct alignas(64) Packet {
  std::uint64_t key = 0;           // of its event: time within a bucket, what kind of event, order of its flow
  Time sent_at = 0;                // left its NIC, or for an ack the packet it answers did
  std::uint32_t number = 0;        // of data, from 0; of control, what its kind says; of a note, what it is about
  std::uint32_t next = kNone;      // in what it waits in, or among the free
  std::uint32_t previous = kNone;  // in the queue of a port
  std::uint32_t bucket = 0;        // of its event, the low bits
  std::uint32_t flow = 0;
  std::uint32_t link = 0;         // it is on, or came by; at hop 0, the one it is to leave by
  std::uint32_t turn = 0;         // the link it leaves the next switch by, unless that is chosen there
  std::uint32_t destination = 0;  // GPU
  std::uint32_t bytes = 0;        // on the wire
  std::uint32_t path = 0;         // hash that steers it; equal ones go the same way
  std::uint32_t value = 0;        // what its kind says
  std::uint16_t entropy = 0;      // which of the sender's paths it is on
  PacketKind kind = PacketKind::data;
  std::uint8_t hop = 0;  // links behind it; kMarked is set once it met a queue above the threshold
};
static_assert(sizeof(Packet) == 64);

class PacketSlab {
 public:
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }

  /// A packet with unspecified contents. References to others end here.
  std::uint32_t take() {
    ++in_use_;
    if (free_ == kNone) {
      packets_.emplace_back();
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = packets_[index].next;
    return index;
  }
  void release(std::uint32_t index) {
    --in_use_;
    packets_[index].next = free_;
    free_ = index;
  }
  void clear() {
    packets_.clear();
    free_ = kNone;
    in_use_ = 0;
  }
  std::size_t in_use() const { return in_use_; }
  std::size_t bytes() const { return packets_.capacity() * sizeof(Packet); }

 private:
  std::vector<Packet> packets_;
  std::uint32_t free_ = kNone;
  std::size_t in_use_ = 0;
};

/// First in, first out through the packets' own links, and out at the end as well.
struct PacketQueue {
  std::uint32_t head = kNone, tail = kNone;

  bool empty() const { return head == kNone; }
  void push(PacketSlab& slab, std::uint32_t index) {
    slab[index].next = kNone;
    slab[index].previous = tail;
    (tail == kNone ? head : slab[tail].next) = index;
    tail = index;
  }
  std::uint32_t pop(PacketSlab& slab) {
    const std::uint32_t index = head;
    head = slab[index].next;
    (head == kNone ? tail : slab[head].previous) = kNone;
    return index;
  }
  std::uint32_t pop_last(PacketSlab& slab) {
    const std::uint32_t index = tail;
    tail = slab[index].previous;
    (tail == kNone ? head : slab[tail].next) = kNone;
    return index;
  }
};

}  // namespace manyworlds::core::network::individual

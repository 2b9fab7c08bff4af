// The packet of the per-packet engine: a plain record in a slab, linked into the queue in which it waits.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::network::per_packet {

inline constexpr std::uint32_t kNone = UINT32_MAX;

/// A data packet may be trimmed to its header. All other kinds are control packets: one header long, and served first
/// by ports with priorities.
enum class PacketKind : std::uint8_t { data, header, ack, nack, pull, request };

inline constexpr std::uint8_t kMarked = 0x80;

/// One packet, in one cache line. It is an event of the calendar, or linked into the queue of a port or the list of
/// packets offered to a NIC, but never two of these. Events that belong to no packet (timers, pauses) borrow a record.
struct alignas(64) Packet {
  std::uint64_t tie_order = 0;     // of the flow
  Time sent_at = 0;                // when it left its NIC; for an ack, when the acknowledged packet did
  std::uint32_t number = 0;        // data: from 0; control: depends on the kind; other events: the subject
  std::uint32_t next = kNone;      // in the list or queue that holds it, or in the free list
  std::uint32_t previous = kNone;  // in the queue of a port
  std::uint32_t flow = 0;          // slot of the flow
  std::uint32_t link = 0;          // current or last link; at hop 0, the link of the NIC that it will take
  std::uint32_t next_link = 0;     // link out of the next switch, unless routing is adaptive
  std::uint32_t destination = 0;   // GPU
  std::uint32_t bytes = 0;         // on the wire
  std::uint32_t path = 0;          // hash that selects the path: equal hashes take the same path; if pinned, its offset
  std::uint32_t value = 0;         // depends on the kind
  std::uint16_t entropy = 0;       // entropy value: index of the sender's path
  PacketKind kind = PacketKind::data;
  std::uint8_t hop = 0;  // links it was sent on so far; kMarked is set by a queue above the ECN threshold
};
static_assert(sizeof(Packet) == 64);

/// The pool of packet records, addressed by index.
class PacketSlab {
 public:
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }

  /// Allocates a packet with unspecified contents and returns its index. Invalidates references to other packets.
  std::uint32_t allocate() {
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
  /// Returns the number of records, in use or not.
  std::size_t size() const { return packets_.size(); }
  std::size_t in_use() const { return in_use_; }
  std::size_t bytes() const { return packets_.capacity() * sizeof(Packet); }

 private:
  std::vector<Packet> packets_;
  std::uint32_t free_ = kNone;
  std::size_t in_use_ = 0;
};

/// An intrusive FIFO queue, doubly linked so that the last packet can be removed too.
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

}  // namespace manyworlds::core::network::per_packet

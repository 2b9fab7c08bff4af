// The state of a network on pinned paths: links with the packets on them, flows with their senders, and control frames.
// It is what an engine must keep for its future to be determined; events, byte counts and schedules follow from it.
//
// Each record has one function that visits its fields. StateWriter and StateReader are its visitors, so that neither
// can omit a field or change the order. A visitor distinguishes
//   scalar(value)            a plain number,
//   flags(bits...)           a few booleans,
//   deadline(time)           an instant in the future, or kNever,
//   future_time(time)        an instant that matters only while it is in the future,
//   age(time, limit)         an instant in the past; all beyond the limit are equivalent,
//   link_bytes(bytes, hop)   a past count of the bytes sent by a link of the path, of which only the difference to the
//                            present count matters,
//   remaining(packets)       the packets that a flow has not yet offered,
//   packet(packet), flow(number), link(number)   a packet, a flow or a link in the numbering of the engine, and
//   list(queue, visit)       the elements of a queue.
#pragma once

#include <array>
#include <cstdint>

#include "core/network/engine/fifo.hpp"
#include "core/network/engine/sender_protocol.hpp"
#include "core/network/engine/telemetry_rows.hpp"
#include "core/network/fabric/router.hpp"

namespace manyworlds::core::network {

// A packet is a 64-bit word: flow (24 bits), number (32 bits, counting down to 1, the last), hop (7 bits) and ECN mark
// (1 bit).
using Packet = std::uint64_t;
constexpr Packet make_packet(std::uint32_t flow, std::uint32_t number) {
  return static_cast<Packet>(flow) << 40 | static_cast<Packet>(number) << 8;
}
constexpr std::uint32_t flow_of(Packet packet) {
  return static_cast<std::uint32_t>(packet >> 40);
}
constexpr std::uint32_t number_of(Packet packet) {
  return static_cast<std::uint32_t>(packet >> 8);
}
constexpr std::uint32_t hop_of(Packet packet) {
  return static_cast<std::uint32_t>(packet >> 1) & 0x7F;
}
inline constexpr Packet kMarkBit = 1, kOneHop = 2;
inline constexpr Packet kAllButFlowMask = (1ull << 40) - 1;  // mask of everything but the flow

/// A packet in flight on a link, which arrives at `at`.
struct InFlightPacket {
  Time at = 0;
  Packet packet = 0;
};

/// The plain fields of a link's state.
struct LinkFields {
  Time busy_until = 0;          // end of the current transmission
  std::int64_t mark_error = 0;  // RED by error diffusion, parts per million
  bool paused = false, pause_wanted = false;
  LinkSpec spec;
};
struct LinkState : LinkFields {
  Fifo<InFlightPacket> wire;  // in order of arrival
  Fifo<Packet> queue;
};

/// An acknowledgement in flight, which reaches the sender at `at`.
struct Ack {
  Time at = 0;
  Time rtt = 0;
  bool marked = false;
};

/// The plain fields of a flow's state.
template <SenderProtocol P>
struct FlowFields {
  std::array<std::uint32_t, kMaxHops> path{};  // links
  std::uint32_t hops = 0;
  std::uint32_t remaining = 0;  // packets not yet offered; also the number of the next one
  std::uint32_t unacked = 0;    // offered packets whose acks have not been taken from `acks`
  std::int64_t last_bytes = 0;  // size of packet number 1, the last
  Time next_packet_at = 0;      // earliest start of the next packet (pacing)
  Time departs_at = kNever;     // end of the transmission at the NIC, if there is one
  Time delivered_at = kNever;   // arrival of the last packet, once it is on its last link
  Time last_cnp = 0;            // when the receiver last sent a CNP
  bool at_nic = false;
  bool offered = false;  // a packet was offered at this instant and has not arrived at the NIC
  P sender;
};
template <SenderProtocol P>
struct FlowState : FlowFields<P> {
  Fifo<Ack> acks;           // in flight, in order; taken when the window is evaluated
  Fifo<Time> departures;    // start times of packets in flight, if the protocol needs acks
  TelemetryRows telemetry;  // per unacknowledged packet and link after the NIC, if the protocol needs it
};

/// A frame that reaches a flow's sender (CNP) or a link's (PFC) at `at`. Frames of one instant act in this order of
/// kinds: a resume precedes a pause, since a switch that sends both at one instant sends the pause last.
enum class FrameKind : std::uint8_t { cnp, resume, pause };
struct ControlFrame {
  Time at = 0;
  FrameKind kind = FrameKind::cnp;
  std::uint32_t subject = 0;  // a flow for a CNP, else a link
};

template <class Visitor>
void visit_link(LinkFields& link, Visitor& visitor) {
  visitor.scalar(link.spec.bits_per_second), visitor.scalar(link.spec.latency_ps);
  visitor.flags(link.spec.leaves_gpu, link.spec.enters_gpu, link.spec.scale_up, link.paused, link.pause_wanted);
  visitor.future_time(link.busy_until);
  visitor.scalar(link.mark_error);
}
template <class Visitor>
void visit_packets(LinkState& link, Visitor& visitor) {
  visitor.list(link.queue, [&](Packet& packet) { visitor.packet(packet); });
  visitor.list(link.wire, [&](InFlightPacket& next) { visitor.deadline(next.at), visitor.packet(next.packet); });
}

template <class Visitor>
void visit_path(Route& path, Visitor& visitor) {
  visitor.list(path, [&](std::uint32_t& link) { visitor.link(link); });
}
template <SenderProtocol P, class Visitor>
void visit_progress(FlowState<P>& flow, Visitor& visitor) {
  visitor.remaining(flow.remaining);
  visitor.flags(flow.at_nic, flow.offered);
  visitor.scalar(flow.last_bytes);
  visitor.deadline(flow.departs_at), visitor.deadline(flow.delivered_at);
}
/// Visits the sender of a congestion-controlled flow that has packets left.
template <SenderProtocol P, class Visitor>
void visit_sender(FlowState<P>& flow, Visitor& visitor) {
  P::visit_state(flow.sender, visitor);
  visitor.future_time(flow.next_packet_at);
  if (P::kNeeds.cnps) visitor.age(flow.last_cnp, kCnpInterval);
  if constexpr (P::kNeeds.acks) visitor.list(flow.departures, [&](Time& at) { visitor.deadline(at); });
  if constexpr (P::kNeeds.telemetry)
    visitor.rows(flow.telemetry, [&](TelemetryRecord* row) {
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        TelemetryRecord& link = row[hop - 1];
        bool reached = link.at != kNever;  // the packet has begun to cross this link
        visitor.flags(reached);
        if (!reached) continue;
        visitor.deadline(link.at), visitor.scalar(link.waiting_bytes), visitor.link_bytes(link.sent_bytes, hop);
      }
    });
}
/// Visits the acknowledgements that can still affect a flow; those of one without congestion control carry nothing.
template <SenderProtocol P, class Visitor>
void visit_acks(FlowState<P>& flow, bool uses_cc, Visitor& visitor) {
  visitor.scalar(flow.unacked);
  visitor.list(flow.acks, [&](Ack& ack) {
    visitor.deadline(ack.at);
    if (P::kNeeds.acks && uses_cc) visitor.scalar(ack.rtt), visitor.flags(ack.marked);
  });
}

template <class Visitor>
void visit_frame(ControlFrame& frame, Visitor& visitor) {
  visitor.deadline(frame.at);
  visitor.scalar(frame.kind);
  frame.kind == FrameKind::cnp ? visitor.flow(frame.subject) : visitor.link(frame.subject);
}

}  // namespace manyworlds::core::network

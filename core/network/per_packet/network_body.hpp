// The per-packet functions of the per-packet network, as templates in a header so that the compiler can inline them.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/hash.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::per_packet {

template <class PortPolicy>
[[gnu::always_inline]] inline std::uint32_t Network::choose_link(const Packet& packet) {
  if (PortPolicy::steering(options_) == Steering::pinned) return pinned_[packet.path + (packet.hop & ~kMarked)];
  const auto candidates = forwarding_->next_hops(ports_[packet.link].to, packet.destination);
  if (candidates.size() == 1) return candidates[0];
  if (candidates.empty()) [[unlikely]]
    return nowhere();
  const std::uint64_t random_bits = splitmix64(packet.path ^ static_cast<std::uint64_t>(packet.hop & ~kMarked) << 32);
  std::size_t pick = (random_bits >> 32) * candidates.size() >> 32;
  if (PortPolicy::steering(options_) != Steering::adaptive) return candidates[pick];
  // The candidate with fewest bytes queued; among equal ones the first at or after the hashed one, so that no link is
  // favoured.
  std::uint32_t best = candidates[pick];
  std::int64_t min_ahead = INT64_MAX;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Port& port = ports_[candidates[pick]];
    catch_up<PortPolicy>(port, candidates[pick]);
    const std::int64_t ahead = port.waiting_bytes + port.serving_data(now_);
    if (ahead < min_ahead) min_ahead = ahead, best = candidates[pick];
    if (++pick == candidates.size()) pick = 0;
  }
  return best;
}

template <class PortPolicy>
[[gnu::always_inline]] inline void Network::enter_port(std::uint32_t packet, std::uint32_t link) {
  Port& port = ports_[link];
  catch_up<PortPolicy>(port, link);
  if (port.busy_until <= now_ && port.queue.empty() && !port.paused)
    transmit<PortPolicy>(port, link, packet, now_);
  else
    enqueue<PortPolicy>(port, link, packet);
}

/// Sends a packet from `begin` on, when the port is free.
template <class PortPolicy>
[[gnu::always_inline]] inline void Network::transmit(Port& port, std::uint32_t link, std::uint32_t index, Time begin) {
  Packet& packet = slab_[index];
  const std::uint32_t bytes = packet.bytes;
  const Time duration = bytes == options_.full_packet_bytes ? port.full_packet_ps
                        : bytes == options_.control_bytes   ? port.control_packet_ps
                                                            : serialization_ps(bytes, port.bits_per_second);
  const Time done = port.busy_until = begin + duration;
  ++port.load.packets;
  port.load.bytes += bytes;
  port.load.busy_ps += duration;
  ++counters_.link_hops;
  if (PortPolicy::has_telemetry(telemetry_links_ > 0)) record_telemetry(port, index, begin);
  if (packet.kind == PacketKind::data || PortPolicy::kind(options_) != PortKind::trimming) {
    port.data_until = done;
    port.data_bytes = bytes;
  }
  const bool leaves_nic = packet.kind == PacketKind::data && packet.hop == 0;
  if (leaves_nic) packet.sent_at = begin;
  packet.link = link;
  ++packet.hop;
  const std::uint64_t tie_order = packet.tie_order;
  const std::uint32_t flow = packet.flow;
  EventKind next_kind = EventKind::deliver;
  if (port.to != packet.destination) {
    next_kind = EventKind::arrive;
    if (PortPolicy::steering(options_) != Steering::adaptive) packet.next_link = choose_link<PortPolicy>(packet);
  }
  events_.push(done + port.latency_ps, static_cast<std::uint64_t>(next_kind) << kKindShift | tie_order, packet.number,
               index);
  if (leaves_nic) schedule(done, EventKind::departed, tie_order, flow);
}

/// Queues a packet because the port is busy or paused or other packets are queued before it; drops or trims it if it
/// does not fit.
template <class PortPolicy>
void Network::enqueue(Port& port, std::uint32_t link, std::uint32_t index) {
  Packet& packet = slab_[index];
  if (port.dead) [[unlikely]]
    return lose(index);
  const bool switched = packet.hop != 0;  // the queue of a NIC is unlimited
  if (PortPolicy::kind(options_) == PortKind::trimming) {
    if (packet.kind != PacketKind::data) return send_control<PortPolicy>(port, link, index);
    if (switched && packet.bytes > free_queue_bytes(port)) return trim_or_enqueue<PortPolicy>(port, link, index);
  } else if (switched && PortPolicy::kind(options_) == PortKind::drop_tail) {
    if (packet.bytes > free_queue_bytes(port)) return drop(index);
  } else if (switched) {
    charge_ingress(packet);
  }
  if (switched && options_.marks && packet.kind == PacketKind::data && mark(port)) packet.hop |= kMarked;
  append(port, index);
  if (port.service_due || port.paused) return;
  port.service_due = true;
  schedule(port.busy_until + port.slack_ps, EventKind::service, link, link);
}

/// Handles a data packet that does not fit: either it or the last queued packet is trimmed, with probability 1/2 each
/// (NDP, section 3.1). Only switches trim: what a GPU that relays has sent itself has not left it, and stays whole.
template <class PortPolicy>
[[gnu::noinline]] void Network::trim_or_enqueue(Port& port, std::uint32_t link, std::uint32_t index) {
  const Packet& packet = slab_[index];
  const std::uint64_t random_bits = splitmix64(static_cast<std::uint64_t>(packet.path) << 32 ^ packet.number ^
                                               static_cast<std::uint64_t>(packet.hop) << 56);
  const bool has_other = !port.queue.empty() && slab_[port.queue.tail].hop != 0;
  if ((random_bits & 1) != 0 && has_other && slab_[port.queue.tail].bytes >= packet.bytes) {
    const std::uint32_t last = port.queue.pop_last(slab_);
    port.waiting_bytes -= slab_[last].bytes;
    append(port, index);
    index = last;
  }
  ++counters_.trims;
  slab_[index].kind = PacketKind::header;
  slab_[index].bytes = static_cast<std::uint32_t>(options_.control_bytes);
  send_control<PortPolicy>(port, link, index);
}

/// Sends a control packet. Control packets are served before data and in FIFO order, so the time at which one leaves is
/// known when it arrives and it needs no queue.
template <class PortPolicy>
void Network::send_control(Port& port, std::uint32_t link, std::uint32_t index) {
  const Time ahead = port.busy_until - std::max(port.data_until, now_);
  if (slab_[index].hop != 0 && ahead + port.control_packet_ps > port.control_queue_limit_ps) return drop(index);
  transmit<PortPolicy>(port, link, index, std::max(port.busy_until, now_));
}

/// Sends the queued packets whose transmission begins by now(). On a port that can be paused the next one begins now,
/// on others when the port became free.
template <class PortPolicy>
[[gnu::noinline]] void Network::serve(Port& port, std::uint32_t link) {
  constexpr auto lossless = PortKind::lossless;
  do {
    const std::uint32_t index = port.queue.pop(slab_);
    const Packet& packet = slab_[index];
    port.waiting_bytes -= packet.bytes;
    if (PortPolicy::kind(options_) == lossless) release_ingress(packet);
    transmit<PortPolicy>(port, link, index, PortPolicy::kind(options_) == lossless ? now_ : port.busy_until);
  } while (port.busy_until <= now_ && !port.queue.empty());
  if (port.queue.empty()) port.mark_error = 0;  // an idle port has no marking history
}

template <class PortPolicy>
void Network::service(std::uint32_t link) {
  Port& port = ports_[link];
  port.service_due = false;
  catch_up<PortPolicy>(port, link);
  if (port.paused || port.queue.empty()) return;
  port.service_due = true;
  schedule(port.busy_until + port.slack_ps, EventKind::service, link, link);
}

template <class PortPolicy>
[[gnu::noinline]] void Network::fail(std::uint32_t link) {
  Port& port = ports_[link];
  catch_up<PortPolicy>(port, link);
  has_failed_ = port.dead = true;
  port.busy_until = kNever;
  port.service_due = false;
  while (!port.queue.empty()) {
    const std::uint32_t packet = port.queue.pop(slab_);
    if (PortPolicy::kind(options_) == PortKind::lossless) release_ingress(slab_[packet]);
    lose(packet);
  }
  port.waiting_bytes = kDeadQueueBytes;
  lose_carried(link);
}

/// Only packets of its GPU enter a NIC, so those of one instant can be ordered here, without an event for each.
inline void Network::offer(std::uint32_t index) {
  Packet& packet = slab_[index];
  Port& port = ports_[packet.link];
  if (!port.nic) return push(now_, EventKind::arrive, index);
  if (port.offered == kNone) {
    if (offered_.empty()) events_.set_limit(now_, kArrivalOrder);
    offered_.push_back(packet.link);
  }
  const auto before = [&](std::uint32_t other) {
    const Packet& there = slab_[other];
    return std::tuple(there.tie_order, there.number, other) < std::tuple(packet.tie_order, packet.number, index);
  };
  std::uint32_t* at = &port.offered;
  while (*at != kNone && before(*at)) at = &slab_[*at].next;
  packet.next = *at;
  *at = index;
}

template <class PortPolicy>
[[gnu::noinline]] void Network::enter_offered_packets() {
  for (const std::uint32_t link : offered_)
    for (std::uint32_t index = std::exchange(ports_[link].offered, kNone); index != kNone;) {
      const std::uint32_t next = slab_[index].next;
      enter_port<PortPolicy>(index, link);
      index = next;
    }
  offered_.clear();
}

template <class Endpoint>
void Network::run(Endpoint& endpoint, Time limit) {
  using PortPolicy = typename Endpoint::PortPolicy;
  const std::size_t before = endpoint.completions();
  bool completed = false;
  events_.set_limit(offered_.empty() ? limit : now_, kArrivalOrder);  // arrivals at the limit stay pending
  for (Event event;;) {
    if (!events_.pop(event)) {
      // Stop at this instant if a transfer completed: transfers that start now must be ordered among its arrivals.
      if (completed || offered_.empty() || now_ == limit) break;
      enter_offered_packets<PortPolicy>();
      events_.set_limit(limit, kArrivalOrder);
      continue;
    }
    prefetch_upcoming();
    now_ = event.at;
    const auto index = static_cast<std::uint32_t>(event.number_and_index);
    switch (static_cast<EventKind>(event.key >> kKindShift & 15)) {
      case EventKind::arrive: {
        const Packet& packet = slab_[index];
        if (PortPolicy::steering(options_) == Steering::adaptive && packet.hop != 0)
          enter_port<PortPolicy>(index, choose_link<PortPolicy>(packet));
        else
          enter_port<PortPolicy>(index, packet.hop == 0 ? packet.link : packet.next_link);
        break;
      }
      case EventKind::deliver:
        last_activity_ = now_;
        endpoint.deliver(index);
        if (endpoint.completions() > before) {
          completed = true;
          events_.set_limit(now_, kArrivalOrder);
        }
        break;
      case EventKind::service:
        service<PortPolicy>(consume_event(event));
        break;
      case EventKind::departed:
        endpoint.departed(consume_event(event));
        break;
      case EventKind::pause:
        last_activity_ = now_;
        ports_[consume_event(event)].paused = true;
        break;
      case EventKind::resume:
        last_activity_ = now_;
        resume(consume_event(event));
        break;
      case EventKind::pace:
        --pending_paces_;
        last_activity_ = now_;
        endpoint.pace(consume_event(event));
        break;
      case EventKind::feedback:
        --pending_feedback_;
        endpoint.feedback(index);
        break;
      case EventKind::cnp:
        endpoint.cnp(consume_event(event));
        break;
      case EventKind::timer:
        endpoint.timer(consume_event(event));
        break;
      case EventKind::lost:
        endpoint.lost(index);
        break;
    }
  }
  if (!completed && limit != kNever) now_ = limit;
}

}  // namespace manyworlds::core::network::per_packet

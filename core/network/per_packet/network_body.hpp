// What happens per packet in the second engine's network, for the compiler to see whole.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/hash.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::individual {

template <class Ports>
[[gnu::always_inline]] inline std::uint32_t Network::choose(const Packet& packet) {
  if (Ports::steering(options_) == Steering::pinned) return pinned_[packet.path + (packet.hop & ~kMarked)];
  const auto candidates = forwarding_->onward(ports_[packet.link].to, packet.destination);
  if (candidates.size() == 1) return candidates[0];
  const std::uint64_t drawn = splitmix64(packet.path ^ static_cast<std::uint64_t>(packet.hop & ~kMarked) << 32);
  std::size_t pick = (drawn >> 32) * candidates.size() >> 32;
  if (Ports::steering(options_) != Steering::adaptive) return candidates[pick];
  // Least bytes ahead; among equals the first from the drawn one on, so that none is favoured.
  std::uint32_t best = candidates[pick];
  std::int64_t least = INT64_MAX;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Port& port = ports_[candidates[pick]];
    catch_up<Ports>(port, candidates[pick]);
    const std::int64_t ahead = port.waiting_bytes + port.serving_data(now_);
    if (ahead < least) least = ahead, best = candidates[pick];
    if (++pick == candidates.size()) pick = 0;
  }
  return best;
}

template <class Ports>
[[gnu::always_inline]] inline void Network::enter(std::uint32_t packet, std::uint32_t link) {
  Port& port = ports_[link];
  catch_up<Ports>(port, link);
  if (port.busy_until <= now_ && port.queue.empty() && !port.paused)
    transmit<Ports>(port, link, packet, now_);
  else
    wait<Ports>(port, link, packet);
}

/// From `begin` on, when the port is free.
template <class Ports>
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
  if (Ports::watched(watched_links_ > 0)) observe(port, index, begin);
  if (packet.kind == PacketKind::data || Ports::kind(options_) != PortKind::trimming) {
    port.data_until = done;
    port.data_bytes = bytes;
  }
  const bool leaves = packet.kind == PacketKind::data && packet.hop == 0;
  if (leaves) packet.sent_at = begin;
  packet.link = link;
  ++packet.hop;
  const std::uint64_t order = order_of(packet);
  const std::uint32_t flow = packet.flow;
  Kind then = Kind::deliver;
  if (port.to != packet.destination) {
    then = Kind::arrive;
    if (Ports::steering(options_) != Steering::adaptive) packet.turn = choose<Ports>(packet);
  }
  events_.push(slab_, index, done + port.latency_ps, static_cast<std::uint64_t>(then) << kKindShift | order);
  if (leaves) note(done, Kind::departed, order, flow);
}

/// The port cannot send now, or others are before it.
template <class Ports>
void Network::wait(Port& port, std::uint32_t link, std::uint32_t index) {
  Packet& packet = slab_[index];
  const bool switched = packet.hop != 0;  // a NIC has room for all that its flows offer
  if (Ports::kind(options_) == PortKind::trimming) {
    if (packet.kind != PacketKind::data) return send_control<Ports>(port, link, index);
    if (switched && packet.bytes > data_room(port)) return wait_trimming<Ports>(port, link, index);
  } else if (switched && Ports::kind(options_) == PortKind::drop_tail) {
    if (packet.bytes > data_room(port)) return drop(index);
  } else if (switched) {
    hold_ingress(packet);
  }
  if (switched && options_.marks && packet.kind == PacketKind::data && mark(port)) packet.hop |= kMarked;
  join(port, index);
  if (port.service_due || port.paused) return;
  port.service_due = true;
  note(port.busy_until + port.slack_ps, Kind::service, link, link);
}

/// Data that does not fit: either it or the last of those that wait loses its payload, with even chances.
template <class Ports>
[[gnu::noinline]] void Network::wait_trimming(Port& port, std::uint32_t link, std::uint32_t index) {
  const Packet& packet = slab_[index];
  const std::uint64_t drawn = splitmix64(static_cast<std::uint64_t>(packet.path) << 32 ^ packet.number ^
                                         static_cast<std::uint64_t>(packet.hop) << 56);
  if ((drawn & 1) != 0 && !port.queue.empty() && slab_[port.queue.tail].bytes >= packet.bytes) {
    const std::uint32_t last = port.queue.pop_last(slab_);
    port.waiting_bytes -= slab_[last].bytes;
    join(port, index);
    index = last;
  }
  ++counters_.trims;
  slab_[index].kind = PacketKind::header;
  slab_[index].bytes = static_cast<std::uint32_t>(options_.control_bytes);
  send_control<Ports>(port, link, index);
}

/// Served before data and in turn among themselves, control packets know when they go as soon as they come.
template <class Ports>
void Network::send_control(Port& port, std::uint32_t link, std::uint32_t index) {
  const Time ahead = port.busy_until - std::max(port.data_until, now_);
  if (slab_[index].hop != 0 && ahead + port.control_packet_ps > port.control_room_ps) return drop(index);
  transmit<Ports>(port, link, index, std::max(port.busy_until, now_));
}

/// Sends what waits and may have begun by now. Where a port may pause it begins now, else when the port was free.
template <class Ports>
[[gnu::noinline]] void Network::serve(Port& port, std::uint32_t link) {
  constexpr auto lossless = PortKind::lossless;
  do {
    const std::uint32_t index = port.queue.pop(slab_);
    const Packet& packet = slab_[index];
    port.waiting_bytes -= packet.bytes;
    if (Ports::kind(options_) == lossless) release_ingress(packet);
    transmit<Ports>(port, link, index, Ports::kind(options_) == lossless ? now_ : port.busy_until);
  } while (port.busy_until <= now_ && !port.queue.empty());
  if (port.queue.empty()) port.mark_error = 0;  // an idle port remembers nothing
}

template <class Ports>
void Network::service(std::uint32_t link) {
  Port& port = ports_[link];
  port.service_due = false;
  catch_up<Ports>(port, link);
  if (port.paused || port.queue.empty()) return;
  port.service_due = true;
  note(port.busy_until + port.slack_ps, Kind::service, link, link);
}

/// Into a NIC only packets of its GPU come, so those of one instant are ranked among themselves.
inline void Network::offer(std::uint32_t index) {
  Packet& packet = slab_[index];
  Port& port = ports_[packet.link];
  if (!port.nic) return push(now_, Kind::arrive, index);
  if (port.offered == kNone) {
    if (offered_.empty()) events_.give_before(now_, kArrivals);
    offered_.push_back(packet.link);
  }
  const auto before = [&](std::uint32_t other) {
    const Packet& there = slab_[other];
    return std::tuple(order_of(there), there.number, other) < std::tuple(order_of(packet), packet.number, index);
  };
  std::uint32_t* at = &port.offered;
  while (*at != kNone && before(*at)) at = &slab_[*at].next;
  packet.next = *at;
  *at = index;
}

template <class Ports>
[[gnu::noinline]] void Network::enter_offered() {
  for (const std::uint32_t link : offered_)
    for (std::uint32_t index = std::exchange(ports_[link].offered, kNone); index != kNone;) {
      const std::uint32_t next = slab_[index].next;
      enter<Ports>(index, link);
      index = next;
    }
  offered_.clear();
}

template <class Endpoint>
void Network::run(Endpoint& endpoint, Time limit) {
  using Ports = typename Endpoint::Ports;
  const std::size_t before = endpoint.completions();
  bool completed = false;
  events_.give_before(offered_.empty() ? limit : now_, kArrivals);  // those at the limit stay
  for (Event event;;) {
    if (!events_.take(slab_, event)) {
      // This instant is the last if something completed: what starts at it must be ranked among its arrivals.
      if (completed || offered_.empty() || now_ == limit) break;
      enter_offered<Ports>();
      events_.give_before(limit, kArrivals);
      continue;
    }
    now_ = event.at;
    const auto index = static_cast<std::uint32_t>(event.what);
    switch (static_cast<Kind>(event.key >> kKindShift & 15)) {
      case Kind::arrive: {
        const Packet& packet = slab_[index];
        if (Ports::steering(options_) == Steering::adaptive && packet.hop != 0)
          enter<Ports>(index, choose<Ports>(packet));
        else
          enter<Ports>(index, packet.hop == 0 ? packet.link : packet.turn);
        break;
      }
      case Kind::deliver:
        quiet_since_ = now_;
        endpoint.deliver(index);
        if (endpoint.completions() > before) {
          completed = true;
          events_.give_before(now_, kArrivals);
        }
        break;
      case Kind::service:
        service<Ports>(subject_of(event));
        break;
      case Kind::departed:
        endpoint.departed(subject_of(event));
        break;
      case Kind::pause:
        quiet_since_ = now_;
        ports_[subject_of(event)].paused = true;
        break;
      case Kind::resume:
        quiet_since_ = now_;
        resume(subject_of(event));
        break;
      case Kind::pace:
        --pacing_;
        quiet_since_ = now_;
        endpoint.pace(subject_of(event));
        break;
      case Kind::feedback:
        --parked_;
        endpoint.feedback(index);
        break;
      case Kind::notice:
        endpoint.notice(subject_of(event));
        break;
      case Kind::timer:
        endpoint.timer(subject_of(event));
        break;
    }
  }
  if (!completed && limit != kNever) now_ = limit;
}

}  // namespace manyworlds::core::network::individual

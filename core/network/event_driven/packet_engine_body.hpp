// What packet_engine.hpp declares; for the files that make engines of their protocol.
#pragma once

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/event_driven/packet_engine.hpp"
#include "core/network/event_driven/packet_engine_setup.hpp"
#include "core/network/event_driven/state_load.hpp"
#include "core/network/event_driven/state_save.hpp"

namespace manyworlds::core::network {

template <Protocol P>
void PacketEngine<P>::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  limit_ = inline_before_ = limit;
  run_events(completed);
  inline_before_ = 0;  // what starts between runs must be ranked with what else starts then
  if (drained()) events_.clear();
}

template <Protocol P>
void PacketEngine<P>::run_events(std::vector<std::uint32_t>& completed) {
  const std::size_t before = completed.size();
  while (!events_.empty()) {
    const Event event = events_.top();
    const bool arrival = kind_of(event) == Kind::arrive;
    if (completed.size() > before) {
      inline_before_ = now_;  // this instant is the last; its arrivals stay
      if (event.at > now_ || arrival) return;
    } else if (event.at > limit_ || (event.at == limit_ && arrival)) {
      now_ = limit_;
      return;
    }
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  if (completed.size() == before && limit_ != kNever) now_ = limit_;
}

template <Protocol P>
PauseWaits PacketEngine<P>::standstill() const {
  PauseWaits waits;
  if (live_ == 0 || !events_.empty()) return waits;
  for (std::uint32_t link = 0; link < ports_.size(); ++link)
    for (std::size_t i = 0; i < ports_[link].queue.size(); ++i) {
      const Packet packet = ports_[link].queue[i];
      if (hop_of(packet) == 0) continue;
      const std::uint32_t from = flows_[slot_of(packet)].path[hop_of(packet) - 1];
      if (ports_[from].paused) waits.emplace_back(from, link);
    }
  MANYWORLDS_CHECK(!waits.empty(), "{} flows wait for nothing", live_);
  return waits;
}

template <Protocol P>
void PacketEngine<P>::handle(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.of());  // of a flow or a link
  switch (kind_of(event)) {
    case Kind::arrive:
      arrive_all(event);
      break;
    case Kind::service:
      if (ports_[index].service_at == now_) service(index);
      break;
    case Kind::pause:
      paused(index);
      break;
    case Kind::resume:
      resume(index);
      break;
    default:
      if (flows_[index].live && flows_[index].life == event.of() >> 32) handle_flow(kind_of(event), index);
      break;
  }
}

template <Protocol P>
void PacketEngine<P>::handle_flow(Kind kind, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  quiet_since_ = now_;
  switch (kind) {
    case Kind::deliver:
      complete(slot);
      break;
    case Kind::departed:
      departed(slot);
      break;
    case Kind::ack:
      flow.blocked = false;
      offer(slot);
      break;
    case Kind::notice:
      if (flow.left == 0) break;
      flow.sender.notified(parameters_, now_);
      arm(flow, slot);
      break;
    default:
      timer(slot);
      break;
  }
}

template <Protocol P>
void PacketEngine<P>::complete(std::uint32_t slot) {
  flows_[slot].live = false;
  --live_;
  free_.push_back(slot);
  completed_->push_back(slot);
}

/// The packet of an arrival: the first on a link, or one that a flow offers to its NIC.
template <Protocol P>
[[gnu::always_inline]] inline Packet PacketEngine<P>::take_arrival(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.of());
  if ((event.of() & kOverLink) == 0) {
    flows_[index].offered = false;
    return make_packet(index, flows_[index].left + 1);
  }
  Fifo<Travelling>& wire = ports_[index].wire;
  const Packet packet = wire.front().packet;
  wire.pop();
  if (!wire.empty()) expect(index, wire.front());
  return packet;
}

/// Everything that arrives at this instant. Only where several packets come to one port does their order matter.
template <Protocol P>
void PacketEngine<P>::arrive_all(const Event& first) {
  quiet_since_ = now_;
  const Packet packet = take_arrival(first);
  if (events_.nothing_at(now_)) return arrive(packet);
  batch_.clear();
  for (Packet next = packet;; next = take_arrival(events_.take())) {
    const auto number = static_cast<std::uint32_t>(batch_.size());
    const std::uint32_t at = flows_[slot_of(next)].path[hop_of(next)];
    Port& port = ports_[at];
    batch_.push_back({next, at, port.claimed_at == now_ ? port.claim : kAlone});
    port.claimed_at = now_;
    port.claim = number;
    if (events_.nothing_at(now_)) break;
  }
  for (std::uint32_t number = 0; number < batch_.size(); ++number) {
    Port& port = ports_[batch_[number].port];
    if (port.claim == number && batch_[number].before == kAlone)
      arrive(batch_[number].packet);
    else if (port.claim != kAlone)
      arrive_ranked(std::exchange(port.claim, kAlone));
  }
}

/// Several packets at one port, `last` and those before it.
template <Protocol P>
void PacketEngine<P>::arrive_ranked(std::uint32_t last) {
  ranked_.clear();
  for (std::uint32_t number = last; number != kAlone; number = batch_[number].before)
    ranked_.emplace_back(flows_[slot_of(batch_[number].packet)].order, batch_[number].packet);
  std::sort(ranked_.begin(), ranked_.end());
  for (const auto& [order, packet] : ranked_) arrive(packet);
}

template <Protocol P>
void PacketEngine<P>::arrive(Packet packet) {
  Flow& flow = flows_[slot_of(packet)];
  const std::uint32_t index = flow.path[hop_of(packet)];
  Port& port = ports_[index];
  if (number_of(packet) == 1 && hop_of(packet) == 0) --port.senders;
  if (port.busy_until > now_ || port.paused) return wait(port, index, flow, packet);
  if (!port.queue.empty()) {
    serve(port, index, now_);
    if (port.busy_until > now_) return wait(port, index, flow, packet);
  }
  transmit(port, index, flow, packet, now_);
}

template <Protocol P>
void PacketEngine<P>::wait(Port& port, std::uint32_t index, const Flow& flow, Packet packet) {
  const std::int64_t size = size_of(flow, packet);
  const std::uint32_t hop = hop_of(packet);
  if (hop > 0) {
    const std::uint32_t from = flow.path[hop - 1];
    Port& ingress = ports_[from];
    ingress.ingress_bytes += size;
    if (ingress.ingress_bytes > transport_.pfc_xoff_bytes) [[unlikely]]
      press(from, index);
    if (marks_ && flow.managed && !port.spec.leaves_gpu && mark(port)) packet |= kMark;
  }
  port.queue.push(packet);
  port.waiting_bytes += size;
  if (port.service_at == kNever && !port.paused) expect_service(port, index);
}

/// What came over a link and waits behind it may have become too much; the last of it is on its way into `to`. If so,
/// it is watched packet by packet until it is little enough.
template <Protocol P>
[[gnu::noinline]] void PacketEngine<P>::press(std::uint32_t from, std::uint32_t to) {
  Port& ingress = ports_[from];
  for (const std::uint32_t onward : ingress.onward)
    if (onward != to && !ports_[onward].paused) serve(ports_[onward], onward, now_);
  MANYWORLDS_CHECK(ingress.ingress_bytes <= transport_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                   ingress.ingress_bytes, transport_.buffer_bytes);
  if (ingress.ingress_bytes <= transport_.pfc_xoff_bytes || ingress.pause_wanted) return;
  ingress.pause_wanted = true;
  ++counters_.pauses;
  pending_control_ += 2;
  push(now_ + ingress.control_ps, Kind::pause, from);
  for (const std::uint32_t onward : ingress.onward) {
    ++ports_[onward].pressed;
    if (ports_[onward].service_at != kNever) expect_service(ports_[onward], onward);
  }
}

template <Protocol P>
bool PacketEngine<P>::mark(Port& port) {
  const bool marked = marks_next(port, port.waiting_bytes, transport_.ecn_pmax_ppm);
  counters_.ecn_marks += marked;
  return marked;
}

/// Sends what waits at a link that is not paused and could begin at `until` or before.
template <Protocol P>
[[gnu::noinline]] void PacketEngine<P>::serve(Port& port, std::uint32_t index, Time until) {
  while (port.busy_until <= until && !port.queue.empty()) {
    const Packet packet = port.queue.front();
    port.queue.pop();
    Flow& flow = flows_[slot_of(packet)];
    const std::int64_t size = size_of(flow, packet);
    const Time begin = port.busy_until;
    port.waiting_bytes -= size;
    if (const std::uint32_t hop = hop_of(packet); hop > 0) {
      const std::uint32_t from = flow.path[hop - 1];
      Port& ingress = ports_[from];
      ingress.ingress_bytes -= size;
      if (ingress.pause_wanted && ingress.ingress_bytes <= transport_.pfc_xon_bytes) {
        ingress.pause_wanted = false;
        for (const std::uint32_t onward : ingress.onward) --ports_[onward].pressed;
        push(begin + ingress.control_ps, Kind::resume, from);
      }
    }
    transmit(port, index, flow, packet, begin);
    if (port.queue.empty()) port.mark_error = 0;  // an idle port remembers nothing
  }
}

template <Protocol P>
void PacketEngine<P>::service(std::uint32_t index) {
  Port& port = ports_[index];
  port.service_at = kNever;
  serve(port, index, now_);
  if (!port.queue.empty()) expect_service(port, index);
}

template <Protocol P>
void PacketEngine<P>::paused(std::uint32_t index) {
  quiet_since_ = now_;
  Port& port = ports_[index];
  serve(port, index, now_ - 1);  // at one instant pauses come before services
  port.paused = true;
  port.service_at = kNever;
}

template <Protocol P>
void PacketEngine<P>::resume(std::uint32_t index) {
  quiet_since_ = now_;
  Port& port = ports_[index];
  port.paused = false;
  pending_control_ -= 2;  // the pause and this resume
  if (port.queue.empty()) return;
  port.busy_until = std::max(now_, port.busy_until);
  expect_service(port, index);
}

template <Protocol P>
[[gnu::always_inline]] inline void PacketEngine<P>::transmit(Port& port, std::uint32_t index, Flow& flow, Packet packet,
                                                             Time begin) {
  const std::int64_t size = size_of(flow, packet);
  const std::uint32_t hop = hop_of(packet);
  port.busy_until =
      begin + (size == packet_bytes_ ? port.full_packet_ps : serialization_ps(size, port.spec.bits_per_second));
  ++counters_.link_hops;
  if constexpr (P::kWants.telemetry) {
    port.sent_bytes += size;
    if (flow.managed && hop > 0 && flow.left > 0)
      flow.telemetry.row(flow.left + flow.unacked - number_of(packet))[hop - 1] = {begin, port.waiting_bytes,
                                                                                   port.sent_bytes};
  }
  if (hop == 0) {
    flow.departs_at = port.busy_until;
    push(port.busy_until, Kind::departed, name_of(slot_of(packet)));
    if (P::kWants.acks && flow.managed) flow.departures.push(begin);
  }
  const Time arrives = port.busy_until + port.spec.latency_ps;
  if (hop + 1 == flow.hops) return leave_network(flow, packet, arrives);
  const Travelling onward{arrives, packet + kOneHop};
  if (port.wire.empty()) expect(index, onward);
  port.wire.push(onward);
}

/// A packet is on its last link. Its delivery is an event only if it ends the flow; a mark it carries and its ack are
/// on their way at once.
template <Protocol P>
[[gnu::noinline]] void PacketEngine<P>::leave_network(Flow& flow, Packet packet, Time delivered) {
  const std::uint32_t slot = slot_of(packet);
  const bool marked = (packet & kMark) != 0;
  if (number_of(packet) == 1) {
    flow.delivered_at = delivered;
    push(delivered, Kind::deliver, name_of(slot));
  }
  if (P::kWants.notices && marked && flow.left > 0 && delivered - flow.last_notice >= kCnpInterval) {
    flow.last_notice = delivered;
    push(delivered + flow.ack_ps, Kind::notice, name_of(slot));
  }
  if (!acks_matter(flow)) return;
  Time rtt = 0;
  if (P::kWants.acks && flow.managed) {
    rtt = delivered + flow.ack_ps - flow.departures.front();
    flow.departures.pop();
  }
  flow.acks.push({delivered + flow.ack_ps, rtt, marked});
  if (flow.blocked && flow.acks.size() == 1) push(flow.acks.front().at, Kind::ack, name_of(slot));
}

template <Protocol P>
void PacketEngine<P>::departed(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.at_nic = false;
  flow.departs_at = kNever;
  if (flow.left == 0) return;
  if (flow.managed) {
    flow.sender.sent(parameters_, packet_bytes_, now_);
    arm(flow, slot);
  }
  const Port& nic = ports_[flow.path[0]];
  offer(slot, nic.senders == 1 && !nic.forwards);
}

template <Protocol P>
void PacketEngine<P>::take_acks(Flow& flow) {
  for (; !flow.acks.empty() && flow.acks.front().at <= now_; flow.acks.pop()) {
    --flow.unacked;
    if (!P::kWants.acks || !flow.managed) continue;
    const Ack& ack = flow.acks.front();
    Feedback feedback{ack.at, ack.rtt, packet_bytes_, flow.unacked, ack.marked, nullptr};
    if constexpr (P::kWants.telemetry) {
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        const TelemetryRecord& link = flow.telemetry.row(0)[hop - 1];
        told_[hop - 1] = {link.at, link.waiting, link.sent_bytes, ports_[flow.path[hop]].spec.bits_per_second};
      }
      feedback.telemetry = told_.data();
      flow.sender.acknowledged(parameters_, feedback);
      flow.telemetry.pop();
    } else {
      flow.sender.acknowledged(parameters_, feedback);
    }
  }
}

template <Protocol P>
bool PacketEngine<P>::window_open(Flow& flow, std::uint32_t slot) {
  take_acks(flow);
  if (fits(flow)) return true;
  flow.blocked = true;
  if (!flow.acks.empty()) push(flow.acks.front().at, Kind::ack, name_of(slot));
  return false;
}

/// `alone`: nothing else can come to this NIC at this instant, and all that ends in it and touches the NIC has.
template <Protocol P>
void PacketEngine<P>::offer(std::uint32_t slot, bool alone) {
  Flow& flow = flows_[slot];
  if (flow.left == 0 || flow.at_nic || flow.blocked) return;
  if (flow.counts_acks && !window_open(flow, slot)) return;
  if (flow.next_packet_at > now_) return push(flow.next_packet_at, Kind::timer, name_of(slot));
  const Packet packet = make_packet(slot, flow.left);
  if (flow.managed)
    if (const Time gap = flow.sender.gap(size_of(flow, packet)); gap > 0) flow.next_packet_at = now_ + gap;
  flow.at_nic = true;
  --flow.left;
  if (slot == watched_ && flow.left == watched_left_) {
    watched_ = kNoFlow;
    limit_ = inline_before_ = now_;
  }
  if (flow.counts_acks) ++flow.unacked;
  if (P::kWants.telemetry && flow.managed) flow.telemetry.push();
  // Its arrival is the next thing to happen unless something else is due at this instant.
  if (now_ < inline_before_ && (alone || events_.nothing_at(now_))) return arrive(packet);
  flow.offered = true;
  push(now_, Kind::arrive, slot);
}

template <Protocol P>
void PacketEngine<P>::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (!flow.managed || flow.left == 0) return;
  if (flow.timer_at <= now_) flow.timer_at = kNever;
  if (flow.sender.deadline() <= now_) flow.sender.expire(parameters_, now_);
  arm(flow, slot);
  if (flow.next_packet_at <= now_) offer(slot);
}

/// Timers are never cancelled: one that finds no deadline of its flow at its time does nothing.
template <Protocol P>
void PacketEngine<P>::arm(Flow& flow, std::uint32_t slot) {
  const Time deadline = flow.sender.deadline();
  if (deadline >= flow.timer_at) return;
  flow.timer_at = deadline;
  push(deadline, Kind::timer, name_of(slot));
}

template <Protocol P>
void PacketEngine<P>::catch_up() {
  for (std::uint32_t link = 0; link < ports_.size(); ++link)
    if (!ports_[link].paused) serve(ports_[link], link, now_);
}

template <Protocol P>
std::vector<SavedPart> PacketEngine<P>::save() {
  catch_up();
  return Saver<P>(*this).run();
}

template <Protocol P>
Words PacketEngine<P>::recurring() {
  catch_up();
  Words all;
  for (const SavedPart& part : Saver<P>(*this, LeftIs::apart).run())
    all.insert(all.end(), part.words.begin(), part.words.end());
  return all;
}

template <Protocol P>
void PacketEngine<P>::pass_over(std::span<const std::uint32_t> packets) {
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot)
    if (flows_[slot].live) flows_[slot].left -= packets[slot];
  const auto renumber = [&](Packet& packet) { packet -= make_packet(0, packets[slot_of(packet)]); };
  for (Port& port : ports_) {
    for (std::size_t i = 0; i < port.queue.size(); ++i) renumber(port.queue[i]);
    for (std::size_t i = 0; i < port.wire.size(); ++i) renumber(port.wire[i].packet);
  }
}

template <Protocol P>
void PacketEngine<P>::load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
                           std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) {
  Loader<P>(*this, words, orders, flow_slots, link_slots).run();
}

}  // namespace manyworlds::core::network

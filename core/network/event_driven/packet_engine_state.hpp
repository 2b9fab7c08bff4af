// Packet engine: export and import of its state (core/network/state/network_state.hpp), and periodic states.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

/// Performs all lazy transmissions that begin at now() or before.
template <SenderProtocol P>
void PacketEngine<P>::catch_up() {
  for (std::uint32_t link = 0; link < ports_.size(); ++link)
    if (!ports_[link].paused) serve(ports_[link], link, now_);
}

template <SenderProtocol P>
std::vector<ComponentState> PacketEngine<P>::save() {
  return save(Remaining::included);
}

template <SenderProtocol P>
StateWords PacketEngine<P>::periodic_state() {
  StateWords all;
  for (const ComponentState& part : save(Remaining::excluded))
    all.insert(all.end(), part.words.begin(), part.words.end());
  return all;
}

template <SenderProtocol P>
std::vector<ComponentState> PacketEngine<P>::save(Remaining remaining) {
  catch_up();
  std::vector<std::uint32_t> live;
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot)
    if (flows_[slot].live) live.push_back(slot);
  std::sort(live.begin(), live.end(),
            [&](std::uint32_t a, std::uint32_t b) { return flows_[a].tie_order < flows_[b].tie_order; });
  ComponentNumbering numbering(ports_.size(), flows_.size());
  for (const std::uint32_t slot : live) numbering.connect(flows_[slot].links());
  for (const std::uint32_t slot : live) numbering.add_flow(slot, flows_[slot].links());
  for (const std::uint32_t link : paused_links()) numbering.add_link(link);
  std::vector<std::vector<ControlFrame>> frames = control_frames(numbering);
  StateWriter writer(numbering, now_);
  if (remaining == Remaining::excluded) {
    std::vector<std::uint32_t> left;
    for (const Flow& flow : flows_) left.push_back(flow.remaining);
    writer.exclude_remaining(std::move(left));
  }
  std::vector<ComponentState>& components = numbering.components();
  for (std::size_t i = 0; i < components.size(); ++i) {
    ComponentState& part = components[i];
    writer.write_to(part.words);
    writer.scalar(part.links.size()), writer.scalar(part.flows.size());
    for (const std::uint32_t link : part.links) {
      visit_link(ports_[link], writer);
      visit_packets(ports_[link], writer);
    }
    part.least_ps = part.flows.empty() ? 0 : kNever;
    for (const std::uint32_t slot : part.flows) {
      write_flow(flows_[slot], writer);
      part.least_ps = std::min(part.least_ps, least_ps(flows_[slot]));
    }
    writer.list(frames[i], [&](ControlFrame& frame) { visit_frame(frame, writer); });
  }
  return std::move(components);
}

/// Returns the links that are paused or about to be, ascending. A pause can outlast the flows that caused it.
template <SenderProtocol P>
std::vector<std::uint32_t> PacketEngine<P>::paused_links() const {
  std::vector<std::uint32_t> paused;
  if (pending_pfc_ > 0)
    events_.for_each([&](const Event& event) {
      if (const EventKind kind = kind_of(event); kind == EventKind::pause || kind == EventKind::resume)
        paused.push_back(static_cast<std::uint32_t>(event.subject()));
    });
  for (std::uint32_t link = 0; link < ports_.size(); ++link)
    if (ports_[link].paused || ports_[link].pause_wanted) paused.push_back(link);
  std::sort(paused.begin(), paused.end());
  return paused;
}

/// Returns the control frames in flight of each component, in canonical order. They are the only events that do not
/// follow from the state of links and flows.
template <SenderProtocol P>
std::vector<std::vector<ControlFrame>> PacketEngine<P>::control_frames(ComponentNumbering& numbering) const {
  std::vector<std::vector<ControlFrame>> frames(numbering.components().size());
  if (pending_pfc_ == 0 && !P::kNeeds.cnps) return frames;
  events_.for_each([&](const Event& event) {
    const EventKind kind = kind_of(event);
    const auto subject = static_cast<std::uint32_t>(event.subject());
    if (kind == EventKind::cnp) {
      const Flow& flow = flows_[subject];
      if (flow.live && flow.generation == event.subject() >> 32 && flow.remaining > 0)
        frames[numbering.component_of(flow.path[0])].push_back({event.at, FrameKind::cnp, subject});
    } else if (kind == EventKind::pause || kind == EventKind::resume) {
      const FrameKind frame = kind == EventKind::pause ? FrameKind::pause : FrameKind::resume;
      frames[numbering.component_of(subject)].push_back({event.at, frame, subject});
    }
  });
  const auto order = [&](const ControlFrame& frame) {
    return std::tuple(frame.at, frame.kind,
                      frame.kind == FrameKind::cnp ? numbering.number_of_flow(frame.subject)
                                                   : numbering.number_of_link(frame.subject));
  };
  for (auto& part : frames)
    std::sort(part.begin(), part.end(),
              [&](const ControlFrame& a, const ControlFrame& b) { return order(a) < order(b); });
  return frames;
}

/// Returns the bytes that each link of the path has sent, for telemetry.
template <SenderProtocol P>
SentBytes PacketEngine<P>::sent_bytes(const Flow& flow) const {
  SentBytes sent{};
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) sent[hop] = ports_[flow.path[hop]].sent_bytes;
  return sent;
}

template <SenderProtocol P>
void PacketEngine<P>::write_flow(Flow& flow, StateWriter& writer) {
  if (flow.counts_acks) process_acks(flow);
  route_.assign(flow.links().begin(), flow.links().end());
  visit_path(route_, writer);
  visit_progress(flow, writer);
  if (P::kNeeds.telemetry) writer.set_sent_bytes(sent_bytes(flow));
  if (flow.uses_cc && flow.remaining > 0) visit_sender(flow, writer);
  if (acks_matter(flow))
    visit_acks(flow, flow.uses_cc, writer);
  else
    writer.scalar(0), writer.scalar(0);
}

/// Returns how long a flow takes from now on at least. Packets that it has not offered to its NIC cross each of its
/// links one after the other, and the last one crosses the links after that; an offered one has its last link before
/// it.
template <SenderProtocol P>
Time PacketEngine<P>::least_ps(const Flow& flow) const {
  if (flow.delivered_at != kNever) return flow.delivered_at - now_;
  Time least = 0, last_packet = 0;  // of the last packet: from the beginning of a hop on
  for (std::uint32_t hop = flow.hops; hop-- > 0;) {
    const Port& port = ports_[flow.path[hop]];
    last_packet += serialization_ps(flow.last_bytes, port.spec.bits_per_second) + port.spec.latency_ps;
    if (flow.remaining == 0) return last_packet;
    least = std::max(least, (flow.remaining - 1) * port.full_packet_ps + last_packet);
  }
  return least;
}

template <SenderProtocol P>
void PacketEngine<P>::load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> tie_orders,
                           std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) {
  flow_slots.clear(), link_slots.clear();
  StateReader reader(words, flow_slots, link_slots, now_);
  const std::uint64_t links = reader.next(), flows = reader.next();
  MANYWORLDS_CHECK(flows == tie_orders.size(), "{} flows, {} orders", flows, tie_orders.size());
  for (std::uint64_t i = 0; i < flows; ++i) flow_slots.push_back(acquire_slot());
  for (std::uint64_t i = 0; i < links; ++i) link_slots.push_back(read_link(reader));
  for (std::uint64_t i = 0; i < flows; ++i) read_flow(flow_slots[i], tie_orders[i], reader);
  for (std::uint64_t left = reader.next(); left > 0; --left) read_frame(reader);
  for (const std::uint32_t link : link_slots) schedule_link(link);
}

template <SenderProtocol P>
std::uint32_t PacketEngine<P>::read_link(StateReader& reader) {
  LinkFields fields;
  visit_link(fields, reader);
  const std::uint32_t slot = add_link(fields.spec);
  Port& port = ports_[slot];
  static_cast<LinkFields&>(port) = fields;
  pending_pfc_ += port.pause_wanted ? 2 : 0;
  visit_packets(port, reader);
  return slot;
}

template <SenderProtocol P>
void PacketEngine<P>::read_flow(std::uint32_t slot, std::uint64_t tie_order, StateReader& reader) {
  route_.clear();
  visit_path(route_, reader);
  Flow& flow = flows_[slot];
  set_up(flow, route_, tie_order);
  visit_progress(flow, reader);
  if (flow.remaining > 0 || flow.offered) ++ports_[route_[0]].senders;
  start_sender(flow);
  if (P::kNeeds.telemetry) reader.set_sent_bytes(sent_bytes(flow));
  if (flow.uses_cc && flow.remaining > 0) visit_sender(flow, reader);
  visit_acks(flow, flow.uses_cc, reader);
  schedule_flow(slot);
}

template <SenderProtocol P>
void PacketEngine<P>::read_frame(StateReader& reader) {
  ControlFrame frame;
  visit_frame(frame, reader);
  if (frame.kind == FrameKind::cnp) return push(frame.at, EventKind::cnp, flow_handle(frame.subject));
  push(frame.at, frame.kind == FrameKind::pause ? EventKind::pause : EventKind::resume, frame.subject);
  pending_pfc_ += frame.kind == FrameKind::resume ? 2 : 0;
}

/// Schedules the events of a flow, which follow from its state.
template <SenderProtocol P>
void PacketEngine<P>::schedule_flow(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.offered) push(now_, EventKind::arrive, slot);
  if (flow.departs_at != kNever) push(flow.departs_at, EventKind::departed, flow_handle(slot));
  if (flow.delivered_at != kNever) push(flow.delivered_at, EventKind::deliver, flow_handle(slot));
  if (flow.remaining == 0) return;
  if (flow.uses_cc) arm_timer(flow, slot);
  if (flow.at_nic) return;
  // A flow that has packets left and none at the NIC waits for its window or for pacing.
  flow.blocked = flow.counts_acks && !fits_window(flow);
  if (!flow.blocked)
    push(flow.next_packet_at, EventKind::timer, flow_handle(slot));
  else if (!flow.acks.empty())
    push(flow.acks.front().at, EventKind::ack, flow_handle(slot));
}

/// Restores the byte counts of a link's queue and of the ingress links, and its events, from the packets on it.
template <SenderProtocol P>
void PacketEngine<P>::schedule_link(std::uint32_t link) {
  Port& port = ports_[link];
  for (std::size_t i = 0; i < port.queue.size(); ++i) {
    const Packet packet = port.queue[i];
    const Flow& flow = flows_[flow_of(packet)];
    const std::int64_t size = size_of(flow, packet);
    port.waiting_bytes += size;
    if (const std::uint32_t hop = hop_of(packet); hop > 0) ports_[flow.path[hop - 1]].ingress_bytes += size;
  }
  if (!port.wire.empty()) schedule_arrival(link, port.wire.front());
  if (!port.queue.empty() && !port.paused) schedule_service(port, link);
}

template <SenderProtocol P>
void PacketEngine<P>::skip(std::span<const std::uint32_t> packets) {
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot)
    if (flows_[slot].live) flows_[slot].remaining -= packets[slot];
  const auto renumber = [&](Packet& packet) { packet -= make_packet(0, packets[flow_of(packet)]); };
  for (Port& port : ports_) {
    for (std::size_t i = 0; i < port.queue.size(); ++i) renumber(port.queue[i]);
    for (std::size_t i = 0; i < port.wire.size(); ++i) renumber(port.wire[i].packet);
  }
}

}  // namespace manyworlds::core::network

// EQDS endpoints: set-up, sender and receiver.
#include "core/network/per_packet/eqds.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::core::network::per_packet {
namespace {

constexpr std::int64_t kPullRatePercent = 99;  // rate of pulls, percent of the line rate
constexpr Time kMaxTimeoutFactor = 64;         // a timeout grows to at most this multiple of the minimum timeout
constexpr std::uint32_t kNoPacer = UINT32_MAX;

}  // namespace

Eqds::Eqds(const NetworkOptions& options, const EqdsParameters& parameters,
           std::shared_ptr<ForwardingTables> forwarding)
    : parameters_(parameters),
      forwarding_(std::move(forwarding)),
      network_(options, forwarding_),
      pacer_of_(2 * forwarding_->graph().vertices.size(), kNoPacer) {
  MANYWORLDS_CHECK(options.ports == PortKind::trimming && options.steering == Steering::hashed, "EQDS on other ports");
}

std::uint32_t Eqds::add_route(std::uint32_t source, std::uint32_t destination) {
  Route route;
  route.source = source;
  route.destination = destination;
  route.there = forwarding_->first_hop_links(source, destination);
  route.back = forwarding_->first_hop_links(destination, source);
  for (const std::uint32_t link : route.there) network_.add_source_link(link);
  route.pacer = pacer_of(destination, network_.link(route.back.front()).kind);
  routes_.push_back(std::move(route));
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

std::uint32_t Eqds::add_route(const network::Route& there, const network::Route&) {
  return add_route(network_.link(there.front()).from, network_.link(there.back()).to);
}

std::uint32_t Eqds::pacer_of(std::uint32_t destination, LinkKind kind) {
  std::uint32_t& number = pacer_of_[2 * std::size_t{destination} + (kind == LinkKind::network)];
  if (number != kNoPacer) return number;
  number = static_cast<std::uint32_t>(pacers_.size());
  pacers_.emplace_back();
  set_interval(number, destination, kind);
  return number;
}

/// Sets the interval of a receiver's pulls by the rate of its links of one kind; without such links it stays as it is.
void Eqds::set_interval(std::uint32_t pacer, std::uint32_t destination, LinkKind kind) {
  std::int64_t bits_per_second = 0;
  for (const Link& link : forwarding_->graph().links)
    if (link.to == destination && link.kind == kind) bits_per_second += link.bits_per_second;
  if (bits_per_second == 0) return;
  pacers_[pacer].interval =
      serialization_ps(network_.options().full_packet_bytes * 100, bits_per_second * kPullRatePercent);
}

std::uint32_t Eqds::start(std::uint32_t route, std::int64_t bytes, std::uint64_t tie_order, std::uint64_t entropy) {
  const std::int64_t payload = parameters_.payload_bytes;
  const std::int64_t packets = std::max<std::int64_t>(1, (bytes + payload - 1) / payload);
  MANYWORLDS_CHECK(packets < (1ll << 31) && tie_order <= kOrderMask, "{} packets, order {}", packets, tie_order);
  auto slot = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
    flows_[slot] = Flow{};
  }
  network_.set_tie_order(slot, tie_order);
  Flow& flow = flows_[slot];
  flow.tie_order = tie_order;
  flow.hash = splitmix64(splitmix64(parameters_.seed) ^ entropy);
  flow.route = route;
  flow.packets = static_cast<std::uint32_t>(packets);
  flow.last_bytes =
      static_cast<std::uint32_t>(bytes - (packets - 1) * payload + network_.options().full_packet_bytes - payload);
  flow.speculative_credit = parameters_.window_packets;
  flow.path_mask = static_cast<std::uint16_t>(parameters_.paths - 1);
  flow.last_heard_at = network_.now();
  flow.timeout = parameters_.min_timeout;
  flow.timer_pending = true;
  network_.schedule(flow.last_heard_at + flow.timeout, EventKind::timer, tie_order, slot);
  ++live_;
  send(slot);
  return slot;
}

void Eqds::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  network_.run(*this, limit);
  completed_ = nullptr;
  if (!drained()) return;
  network_.discard_pending();
  flows_.clear();
  free_.clear();
}

std::size_t Eqds::bytes() const {
  return network_.bytes() + flows_.capacity() * sizeof(Flow) + forwarding_->bytes();
}

// ---- Sender ----

/// Offers the next packet to the NIC if the credit allows. A transfer has at most one packet at the NIC, so that the
/// transfers of a GPU share it packet by packet.
void Eqds::send(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.at_nic || flow.credit + flow.speculative_credit == 0) return;
  std::uint32_t number = flow.next;
  if (flow.trimmed.count() > 0) {
    flow.trimmed.clear(number = flow.trimmed.lowest());
    ++network_.counters().retransmissions;
  } else if (flow.next == flow.packets) {
    return;
  } else {
    ++flow.next;
  }
  --(flow.credit > 0 ? flow.credit : flow.speculative_credit);
  flow.asked = std::max(flow.asked, target_of(flow));
  const std::uint32_t index = network_.allocate(slot);
  Packet& packet = network_.packets()[index];
  packet.number = number;
  packet.value = flow.asked;
  packet.kind = PacketKind::data;
  packet.bytes =
      number + 1 == flow.packets ? flow.last_bytes : static_cast<std::uint32_t>(network_.options().full_packet_bytes);
  packet.entropy = next_path(flow);
  packet.path = static_cast<std::uint32_t>(splitmix64(flow.hash ^ packet.entropy));
  packet.hop = 0;
  const Route& route = routes_[flow.route];
  packet.destination = route.destination;
  packet.link = route.there[packet.path % route.there.size()];
  flow.at_nic = true;
  network_.offer(index);
}

/// Returns how many pulls a sender needs in total, for its packets that are left up to a window.
std::uint32_t Eqds::target_of(const Flow& flow) const {
  const std::int64_t backlog = flow.packets - flow.next + flow.trimmed.count();
  const std::int64_t target =
      std::min<std::int64_t>(backlog, parameters_.window_packets) + flow.pulled - flow.credit - flow.speculative_credit;
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, target));
}

/// Sends a request, for so many pulls in total; 0: for the retransmission of a packet.
void Eqds::ask(std::uint32_t slot, std::uint32_t target) {
  Flow& flow = flows_[slot];
  const std::uint32_t index = network_.allocate(slot);
  Packet& packet = network_.packets()[index];
  const Route& route = routes_[flow.route];
  packet.number = 0;
  packet.value = target;
  packet.kind = PacketKind::request;
  packet.bytes = static_cast<std::uint32_t>(network_.options().control_bytes);
  packet.path = static_cast<std::uint32_t>(splitmix64(flow.hash ^ static_cast<std::uint64_t>(network_.now())));
  packet.hop = 0;
  packet.destination = route.destination;
  packet.link = route.there[packet.path % route.there.size()];
  network_.offer(index);
}

/// Returns the path of the next packet. Each round visits all paths once, in a random order of its own; a path that
/// trimmed a packet is skipped once.
std::uint16_t Eqds::next_path(Flow& flow) {
  while (true) {
    const auto permutation = static_cast<std::uint16_t>(splitmix64(flow.hash + flow.round));
    const auto path = static_cast<std::uint16_t>((flow.path_position ^ permutation) & flow.path_mask);
    if (flow.path_position == flow.path_mask)
      flow.path_position = 0, ++flow.round;
    else
      ++flow.path_position;
    std::uint64_t& word = flow.penalised[path / 64];
    if ((word >> path % 64 & 1) == 0) return path;
    word &= ~(1ull << path % 64);
  }
}

void Eqds::departed(std::uint32_t slot) {
  flows_[slot].at_nic = false;
  send(slot);
}

/// Processes an acknowledgement, NACK or pull at the sender.
void Eqds::process_feedback(Flow& flow, std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  network_.release(index);
  flow.last_heard_at = network_.now();
  flow.timeout = parameters_.min_timeout;
  if (packet.number > flow.pulled) {
    flow.credit += packet.number - flow.pulled;
    flow.pulled = packet.number;
  }
  const bool stops_speculating = packet.kind != PacketKind::pull && flow.speculative_credit > 0;
  if (stops_speculating) flow.speculative_credit = 0;
  if (packet.kind == PacketKind::nack) {
    if (packet.value >= flow.trimmed.base()) flow.trimmed.set(packet.value);
    flow.penalised[packet.entropy / 64] |= 1ull << packet.entropy % 64;
  } else if (packet.value > flow.trimmed.base()) {
    flow.trimmed.move_to(packet.value);
    if (packet.value == flow.packets && !flow.all_acknowledged) {
      flow.all_acknowledged = true;
      if (records_acknowledgements_) acknowledgements_.emplace_back(flow.tie_order, network_.now());
    }
  }
  if (flow.all_acknowledged) return free_if_finished(packet.flow);
  if (const std::uint32_t target = target_of(flow); stops_speculating && target > flow.asked)
    ask(packet.flow, flow.asked = target);
  send(packet.flow);
}

void Eqds::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.timer_pending = false;
  if (flow.all_acknowledged) return free_if_finished(slot);
  const Time now = network_.now();
  if (flow.last_heard_at + flow.timeout <= now) {  // timeout: retransmit the oldest packet and request credit
    flow.last_heard_at = now;
    flow.timeout = std::min(2 * flow.timeout, kMaxTimeoutFactor * parameters_.min_timeout);
    if (network_.counters().lost > 0) miss_all(slot);
    if (flow.trimmed.base() < flow.next) flow.trimmed.set(flow.trimmed.base());
    ask(slot, 0);
    send(slot);
  }
  flow.timer_pending = true;
  network_.schedule(flow.last_heard_at + flow.timeout, EventKind::timer, flow.tie_order, slot);
}

/// Marks all packets that have been sent and have not arrived as to be sent again, and asks for their pulls.
void Eqds::miss_all(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  for (std::uint32_t number = std::max(flow.trimmed.base(), flow.received.base()); number < flow.next; ++number)
    if (!flow.received.test(number)) flow.trimmed.set(number);
  if (const std::uint32_t target = target_of(flow); target > flow.asked) ask(slot, flow.asked = target);
}

// ---- Links that fail ----

void Eqds::lost(std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  if (packet.kind == PacketKind::data && packet.hop == 0) flows_[packet.flow].at_nic = false;
  network_.release(index);
  free_if_finished(packet.flow);
}

void Eqds::reroute(std::shared_ptr<ForwardingTables> forwarding,
                   const std::vector<std::pair<network::Route, network::Route>>& routes, bool /*avoid_all*/) {
  MANYWORLDS_CHECK(routes.size() == routes_.size(), "{} new routes for {}", routes.size(), routes_.size());
  forwarding_ = std::move(forwarding);
  network_.forward_by(forwarding_);
  routes_.clear();
  for (const auto& [there, back] : routes) add_route(there, back);
  for (std::uint32_t i = 0; i < pacer_of_.size(); ++i)
    if (pacer_of_[i] != kNoPacer)
      set_interval(pacer_of_[i], i / 2, i % 2 == 0 ? LinkKind::scale_up : LinkKind::network);
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot)
    if (flows_[slot].next < flows_[slot].packets || flows_[slot].trimmed.count() > 0) send(slot);
}

// ---- Receiver ----

void Eqds::deliver(std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  const std::uint32_t slot = packet.flow;
  Flow& flow = flows_[slot];
  switch (packet.kind) {
    case PacketKind::data:
      request_pulls(flow, slot, packet.value);
      receive(flow, index);
      break;
    case PacketKind::header:
      if (!flow.complete) request_pulls(flow, slot, packet.value), request_retransmission(flow, slot);
      if (flow.received.base() > packet.number || flow.received.test(packet.number))
        reply(flow, index, PacketKind::ack, flow.received.base());
      else
        reply(flow, index, PacketKind::nack, packet.number);
      break;
    case PacketKind::request:
      if (packet.value > 0) {
        request_pulls(flow, slot, packet.value);
        network_.release(index);
        if (flow.all_acknowledged) free_if_finished(slot);
        break;
      }
      if (!flow.complete) request_retransmission(flow, slot);
      reply(flow, index, PacketKind::ack, flow.received.base());
      break;
    default:
      process_feedback(flow, index);
      break;
  }
}

void Eqds::receive(Flow& flow, std::uint32_t index) {
  const std::uint32_t number = network_.packets()[index].number;
  const std::uint32_t missing = flow.received.base();
  const bool first = missing == 0 && flow.received.count() == 0;
  const bool is_new = number >= missing && flow.received.set(number);
  if (is_new && number == missing) flow.received.skip_contiguous();
  if (is_new && flow.received.base() == flow.packets) {
    flow.complete = true;
    --live_;
    completed_->push_back(network_.packets()[index].flow);
  }
  if (++flow.unacknowledged < parameters_.packets_per_ack && is_new && !first && !flow.complete)
    return network_.release(index);
  flow.unacknowledged = 0;
  reply(flow, index, PacketKind::ack, flow.received.base());
}

/// Sends a reply to the sender, in the record of the packet that it answers.
void Eqds::reply(const Flow& flow, std::uint32_t index, PacketKind kind, std::uint32_t value) {
  Packet& packet = network_.packets()[index];
  const Route& route = routes_[flow.route];
  packet.kind = kind;
  packet.number = flow.pulls;
  packet.value = value;
  packet.bytes = static_cast<std::uint32_t>(network_.options().control_bytes);
  packet.hop = 0;
  packet.destination = route.source;
  packet.link = route.back[packet.path % route.back.size()];
  network_.offer(index);
}

/// Registers the request of the sender for pulls up to number `target`.
void Eqds::request_pulls(Flow& flow, std::uint32_t slot, std::uint32_t target) {
  if (target <= flow.target || flow.complete) return;
  const bool is_listed = flow.target > flow.pulls || flow.retransmission_pulls > 0 || flow.active;
  flow.target = target;
  if (is_listed) return;
  flow.active = true;
  enlist(flow, pacers_[routes_[flow.route].pacer].active, slot);
}

/// Registers a trimmed packet: the sender is pulled with priority so that it retransmits.
void Eqds::request_retransmission(Flow& flow, std::uint32_t slot) {
  ++flow.retransmission_pulls;
  if (flow.retransmitting) return;
  flow.retransmitting = true;
  enlist(flow, pacers_[routes_[flow.route].pacer].retransmitting, slot);
}

void Eqds::enlist(Flow& flow, Fifo<std::uint32_t>& list, std::uint32_t slot) {
  list.push(slot);
  ++flow.entries;
  const std::uint32_t number = routes_[flow.route].pacer;
  if (pacers_[number].running) return;
  pacers_[number].running = true;
  network_.schedule_pace(network_.now(), number, number);
}

/// Sends one pull: first to senders with trimmed packets, then to senders that requested more, then to idle senders in
/// advance of their requests.
void Eqds::pace(std::uint32_t number) {
  Pacer& pacer = pacers_[number];
  while (!pacer.retransmitting.empty() || !pacer.active.empty() || !pacer.idle.empty()) {
    auto& list = !pacer.retransmitting.empty() ? pacer.retransmitting
                 : !pacer.active.empty()       ? pacer.active
                                               : pacer.idle;
    const std::uint32_t slot = list.front();
    list.pop();
    Flow& flow = flows_[slot];
    --flow.entries;
    if (&list == &pacer.retransmitting) flow.retransmitting = false;
    if (&list == &pacer.active) flow.active = false;
    if (flow.complete) {
      free_if_finished(slot);
      continue;
    }
    pull(flow, slot);
    if (flow.retransmission_pulls > 0) {
      if (!flow.retransmitting) flow.retransmitting = true, enlist(flow, pacer.retransmitting, slot);
    } else if (flow.target > flow.pulls) {
      if (!flow.active) flow.active = true, enlist(flow, pacer.active, slot);
    } else if (&list != &pacer.idle || flow.pulls < flow.target + parameters_.window_packets) {
      enlist(flow, pacer.idle, slot);
    }
    return network_.schedule_pace(network_.now() + pacer.interval, number, number);
  }
  pacer.running = false;
}

void Eqds::pull(Flow& flow, std::uint32_t slot) {
  if (flow.retransmission_pulls > 0) --flow.retransmission_pulls;
  ++flow.pulls;
  const std::uint32_t index = network_.allocate(slot);
  network_.packets()[index].path =
      static_cast<std::uint32_t>(splitmix64(flow.hash + (std::uint64_t{flow.pulls} << 32)));
  reply(flow, index, PacketKind::pull, flow.received.base());
}

/// Frees the slot when both ends are done and no packet, timer or list entry of the transfer is left.
void Eqds::free_if_finished(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  if (flow.complete && flow.all_acknowledged && !flow.timer_pending && !flow.at_nic && flow.entries == 0 &&
      network_.live_packets(slot) == 0)
    free_.push_back(slot);
}

}  // namespace manyworlds::core::network::per_packet

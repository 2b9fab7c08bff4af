#include "core/network/per_packet/eqds.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::core::network::individual {
namespace {

constexpr std::int64_t kPullShare = 99;  // of the line rate, percent
constexpr Time kMostTimeouts = 64;       // a timeout grows to this many times the least one
constexpr std::uint32_t kNoPacer = UINT32_MAX;

}  // namespace

Eqds::Eqds(const NetworkOptions& options, const EqdsParameters& parameters, std::shared_ptr<Forwarding> forwarding)
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
  route.there = forwarding_->first_links(source, destination);
  route.back = forwarding_->first_links(destination, source);
  for (const std::uint32_t link : route.there) network_.send_from(link);
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
  std::int64_t bits_per_second = 0;
  for (const Link& link : forwarding_->graph().links)
    if (link.to == destination && link.kind == kind) bits_per_second += link.bits_per_second;
  pacers_.emplace_back();
  pacers_.back().interval = serialization_ps(network_.options().full_packet_bytes * 100, bits_per_second * kPullShare);
  return number;
}

std::uint32_t Eqds::start(std::uint32_t route, std::int64_t bytes, std::uint64_t order, std::uint64_t entropy) {
  const std::int64_t payload = parameters_.payload_bytes;
  const std::int64_t packets = std::max<std::int64_t>(1, (bytes + payload - 1) / payload);
  MANYWORLDS_CHECK(packets < (1ll << 31) && order <= kOrderMask, "{} packets, order {}", packets, order);
  auto slot = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
    flows_[slot] = Flow{};
  }
  network_.set_order(slot, order);
  Flow& flow = flows_[slot];
  flow.order = order;
  flow.hash = splitmix64(splitmix64(parameters_.seed) ^ entropy);
  flow.route = route;
  flow.packets = static_cast<std::uint32_t>(packets);
  flow.last_bytes =
      static_cast<std::uint32_t>(bytes - (packets - 1) * payload + network_.options().full_packet_bytes - payload);
  flow.speculative = parameters_.window_packets;
  flow.path_mask = static_cast<std::uint16_t>(parameters_.paths - 1);
  flow.heard_at = network_.now();
  flow.timeout = parameters_.least_timeout;
  flow.timer_pending = true;
  network_.note(flow.heard_at + flow.timeout, Kind::timer, order, slot);
  ++live_;
  send(slot);
  return slot;
}

void Eqds::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  network_.run(*this, limit);
  completed_ = nullptr;
  if (!drained()) return;
  network_.forget();
  flows_.clear();
  free_.clear();
}

std::size_t Eqds::bytes() const {
  return network_.bytes() + flows_.capacity() * sizeof(Flow) + forwarding_->bytes();
}

// ---- Sender ----

/// Offers the next packet to the NIC, one at a time, so that the transfers of a GPU share it packet by packet.
void Eqds::send(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.at_nic || flow.credit + flow.speculative == 0) return;
  std::uint32_t number = flow.next;
  if (flow.refused.count() > 0) {
    flow.refused.clear(number = flow.refused.lowest());
    ++network_.counters().retransmissions;
  } else if (flow.next == flow.packets) {
    return;
  } else {
    ++flow.next;
  }
  --(flow.credit > 0 ? flow.credit : flow.speculative);
  const std::int64_t backlog = flow.packets - flow.next + flow.refused.count();
  const std::int64_t target =
      std::min<std::int64_t>(backlog, parameters_.window_packets) + flow.pulled - flow.credit - flow.speculative;
  const std::uint32_t index = network_.take(slot);
  Packet& packet = network_.packets()[index];
  packet.number = number;
  packet.value = static_cast<std::uint32_t>(std::max<std::int64_t>(0, target));
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

/// Each round goes over all paths once, in an order drawn for it; one that trimmed is passed over once.
std::uint16_t Eqds::next_path(Flow& flow) {
  while (true) {
    const auto drawn = static_cast<std::uint16_t>(splitmix64(flow.hash + flow.round));
    const auto path = static_cast<std::uint16_t>((flow.path_at ^ drawn) & flow.path_mask);
    if (flow.path_at == flow.path_mask)
      flow.path_at = 0, ++flow.round;
    else
      ++flow.path_at;
    std::uint64_t& word = flow.penalised[path / 64];
    if ((word >> path % 64 & 1) == 0) return path;
    word &= ~(1ull << path % 64);
  }
}

void Eqds::departed(std::uint32_t slot) {
  flows_[slot].at_nic = false;
  send(slot);
}

void Eqds::hear(Flow& flow, std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  network_.release(index);
  flow.heard_at = network_.now();
  flow.timeout = parameters_.least_timeout;
  if (packet.number > flow.pulled) {
    flow.credit += packet.number - flow.pulled;
    flow.pulled = packet.number;
  }
  if (packet.kind != PacketKind::pull) flow.speculative = 0;
  if (packet.kind == PacketKind::nack) {
    if (packet.value >= flow.refused.base()) flow.refused.set(packet.value);
    flow.penalised[packet.entropy / 64] |= 1ull << packet.entropy % 64;
  } else if (packet.value > flow.refused.base()) {
    flow.refused.move_to(packet.value);
    if (packet.value == flow.packets && !flow.done) {
      flow.done = true;
      if (keeps_acknowledgements_) acknowledgements_.emplace_back(flow.order, network_.now());
    }
  }
  if (flow.done) return settle(packet.flow);
  send(packet.flow);
}

void Eqds::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.timer_pending = false;
  if (flow.done) return settle(slot);
  const Time now = network_.now();
  if (flow.heard_at + flow.timeout <= now) {  // nothing came back: the oldest packet again, and a request for credit
    flow.heard_at = now;
    flow.timeout = std::min(2 * flow.timeout, kMostTimeouts * parameters_.least_timeout);
    if (flow.refused.base() < flow.next) flow.refused.set(flow.refused.base());
    const std::uint32_t index = network_.take(slot);
    Packet& packet = network_.packets()[index];
    const Route& route = routes_[flow.route];
    packet.number = packet.value = 0;
    packet.kind = PacketKind::request;
    packet.bytes = static_cast<std::uint32_t>(network_.options().control_bytes);
    packet.path = static_cast<std::uint32_t>(splitmix64(flow.hash ^ static_cast<std::uint64_t>(now)));
    packet.hop = 0;
    packet.destination = route.destination;
    packet.link = route.there[packet.path % route.there.size()];
    network_.offer(index);
    send(slot);
  }
  flow.timer_pending = true;
  network_.note(flow.heard_at + flow.timeout, Kind::timer, flow.order, slot);
}

// ---- Receiver ----

void Eqds::deliver(std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  const std::uint32_t slot = packet.flow;
  Flow& flow = flows_[slot];
  switch (packet.kind) {
    case PacketKind::data:
      ask(flow, slot, packet.value);
      receive(flow, index);
      break;
    case PacketKind::header:
      if (!flow.complete) ask(flow, slot, packet.value), repeat(flow, slot);
      if (flow.received.base() > packet.number || flow.received.test(packet.number))
        answer(flow, index, PacketKind::ack, flow.received.base());
      else
        answer(flow, index, PacketKind::nack, packet.number);
      break;
    case PacketKind::request:
      if (!flow.complete) repeat(flow, slot);
      answer(flow, index, PacketKind::ack, flow.received.base());
      break;
    default:
      hear(flow, index);
      break;
  }
}

void Eqds::receive(Flow& flow, std::uint32_t index) {
  const std::uint32_t number = network_.packets()[index].number;
  const std::uint32_t missing = flow.received.base();
  const bool first = missing == 0 && flow.received.count() == 0;
  const bool fresh = number >= missing && flow.received.set(number);
  if (fresh && number == missing) flow.received.pass();
  if (fresh && flow.received.base() == flow.packets) {
    flow.complete = true;
    --live_;
    completed_->push_back(network_.packets()[index].flow);
  }
  if (++flow.unacknowledged < parameters_.packets_per_ack && fresh && !first && !flow.complete)
    return network_.release(index);
  flow.unacknowledged = 0;
  answer(flow, index, PacketKind::ack, flow.received.base());
}

/// A packet goes back as its answer.
void Eqds::answer(const Flow& flow, std::uint32_t index, PacketKind kind, std::uint32_t value) {
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

/// The sender asks for pulls up to `target`.
void Eqds::ask(Flow& flow, std::uint32_t slot, std::uint32_t target) {
  if (target <= flow.target || flow.complete) return;
  const bool waits = flow.target > flow.pulls || flow.to_repeat > 0 || flow.active;
  flow.target = target;
  if (waits) return;
  flow.active = true;
  enlist(flow, pacers_[routes_[flow.route].pacer].active, slot);
}

void Eqds::repeat(Flow& flow, std::uint32_t slot) {
  ++flow.to_repeat;
  if (flow.repeating) return;
  flow.repeating = true;
  enlist(flow, pacers_[routes_[flow.route].pacer].repeating, slot);
}

void Eqds::enlist(Flow& flow, Fifo<std::uint32_t>& list, std::uint32_t slot) {
  list.push(slot);
  ++flow.entries;
  const std::uint32_t number = routes_[flow.route].pacer;
  if (pacers_[number].running) return;
  pacers_[number].running = true;
  network_.note_pace(network_.now(), number, number);
}

/// One pull: to whom something was refused, else to who asks for more, else to who will.
void Eqds::pace(std::uint32_t number) {
  Pacer& pacer = pacers_[number];
  while (!pacer.repeating.empty() || !pacer.active.empty() || !pacer.idle.empty()) {
    auto& list = !pacer.repeating.empty() ? pacer.repeating : !pacer.active.empty() ? pacer.active : pacer.idle;
    const std::uint32_t slot = list.front();
    list.pop();
    Flow& flow = flows_[slot];
    --flow.entries;
    if (&list == &pacer.repeating) flow.repeating = false;
    if (&list == &pacer.active) flow.active = false;
    if (flow.complete) {
      settle(slot);
      continue;
    }
    pull(flow, slot);
    if (flow.to_repeat > 0) {
      if (!flow.repeating) flow.repeating = true, enlist(flow, pacer.repeating, slot);
    } else if (flow.target > flow.pulls) {
      if (!flow.active) flow.active = true, enlist(flow, pacer.active, slot);
    } else if (&list != &pacer.idle || flow.pulls < flow.target + parameters_.window_packets) {
      enlist(flow, pacer.idle, slot);
    }
    return network_.note_pace(network_.now() + pacer.interval, number, number);
  }
  pacer.running = false;
}

void Eqds::pull(Flow& flow, std::uint32_t slot) {
  if (flow.to_repeat > 0) --flow.to_repeat;
  ++flow.pulls;
  const std::uint32_t index = network_.take(slot);
  network_.packets()[index].path =
      static_cast<std::uint32_t>(splitmix64(flow.hash + (std::uint64_t{flow.pulls} << 32)));
  answer(flow, index, PacketKind::pull, flow.received.base());
}

/// A slot is free again when both ends are done and nothing of it is under way.
void Eqds::settle(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  if (flow.complete && flow.done && !flow.timer_pending && !flow.at_nic && flow.entries == 0 &&
      network_.in_air(slot) == 0)
    free_.push_back(slot);
}

}  // namespace manyworlds::core::network::individual

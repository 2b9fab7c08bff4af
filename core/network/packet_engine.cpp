#include "core/network/packet_engine.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint64_t kOrderMask = (1ull << 56) - 1;
constexpr std::int64_t kThresholdRate = 100'000'000'000;  // ECN thresholds are given at 100 Gb/s

std::int64_t scaled(std::int64_t bytes, std::int64_t bits_per_second) {
  return static_cast<std::int64_t>(static_cast<Wide>(bytes) * bits_per_second / kThresholdRate);
}

}  // namespace

PacketEngine::PacketEngine(const Transport& transport)
    : transport_(transport), packet_bytes_(transport.payload_bytes + transport.header_bytes) {}

void PacketEngine::reset() {
  now_ = quiet_since_ = inline_before_ = 0;
  events_.clear();
  std::move(ports_.begin(), ports_.end(), std::back_inserter(spare_ports_));
  std::move(flows_.begin(), flows_.end(), std::back_inserter(spare_flows_));
  ports_.clear();
  flows_.clear();
  free_.clear();
  live_ = pending_control_ = 0;
  counters_ = {};
}

std::uint32_t PacketEngine::add_link(const LinkSpec& spec) {
  if (spare_ports_.empty()) {
    ports_.emplace_back();
  } else {
    ports_.push_back(std::move(spare_ports_.back()));
    spare_ports_.pop_back();
  }
  Port& port = ports_.back();
  port.queue.clear();
  port.wire.clear();
  static_cast<PortState&>(port) = PortState{};
  port.spec = spec;
  port.full_packet_ps = serialization_ps(packet_bytes_, spec.bits_per_second);
  port.control_ps = spec.latency_ps + serialization_ps(transport_.ack_bytes, spec.bits_per_second);
  port.kmin = scaled(transport_.ecn_kmin_bytes, spec.bits_per_second);
  port.kmax = scaled(transport_.ecn_kmax_bytes, spec.bits_per_second);
  return static_cast<std::uint32_t>(ports_.size() - 1);
}

std::uint32_t PacketEngine::start(const Route& route, std::int64_t bytes, std::uint64_t order) {
  const std::int64_t packets =
      std::max<std::int64_t>(1, (bytes + transport_.payload_bytes - 1) / transport_.payload_bytes);
  MANYWORLDS_CHECK(packets < (1ll << 32) && order <= kOrderMask && route.size() <= kMaxHops, "{} packets, order {}",
                   packets, order);
  const std::uint32_t slot = add_flow(route, order);
  Flow& flow = flows_[slot];
  flow.left = static_cast<std::uint32_t>(packets);
  flow.last_bytes = bytes - (packets - 1) * transport_.payload_bytes + transport_.header_bytes;
  if (flow.rate_controlled) flow.rate.reset(ports_[flow.path[0]].spec.bits_per_second, now_);
  offer(slot);
  return slot;
}

std::uint32_t PacketEngine::add_flow(const Route& route, std::uint64_t order) {
  std::uint32_t slot = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    if (spare_flows_.empty()) {
      flows_.emplace_back();
    } else {
      flows_.push_back(std::move(spare_flows_.back()));
      spare_flows_.pop_back();
    }
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[slot];
  static_cast<FlowState&>(flow) = FlowState{};
  flow.acks.clear();
  flow.order = order;
  flow.live = true;
  flow.hops = static_cast<std::uint32_t>(route.size());
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    const Port& port = ports_[flow.path[hop] = route[hop]];
    flow.ack_ps += port.control_ps;
    flow.rate_controlled |= transport_.kind == TransportKind::dcqcn && !port.spec.scale_up;
  }
  flow.window = flow.rate_controlled ? UINT32_MAX
                                     : static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                                           transport_.window_bytes / packet_bytes_, 1, UINT32_MAX));
  ++live_;
  return slot;
}

void PacketEngine::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  inline_before_ = limit;
  run_events(limit, completed);
  inline_before_ = 0;  // what starts between runs must be ranked with what else starts then
}

void PacketEngine::run_events(Time limit, std::vector<std::uint32_t>& completed) {
  const std::size_t before = completed.size();
  while (!events_.empty()) {
    const Event event = events_.top();
    const bool arrival = kind_of(event) == Kind::arrive;
    if (completed.size() > before) {
      inline_before_ = now_;  // this instant is the last; its arrivals stay
      if (event.at > now_ || arrival) return;
    } else if (event.at > limit || (event.at == limit && arrival)) {
      now_ = limit;
      return;
    }
    if (Event next; next_in_line(event, next))
      events_.replace_top(next);
    else
      events_.pop();
    now_ = quiet_since_ = event.at;
    handle(event);
  }
  MANYWORLDS_CHECK(live_ == 0, "{} flows wait for nothing: the pauses of this fabric form a cycle", live_);
  if (completed.size() == before && limit != kNever) now_ = limit;
}

/// Takes `event`, the top of the heap, off the wire it stands on, if it stands on one, and says what is
/// first there now.
bool PacketEngine::next_in_line(const Event& event, Event& next) {
  const Kind kind = kind_of(event);
  if (kind != Kind::deliver && kind != Kind::arrive) return false;
  const std::uint32_t hop = hop_of(event.what);
  if (hop == 0) return false;  // offered by a sender
  Fifo<Event>& wire = ports_[flows_[slot_of(event.what)].path[hop - 1]].wire;
  wire.pop();
  if (wire.empty()) return false;
  next = wire.front();
  return true;
}

void PacketEngine::push(Time at, Kind kind, std::uint64_t order, std::uint64_t what) {
  events_.push({at, static_cast<std::uint64_t>(kind) << 56 | order, what});
}

/// Puts an arrival or delivery on the wire behind `port`.
void PacketEngine::travel(std::uint32_t port, const Event& event) {
  Fifo<Event>& wire = ports_[port].wire;
  if (wire.empty()) events_.push(event);
  wire.push(event);
}

void PacketEngine::handle(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.what);  // of a flow or a link, unless it is a packet
  const auto for_live_flow = [&] { return flows_[index].live && flows_[index].order == (event.order & kOrderMask); };
  switch (kind_of(event)) {
    case Kind::deliver:
      deliver(event.what);
      break;
    case Kind::ack:
      if (!for_live_flow()) break;
      flows_[index].blocked = false;
      offer(index);
      break;
    case Kind::congestion:
      if (!for_live_flow() || flows_[index].left == 0) break;
      flows_[index].rate.congestion(now_);
      arm(index, flows_[index].rate.alpha_at);
      arm(index, flows_[index].rate.rate_at);
      break;
    case Kind::timer:
      if (for_live_flow()) timer(index);
      break;
    case Kind::pause:
      ports_[index].paused = true;
      break;
    case Kind::resume:
      ports_[index].paused = false;
      pending_control_ -= 2;  // the pause and this resume
      if (!ports_[index].sending && !ports_[index].queue.empty()) begin_sending(index);
      break;
    case Kind::sent:
      sent(index);
      break;
    case Kind::arrive:
      arrive(event.what);
      break;
  }
}

void PacketEngine::deliver(Packet packet) {
  const std::uint32_t slot = slot_of(packet);
  Flow& flow = flows_[slot];
  if ((packet & kMark) != 0 && flow.left > 0 && now_ - flow.rate.last_cnp >= kCnpInterval) {
    flow.rate.last_cnp = now_;
    push(now_ + flow.ack_ps, Kind::congestion, flow.order, slot);
  }
  if (number_of(packet) != 1) return;  // on its one path the last packet comes last
  flow.live = false;
  --live_;
  free_.push_back(slot);
  completed_->push_back(slot);
}

void PacketEngine::arrive(Packet packet) {
  const Flow& flow = flows_[slot_of(packet)];
  const std::uint32_t hop = hop_of(packet);
  const std::uint32_t at = flow.path[hop];
  Port& port = ports_[at];
  const std::int64_t size = size_of(flow, packet);
  if (hop > 0) {
    Port& ingress = ports_[flow.path[hop - 1]];
    ingress.ingress_bytes += size;
    MANYWORLDS_CHECK(ingress.ingress_bytes <= transport_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                     ingress.ingress_bytes, transport_.buffer_bytes);
    if (ingress.ingress_bytes > transport_.pfc_xoff_bytes && !ingress.pause_wanted) {
      ingress.pause_wanted = true;
      ++counters_.pauses;
      pending_control_ += 2;
      push(now_ + ingress.control_ps, Kind::pause, flow.path[hop - 1], flow.path[hop - 1]);
    }
    if (flow.rate_controlled && !port.spec.leaves_gpu && mark(port)) packet |= kMark;
  }
  port.queue.push(packet);
  port.queued_bytes += size;
  if (!port.sending && !port.paused) begin_sending(at);
}

bool PacketEngine::mark(Port& port) {
  if (port.queued_bytes == 0) port.mark_error = 0;  // an idle port remembers nothing
  if (port.queued_bytes <= port.kmin) return false;
  bool marked = port.queued_bytes >= port.kmax;
  if (!marked) {
    port.mark_error += transport_.ecn_pmax_ppm * (port.queued_bytes - port.kmin) / (port.kmax - port.kmin);
    marked = port.mark_error >= 1'000'000;
    if (marked) port.mark_error -= 1'000'000;
  }
  counters_.ecn_marks += marked;
  return marked;
}

void PacketEngine::begin_sending(std::uint32_t index) {
  Port& port = ports_[index];
  const Packet packet = port.queue.front();
  const std::int64_t size = size_of(flows_[slot_of(packet)], packet);
  port.sending = true;
  const Time lasts = size == packet_bytes_ ? port.full_packet_ps : serialization_ps(size, port.spec.bits_per_second);
  push(now_ + lasts, Kind::sent, index, index);
}

void PacketEngine::sent(std::uint32_t index) {
  Port& port = ports_[index];
  const Packet packet = port.queue.front();
  port.queue.pop();
  const std::uint32_t slot = slot_of(packet);
  Flow& flow = flows_[slot];
  const std::uint32_t hop = hop_of(packet);
  const std::int64_t size = size_of(flow, packet);
  port.sending = false;
  port.queued_bytes -= size;
  ++counters_.link_hops;
  if (hop + 1 == flow.hops)
    leave_network(flow, packet, index);
  else
    travel(index, {now_ + port.spec.latency_ps, kArrive << 56 | flow.order, packet + kOneHop});
  if (!port.paused && !port.queue.empty()) begin_sending(index);
  if (hop > 0) {
    Port& ingress = ports_[flow.path[hop - 1]];
    ingress.ingress_bytes -= size;
    if (ingress.pause_wanted && ingress.ingress_bytes <= transport_.pfc_xon_bytes) {
      ingress.pause_wanted = false;
      push(now_ + ingress.control_ps, Kind::resume, flow.path[hop - 1], flow.path[hop - 1]);
    }
    return;
  }
  flow.at_nic = false;
  if (flow.rate_controlled && flow.left > 0) flow.rate.sent(size);
  offer(slot);
}

/// A packet is on its last wire. Its delivery is an event only if it ends the flow or tells of congestion; its ack is
/// a time in a list.
void PacketEngine::leave_network(Flow& flow, Packet packet, std::uint32_t port) {
  const Time delivered = now_ + ports_[port].spec.latency_ps;
  if (number_of(packet) == 1 || ((packet & kMark) != 0 && flow.left > 0))
    travel(port, {delivered, kDeliver << 56 | flow.order, packet + kOneHop});
  if (flow.rate_controlled || !acks_matter(flow)) return;
  flow.acks.push(delivered + flow.ack_ps);
  if (flow.blocked && flow.acks.size() == 1) push(flow.acks.front(), Kind::ack, flow.order, slot_of(packet));
}

bool PacketEngine::window_open(Flow& flow, std::uint32_t slot) {
  for (; !flow.acks.empty() && flow.acks.front() <= now_; flow.acks.pop()) --flow.unacked;
  if (flow.unacked < flow.window) return true;
  flow.blocked = true;
  if (!flow.acks.empty()) push(flow.acks.front(), Kind::ack, flow.order, slot);
  return false;
}

void PacketEngine::offer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.left == 0 || flow.at_nic || flow.blocked) return;
  if (!flow.rate_controlled && !window_open(flow, slot)) return;
  if (flow.rate_controlled && flow.rate.next_packet_at > now_) return arm(slot, flow.rate.next_packet_at);
  const Packet packet = make_packet(slot, flow.left);
  const std::int64_t size = size_of(flow, packet);
  if (flow.rate_controlled && !flow.rate.at_line())
    flow.rate.next_packet_at = now_ + serialization_ps(size, flow.rate.rate);
  flow.at_nic = true;
  --flow.left;
  if (!flow.rate_controlled) ++flow.unacked;
  // Its arrival is the next thing to happen unless something else is due at this instant.
  if (now_ < inline_before_ && (events_.empty() || events_.top().at > now_))
    arrive(packet);
  else
    push(now_, Kind::arrive, flow.order, packet);
}

void PacketEngine::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (!flow.rate_controlled || flow.left == 0) return;
  RateControl& rate = flow.rate;
  if (rate.alpha_at == now_) rate.alpha_timer(now_), arm(slot, rate.alpha_at);
  if (rate.rate_at == now_) rate.rate_timer(now_), arm(slot, rate.rate_at);
  if (rate.next_packet_at <= now_) offer(slot);
}

void PacketEngine::arm(std::uint32_t slot, Time at) {
  // Timers are never cancelled: one that finds no deadline of its flow at its time does nothing.
  if (at != kNever) push(at, Kind::timer, flows_[slot].order, slot);
}

}  // namespace manyworlds::core::network

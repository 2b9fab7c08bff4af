// The parts of the per-packet network that are not on the path of every packet: set-up, PFC, telemetry, deadlocks.
#include "core/network/per_packet/network.hpp"

#include <algorithm>
#include <string>

#include "core/network/engine/ecn_marking.hpp"
#include "core/network/fabric/pfc_deadlock.hpp"

namespace manyworlds::core::network::per_packet {

Network::Network(const NetworkOptions& options, std::shared_ptr<const ForwardingTables> forwarding)
    : options_(options), graph_(forwarding->shared_graph()), forwarding_(std::move(forwarding)) {
  const Graph& graph = *graph_;
  ports_.resize(graph.links.size() + 1);
  ports_.back().dead = true;
  ports_.back().busy_until = kNever;
  for (std::size_t id = 0; id < graph.links.size(); ++id) {
    const Link& link = graph.links[id];
    Port& port = ports_[id];
    port.latency_ps = link.latency_ps;
    port.bits_per_second = link.bits_per_second;
    port.full_packet_ps = serialization_ps(options.full_packet_bytes, link.bits_per_second);
    port.control_packet_ps = serialization_ps(options.control_bytes, link.bits_per_second);
    port.control_queue_limit_ps = serialization_ps(2 * options.queue_bytes, link.bits_per_second);
    port.kmin =
        link.kind == LinkKind::scale_up ? INT64_MAX : scaled_to_rate(options.ecn_kmin_bytes, link.bits_per_second);
    port.kmax = scaled_to_rate(options.ecn_kmax_bytes, link.bits_per_second);
    const bool gpu = graph.vertices[link.from] == VertexKind::gpu;
    port.nic = gpu && !graph.gpus_relay;
    port.slack_ps = gpu || options.ports == PortKind::lossless ? 0 : link.latency_ps;
    port.to = link.to;
  }
}

std::size_t Network::bytes() const {
  return slab_.bytes() + events_.bytes() + ports_.size() * sizeof(Port) + flow_info_.size() * sizeof(FlowInfo);
}

std::vector<LinkLoad> Network::loads() const {
  std::vector<LinkLoad> loads;
  for (std::size_t id = 0; id + 1 < ports_.size(); ++id) loads.push_back(ports_[id].load);
  return loads;
}

void Network::charge_ingress(const Packet& packet) {
  Port& ingress = ports_[packet.link];
  ingress.ingress_bytes += packet.bytes;
  MANYWORLDS_CHECK(ingress.ingress_bytes <= options_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                   ingress.ingress_bytes, options_.buffer_bytes);
  if (ingress.ingress_bytes <= options_.pfc_xoff_bytes || ingress.pause_wanted) return;
  ingress.pause_wanted = true;
  ++counters_.pauses;
  pending_control_ += 2;
  send_pause_frame(EventKind::pause, packet.link);
}

/// Subtracts a queued packet that begins to be sent from its ingress counter, and resumes the link at XON.
void Network::release_ingress(const Packet& packet) {
  if (packet.hop == 0) return;
  Port& ingress = ports_[packet.link];
  ingress.ingress_bytes -= packet.bytes;
  if (!ingress.pause_wanted || ingress.ingress_bytes > options_.pfc_xon_bytes) return;
  ingress.pause_wanted = false;
  send_pause_frame(EventKind::resume, packet.link);
}

/// Pauses or resumes a link when the frame that says so has come to its beginning. Apart from its callers, so that
/// these need no registers of it.
[[gnu::noinline]] void Network::send_pause_frame(EventKind kind, std::uint32_t link) {
  schedule(now_ + control_ps(link), kind, link, link);
}

bool Network::mark(Port& port) {
  const bool marked = mark_next_packet(port, port.waiting_bytes, options_.ecn_pmax_ppm);
  counters_.ecn_marks += marked;
  return marked;
}

void Network::enable_telemetry(std::size_t links) {
  if (links <= telemetry_links_) return;
  const std::size_t packets = telemetry_links_ > 0 ? telemetry_.size() / telemetry_links_ : 0;
  std::vector<Telemetry> wider(packets * links);
  for (std::size_t i = 0; i < telemetry_.size(); ++i)
    wider[i / telemetry_links_ * links + i % telemetry_links_] = telemetry_[i];
  telemetry_ = std::move(wider);
  telemetry_links_ = links;
}

/// Records in-band telemetry of a packet that the port begins to send.
void Network::record_telemetry(Port& port, std::uint32_t index, Time begin) {
  const Packet& packet = slab_[index];
  const unsigned hop = packet.hop & ~kMarked;
  if (packet.kind != PacketKind::data || hop == 0 || hop > telemetry_links_) return;
  const std::size_t first = std::size_t{index} * telemetry_links_;
  if (telemetry_.size() <= first) telemetry_.resize(first + telemetry_links_);
  telemetry_[first + hop - 1] = {begin, port.waiting_bytes, port.load.bytes, port.bits_per_second};
}

void Network::explain_deadlock() const {
  PauseDependencies waits;
  for (std::uint32_t link = 0; link < nowhere(); ++link)
    for (std::uint32_t at = ports_[link].queue.head; at != kNone; at = slab_[at].next)
      if (slab_[at].hop != 0 && ports_[slab_[at].link].paused) waits.emplace_back(slab_[at].link, link);
  throw_pfc_deadlock(*graph_, waits);
}

/// Counts a packet as lost now; its flow learns of it after everything else that happens at this instant.
void Network::lose(std::uint32_t packet) {
  ++counters_.lost;
  push(now_ + 1, EventKind::lost, packet);
}

/// Loses the packets that are under way on a link: those that it has sent and that have not arrived.
void Network::lose_carried(std::uint32_t link) {
  events_.reorder([&](std::uint64_t order, std::uint32_t index) {
    const auto kind = static_cast<EventKind>(order >> kKindShift);
    if (kind != EventKind::deliver && kind != EventKind::arrive) return order;
    const Packet& packet = slab_[index];
    if (packet.link != link || (packet.hop & ~kMarked) == 0) return order;
    ++counters_.lost;
    return static_cast<std::uint64_t>(EventKind::lost) << kKindShift | (order & kOrderMask);
  });
}

void Network::add_source_link(std::uint32_t link) {
  Port& port = ports_[link];
  if (std::exchange(port.slack_ps, 0) > 0 && port.service_due)
    schedule(std::max(now_, port.busy_until), EventKind::service, link, link);
}

void Network::resume(std::uint32_t link) {
  Port& port = ports_[link];
  port.paused = false;
  pending_control_ -= 2;  // counts for the pause and for this resume
  if (port.service_due || port.queue.empty()) return;
  port.service_due = true;
  schedule(std::max(now_, port.busy_until), EventKind::service, link, link);
}

}  // namespace manyworlds::core::network::per_packet

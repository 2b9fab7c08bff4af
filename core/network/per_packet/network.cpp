#include "core/network/per_packet/network.hpp"

#include <algorithm>
#include <string>

#include "core/network/engine/marking.hpp"
#include "core/network/fabric/pause_cycle.hpp"

namespace manyworlds::core::network::individual {

Network::Network(const NetworkOptions& options, std::shared_ptr<const Forwarding> forwarding)
    : options_(options), forwarding_(std::move(forwarding)) {
  const Graph& graph = forwarding_->graph();
  ports_.resize(graph.links.size());
  for (std::size_t id = 0; id < ports_.size(); ++id) {
    const Link& link = graph.links[id];
    Port& port = ports_[id];
    port.latency_ps = link.latency_ps;
    port.bits_per_second = link.bits_per_second;
    port.full_packet_ps = serialization_ps(options.full_packet_bytes, link.bits_per_second);
    port.control_packet_ps = serialization_ps(options.control_bytes, link.bits_per_second);
    port.control_room_ps = serialization_ps(2 * options.queue_bytes, link.bits_per_second);
    port.kmin = link.kind == LinkKind::scale_up ? INT64_MAX : at_rate(options.ecn_kmin_bytes, link.bits_per_second);
    port.kmax = at_rate(options.ecn_kmax_bytes, link.bits_per_second);
    const bool gpu = graph.vertices[link.from] == VertexKind::gpu;
    port.nic = gpu && !graph.gpus_relay;
    port.slack_ps = gpu || options.ports == PortKind::lossless ? 0 : link.latency_ps;
    port.to = link.to;
  }
}

std::size_t Network::bytes() const {
  return slab_.bytes() + ports_.size() * sizeof(Port) + tags_.size() * sizeof(Tag);
}

std::vector<LinkLoad> Network::loads() const {
  std::vector<LinkLoad> loads;
  for (const Port& port : ports_) loads.push_back(port.load);
  return loads;
}

void Network::hold_ingress(const Packet& packet) {
  Port& ingress = ports_[packet.link];
  ingress.ingress_bytes += packet.bytes;
  MANYWORLDS_CHECK(ingress.ingress_bytes <= options_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                   ingress.ingress_bytes, options_.buffer_bytes);
  if (ingress.ingress_bytes <= options_.pfc_xoff_bytes || ingress.pause_wanted) return;
  ingress.pause_wanted = true;
  ++counters_.pauses;
  pending_control_ += 2;
  note(now_ + control_ps(packet.link), Kind::pause, packet.link, packet.link);
}

/// Of a packet that waited and begins to be sent.
void Network::release_ingress(const Packet& packet) {
  if (packet.hop == 0) return;
  Port& ingress = ports_[packet.link];
  ingress.ingress_bytes -= packet.bytes;
  if (!ingress.pause_wanted || ingress.ingress_bytes > options_.pfc_xon_bytes) return;
  ingress.pause_wanted = false;
  note(now_ + control_ps(packet.link), Kind::resume, packet.link, packet.link);
}

bool Network::mark(Port& port) {
  const bool marked = marks_next(port, port.waiting_bytes, options_.ecn_pmax_ppm);
  counters_.ecn_marks += marked;
  return marked;
}

void Network::watch(std::size_t links) {
  if (links <= watched_links_) return;
  const std::size_t packets = watched_links_ > 0 ? telemetry_.size() / watched_links_ : 0;
  std::vector<Telemetry> wider(packets * links);
  for (std::size_t i = 0; i < telemetry_.size(); ++i)
    wider[i / watched_links_ * links + i % watched_links_] = telemetry_[i];
  telemetry_ = std::move(wider);
  watched_links_ = links;
}

/// In-band telemetry, as the port begins to send.
void Network::observe(Port& port, std::uint32_t index, Time begin) {
  const Packet& packet = slab_[index];
  const unsigned hop = packet.hop & ~kMarked;
  if (packet.kind != PacketKind::data || hop == 0 || hop > watched_links_) return;
  const std::size_t first = std::size_t{index} * watched_links_;
  if (telemetry_.size() <= first) telemetry_.resize(first + watched_links_);
  telemetry_[first + hop - 1] = {begin, port.waiting_bytes, port.load.bytes, port.bits_per_second};
}

void Network::explain_standstill() const {
  PauseWaits waits;
  for (std::uint32_t link = 0; link < ports_.size(); ++link)
    for (std::uint32_t at = ports_[link].queue.head; at != kNone; at = slab_[at].next)
      if (slab_[at].hop != 0 && ports_[slab_[at].link].paused) waits.emplace_back(slab_[at].link, link);
  throw_pause_deadlock(forwarding_->graph(), waits);
}

void Network::send_from(std::uint32_t link) {
  Port& port = ports_[link];
  if (std::exchange(port.slack_ps, 0) > 0 && port.service_due)
    note(std::max(now_, port.busy_until), Kind::service, link, link);
}

void Network::resume(std::uint32_t link) {
  Port& port = ports_[link];
  port.paused = false;
  pending_control_ -= 2;  // the pause and this resume
  if (port.service_due || port.queue.empty()) return;
  port.service_due = true;
  note(std::max(now_, port.busy_until), Kind::service, link, link);
}

}  // namespace manyworlds::core::network::individual

// The packet engine once more, as plainly as it can be said: an ordered map of closures, an event for every service,
// arrival and acknowledgement, every packet an object. The oracle of the fast one, and the yardstick of its speed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/engine/sender_protocol.hpp"

namespace manyworlds::tests {

using core::Time;
using core::network::Feedback;
using core::network::LinkSpec;
using core::network::PathInfo;
using core::network::Telemetry;
using core::network::Transport;

struct ReferenceFlow {
  core::network::Route route;
  std::int64_t bytes = 0;
  Time start = 0;
  std::uint64_t order = 0;
};

template <class P>
class ReferenceEngine {
 public:
  ReferenceEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks,
                  const std::vector<LinkSpec>& links, const std::vector<ReferenceFlow>& flows)
      : transport_(transport),
        parameters_(parameters),
        marks_(marks),
        full_(transport.payload_bytes + transport.header_bytes),
        ports_(links.size()),
        flows_(flows.size()) {
    for (std::size_t i = 0; i < links.size(); ++i) ports_[i].spec = links[i];
    for (std::size_t i = 0; i < flows.size(); ++i) {
      flows_[i].is = flows[i];
      at(flows[i].start, kStart, flows[i].order, [this, i] { start(i); });
    }
  }

  /// Runs everything; the time at which each flow's last packet came.
  std::vector<Time> run() {
    while (!events_.empty()) {
      const auto next = events_.begin();
      now_ = std::get<0>(next->first);
      const auto what = std::move(next->second);
      events_.erase(next);
      what();
    }
    std::vector<Time> ends;
    for (const Flow& flow : flows_) ends.push_back(flow.end);
    return ends;
  }

  std::int64_t link_hops = 0, marked = 0, pauses = 0;

 private:
  // Phases of one instant. Flows start after all that ends and before all that arrives.
  enum Phase { kDelivery, kAck, kNotice, kTimer, kResume, kPause, kDeparture, kService, kStart, kArrival };

  struct Packet {
    std::size_t flow = 0;
    std::int64_t bytes = 0;
    std::size_t hop = 0;
    bool mark = false, last = false;
    Time departed = 0;
    std::vector<Telemetry> telemetry;
  };
  struct Port {
    LinkSpec spec;
    std::deque<Packet> queue;
    std::int64_t waiting = 0, ingress = 0, mark_error = 0, sent = 0;
    bool sending = false, paused = false, pausing = false;
  };
  struct Flow {
    ReferenceFlow is;
    std::int64_t packets = 0, offered = 0, in_flight = 0;
    Time next_at = 0, last_notice = 0, end = -1, ack_delay = 0;
    bool managed = false, at_nic = false;
    P sender;
  };

  void at(Time when, Phase phase, std::uint64_t rank, std::function<void()> what) {
    events_.emplace(std::tuple(when, phase, rank), std::move(what));
  }
  Time frame(const Port& port) const {
    return port.spec.latency_ps + core::serialization_ps(transport_.ack_bytes, port.spec.bits_per_second);
  }
  static std::int64_t at_rate(std::int64_t bytes, const Port& port) {
    return static_cast<std::int64_t>(static_cast<core::Int128>(bytes) * port.spec.bits_per_second / 100'000'000'000);
  }

  void start(std::size_t i) {
    Flow& flow = flows_[i];
    flow.packets = std::max<std::int64_t>(1, (flow.is.bytes + transport_.payload_bytes - 1) / transport_.payload_bytes);
    PathInfo path{ports_[flow.is.route[0]].spec.bits_per_second, full_, 0,
                  static_cast<std::uint32_t>(flow.is.route.size())};
    for (const std::uint32_t link : flow.is.route) {
      const Port& port = ports_[link];
      flow.ack_delay += frame(port);
      path.base_rtt_ps += core::serialization_ps(full_, port.spec.bits_per_second) + port.spec.latency_ps + frame(port);
      flow.managed |= !port.spec.scale_up;
    }
    flow.next_at = now_;
    flow.last_notice = now_ - core::network::kCnpInterval;
    if (flow.managed) flow.sender.start(parameters_, path, now_), watch_deadline(i);
    offer(i);
  }

  void watch_deadline(std::size_t i) {
    const Time deadline = flows_[i].sender.deadline();
    if (deadline == core::kNever) return;
    at(deadline, kTimer, flows_[i].is.order, [this, i] {
      Flow& flow = flows_[i];
      if (flow.offered == flow.packets || flow.sender.deadline() > now_) return;
      flow.sender.expire(parameters_, now_);
      watch_deadline(i);
    });
  }

  std::int64_t window(const Flow& flow) const {
    return flow.managed ? flow.sender.window_bytes() : transport_.window_bytes;
  }

  void offer(std::size_t i) {
    Flow& flow = flows_[i];
    if (flow.at_nic || flow.offered == flow.packets) return;
    if (flow.in_flight > 0 && window(flow) != core::network::kNoWindow && (flow.in_flight + 1) * full_ > window(flow))
      return;
    if (flow.next_at > now_) return at(flow.next_at, kTimer, flow.is.order, [this, i] { offer(i); });
    Packet packet;
    packet.flow = i;
    packet.last = ++flow.offered == flow.packets;
    packet.bytes =
        packet.last ? flow.is.bytes - (flow.packets - 1) * transport_.payload_bytes + transport_.header_bytes : full_;
    if (flow.managed) flow.next_at = now_ + flow.sender.gap(packet.bytes);
    flow.at_nic = true;
    ++flow.in_flight;
    at(now_, kArrival, flow.is.order, [this, packet] { arrive(packet); });
  }

  void arrive(Packet packet) {
    const Flow& flow = flows_[packet.flow];
    const std::uint32_t link = flow.is.route[packet.hop];
    Port& port = ports_[link];
    if (!port.sending && !port.paused && port.queue.empty()) return send(link, packet);
    if (packet.hop > 0) {
      Port& from = ports_[flow.is.route[packet.hop - 1]];
      from.ingress += packet.bytes;
      if (from.ingress > transport_.pfc_xoff_bytes && !from.pausing) {
        from.pausing = true;
        ++pauses;
        at(now_ + frame(from), kPause, 0, [&from] { from.paused = true; });
      }
      if (marks_ && flow.managed && !port.spec.leaves_gpu) packet.mark |= mark(port);
    }
    port.waiting += packet.bytes;
    port.queue.push_back(packet);
  }

  bool mark(Port& port) {
    const std::int64_t low = at_rate(transport_.ecn_kmin_bytes, port), high = at_rate(transport_.ecn_kmax_bytes, port);
    bool yes = false;
    if (port.waiting >= high && port.waiting > low) {
      yes = true;
    } else if (port.waiting > low) {
      port.mark_error += transport_.ecn_pmax_ppm * (port.waiting - low) / (high - low);
      if (port.mark_error >= 1'000'000) port.mark_error -= 1'000'000, yes = true;
    }
    marked += yes;
    return yes;
  }

  void send(std::uint32_t link, Packet packet) {
    Port& port = ports_[link];
    Flow& flow = flows_[packet.flow];
    port.sending = true;
    port.sent += packet.bytes;
    ++link_hops;
    if (packet.hop == 0)
      packet.departed = now_;
    else
      packet.telemetry.push_back({now_, port.waiting, port.sent, port.spec.bits_per_second});
    const Time gone = now_ + core::serialization_ps(packet.bytes, port.spec.bits_per_second);
    if (packet.hop == 0) at(gone, kDeparture, flow.is.order, [this, i = packet.flow] { departed(i); });
    at(gone, kService, 0, [this, link] {
      ports_[link].sending = false;
      serve(link);
    });
    const Time there = gone + port.spec.latency_ps;
    if (packet.hop + 1 == flow.is.route.size())
      return at(there, kDelivery, flow.is.order, [this, packet] { deliver(packet); });
    ++packet.hop;
    at(there, kArrival, flow.is.order, [this, packet] { arrive(packet); });
  }

  void serve(std::uint32_t link) {
    Port& port = ports_[link];
    if (port.sending || port.paused || port.queue.empty()) return;
    const Packet packet = port.queue.front();
    port.queue.pop_front();
    port.waiting -= packet.bytes;
    if (port.queue.empty()) port.mark_error = 0;
    if (packet.hop > 0) {
      const std::uint32_t before = flows_[packet.flow].is.route[packet.hop - 1];
      Port& from = ports_[before];
      from.ingress -= packet.bytes;
      if (from.pausing && from.ingress <= transport_.pfc_xon_bytes) {
        from.pausing = false;
        at(now_ + frame(from), kResume, 0, [this, before] {
          ports_[before].paused = false;
          at(now_, kService, 0, [this, before] { serve(before); });
        });
      }
    }
    send(link, packet);
  }

  void departed(std::size_t i) {
    Flow& flow = flows_[i];
    flow.at_nic = false;
    if (flow.offered == flow.packets) return;
    if (flow.managed) flow.sender.sent(parameters_, full_, now_), watch_deadline(i);
    offer(i);
  }

  void deliver(const Packet& packet) {
    Flow& flow = flows_[packet.flow];
    const std::size_t i = packet.flow;
    if (packet.last) flow.end = now_;
    if (packet.mark && P::kNeeds.cnps && flow.offered < flow.packets &&
        now_ - flow.last_notice >= core::network::kCnpInterval) {
      flow.last_notice = now_;
      at(now_ + flow.ack_delay, kNotice, flow.is.order, [this, i] {
        if (flows_[i].offered == flows_[i].packets) return;
        flows_[i].sender.notified(parameters_, now_);
        watch_deadline(i);
      });
    }
    at(now_ + flow.ack_delay, kAck, flow.is.order, [this, packet] { acknowledged(packet); });
  }

  void acknowledged(const Packet& packet) {
    Flow& flow = flows_[packet.flow];
    --flow.in_flight;
    if (flow.managed && P::kNeeds.acks) {
      flow.sender.acknowledged(
          parameters_, {now_, now_ - packet.departed, full_, static_cast<std::uint32_t>(flow.in_flight), packet.mark,
                        packet.telemetry.data()});
      watch_deadline(packet.flow);
    }
    offer(packet.flow);
  }

  Transport transport_;
  typename P::Parameters parameters_;
  bool marks_;
  std::int64_t full_;
  Time now_ = 0;
  std::vector<Port> ports_;
  std::vector<Flow> flows_;
  std::multimap<std::tuple<Time, Phase, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace manyworlds::tests

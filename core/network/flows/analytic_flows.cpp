// Fidelity `analytic`: the alpha-beta model on the same routes. Each transfer takes the time it would take on an
// otherwise idle fabric (the store-and-forward closed form of its packets), whatever else is in flight; no packet is
// simulated.
//
// The result is a lower bound of the packet-level result, for every transfer, collective and step:
//  1. Transfers. The packets take one path in order. On each link a packet begins to leave no earlier than it arrived
//     and the packet before it left, takes its serialisation time, and arrives after the latency. Queues, pauses,
//     windows and rate control only add waiting time; without any of it the closed form below results.
//  2. Collectives. A transfer starts when its last predecessor has finished and its members have entered; a member
//  exits
//     when the last of its transfers has finished. These times are maxima of sums, monotone in every duration and
//     entry, so by induction over the DAG nothing happens later than in the packet-level simulation.
//  3. Steps. An operation begins when its predecessors have ended; kernel durations are the same. The same induction
//     applies.
// Effects by which something could end earlier because something else ends later (shared queues, priorities, kernels
// slowed by communication) are not modelled here.
#include <algorithm>
#include <queue>

#include "core/base/error.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {
namespace {

class AnalyticFlows final : public Flows {
 public:
  explicit AnalyticFlows(const Transport& transport) : transport_(transport) {}

  std::uint32_t add_link(const LinkSpec& spec) override {
    links_.push_back(spec);
    return static_cast<std::uint32_t>(links_.size() - 1);
  }
  std::uint32_t add_route(const Route& route) override {
    routes_.emplace_back();
    for (const std::uint32_t link : route) routes_.back().push_back(links_[link]);
    return static_cast<std::uint32_t>(routes_.size() - 1);
  }
  void set_tie_order(const std::vector<std::uint32_t>&) override {}  // there are no ties
  void add_tie_order(std::uint32_t) override {}

  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::vector<LinkSpec>& path = routes_[route];
    counters_.link_hops += packets_of(transport_, bytes) * static_cast<std::int64_t>(path.size());
    in_flight_.push({now_ + uncontended_ps(transport_, path, bytes), id});
  }

  void advance(Time limit, std::vector<FlowId>& finished) override {
    if (in_flight_.empty() || in_flight_.top().at > limit) {
      if (limit != kNever) now_ = limit;
      return;
    }
    now_ = last_activity_ = in_flight_.top().at;
    for (; !in_flight_.empty() && in_flight_.top().at == now_; in_flight_.pop())
      finished.push_back(in_flight_.top().id);
  }

  Time now() const override { return now_; }
  bool drained() const override { return in_flight_.empty(); }
  Time last_activity() const override { return last_activity_; }
  const Counters& counters() const override { return counters_; }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<AnalyticFlows>(*this); }

 private:
  struct Completion {
    Time at;
    FlowId id;
    auto operator<=>(const Completion&) const = default;
  };

  Transport transport_;
  Time now_ = 0, last_activity_ = 0;
  std::vector<LinkSpec> links_;
  std::vector<std::vector<LinkSpec>> routes_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> in_flight_;
  Counters counters_;
};

}  // namespace

/// The last packet leaves link h after the longest chain of services "packet i on link j" in which each service follows
/// one of the previous packet on the same link or of the same packet on the previous link. All n packets but the last
/// are full, so the longest chain consists of full packets up to some link, including n - 2 more of them on the slowest
/// link so far, and of the last packet from that link on.
Time uncontended_ps(const Transport& transport, const std::vector<LinkSpec>& path, std::int64_t bytes) {
  const std::int64_t packets = packets_of(transport, bytes);
  const std::int64_t full_bytes = transport.payload_bytes + transport.header_bytes;
  const std::int64_t last_bytes = bytes - (packets - 1) * transport.payload_bytes + transport.header_bytes;
  Time latencies = 0, full_sum = 0, slowest = 0;
  Time chain = 0;  // the longest chain that ends with the last packet on this link
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const Time full = serialization_ps(full_bytes, path[hop].bits_per_second);
    const Time last = serialization_ps(last_bytes, path[hop].bits_per_second);
    latencies += path[hop].latency_ps;
    full_sum += full;
    slowest = std::max(slowest, full);
    const Time from_full = packets > 1 ? full_sum + (packets - 2) * slowest : 0;
    chain = std::max(chain, from_full) + last;
  }
  return latencies + chain;
}

std::unique_ptr<Flows> make_analytic_flows(const Transport& transport) {
  return std::make_unique<AnalyticFlows>(transport);
}

void Flows::absorb(Flows&, Time) {
  throw InternalError("only decomposed flows can absorb others");
}

std::unique_ptr<Flows> make_flows(const Transport& transport, std::shared_ptr<const Graph> fabric) {
  if (transport.fidelity == Fidelity::packet && needs_per_packet(transport))
    return make_per_packet_flows(transport, std::move(fabric));
  return make_flows(transport);
}

std::unique_ptr<Flows> make_flows(const Transport& transport) {
  return transport.fidelity == Fidelity::analytic ? make_analytic_flows(transport) : make_plain_flows(transport);
}

std::unique_ptr<Flows> make_flows(ComponentCache& cache) {
  const Transport& transport = cache.transport();
  if (transport.fidelity == Fidelity::analytic) return make_analytic_flows(transport);
  return cache.fabric() ? make_per_packet_flows(transport, cache.fabric()) : make_decomposed_flows(transport, cache);
}

}  // namespace manyworlds::core::network

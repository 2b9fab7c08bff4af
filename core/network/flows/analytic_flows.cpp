// Fidelity `analytic`: alpha-beta on the same routes. Each transfer takes what it would take if the fabric were its own
// (the store-and-forward closed form of its packets), whatever else is under way; no packet is simulated.
//
// It is a lower bound of the packet result, for every transfer, collective and step:
//  1. One transfer. Its packets take one path in order. On each link a packet begins to leave no earlier than it has
//     arrived and the packet before it has left, takes its serialisation, and arrives after the latency. Queues,
//     pauses, windows and rate control only ever add waiting; dropping all of it gives the closed form below.
//  2. A collective. A transfer starts when the last of those before it has finished and its members have entered; a
//     member exits when the last of its transfers has finished. These are maxima of sums, monotone in every duration
//     and entry, so by induction over the DAG nothing happens later than packet by packet.
//  3. A step. An operation begins when those before it have ended; kernels take what they take. The same induction.
// What would let something end earlier because something else ended later (a shared queue, priorities, kernels slowed
// by communication) has no place here.
#include <algorithm>
#include <queue>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/flows/memo.hpp"

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
  void set_ranks(const std::vector<std::uint32_t>&) override {}  // nothing is tied
  void add_rank(std::uint32_t) override {}

  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::vector<LinkSpec>& path = routes_[route];
    counters_.link_hops += packets_of(transport_, bytes) * static_cast<std::int64_t>(path.size());
    under_way_.push({now_ + uncontended_ps(transport_, path, bytes), id});
  }

  void advance(Time limit, std::vector<FlowId>& finished) override {
    if (under_way_.empty() || under_way_.top().at > limit) {
      if (limit != kNever) now_ = limit;
      return;
    }
    now_ = quiet_since_ = under_way_.top().at;
    for (; !under_way_.empty() && under_way_.top().at == now_; under_way_.pop())
      finished.push_back(under_way_.top().id);
  }

  Time now() const override { return now_; }
  bool drained() const override { return under_way_.empty(); }
  Time quiet_since() const override { return quiet_since_; }
  const Counters& counters() const override { return counters_; }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<AnalyticFlows>(*this); }

 private:
  struct End {
    Time at;
    FlowId id;
    auto operator<=>(const End&) const = default;
  };

  Transport transport_;
  Time now_ = 0, quiet_since_ = 0;
  std::vector<LinkSpec> links_;
  std::vector<std::vector<LinkSpec>> routes_;
  std::priority_queue<End, std::vector<End>, std::greater<>> under_way_;
  Counters counters_;
};

}  // namespace

/// The last packet leaves link h after the longest chain of services "packet i on link j" that goes on by one packet
/// or one link at a time. All packets but the last are full, so the chain stays with full ones up to some link, where
/// it waits for n - 2 more of them at the slowest link met so far, and goes on with the last one from there.
Time uncontended_ps(const Transport& transport, const std::vector<LinkSpec>& path, std::int64_t bytes) {
  const std::int64_t packets = packets_of(transport, bytes);
  const std::int64_t full_bytes = transport.payload_bytes + transport.header_bytes;
  const std::int64_t last_bytes = bytes - (packets - 1) * transport.payload_bytes + transport.header_bytes;
  Time latencies = 0, full_sum = 0, slowest = 0;
  Time chain = 0;  // the longest one so far that is with the last packet, this link included
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

std::unique_ptr<Flows> make_flows(const Transport& transport) {
  return transport.fidelity == Fidelity::analytic ? make_analytic_flows(transport) : make_plain_flows(transport);
}

std::unique_ptr<Flows> make_flows(Memo& memo) {
  const Transport& transport = memo.transport();
  return transport.fidelity == Fidelity::analytic ? make_analytic_flows(transport)
                                                  : make_divided_flows(transport, memo);
}

}  // namespace manyworlds::core::network

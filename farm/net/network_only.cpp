#include "farm/net/network_only.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/error.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/network/transports/pfc_headroom.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/compile/rank_layout.hpp"
#include "io/process/cpu_time.hpp"

namespace manyworlds::farm {
namespace {

using core::Time;
using core::network::FlowId;
using core::network::Flows;
using io::cpu_s;

/// Setup shared by both simulations: routes over the graph's links, and the flows that use them.
class NetworkSetup {
 public:
  NetworkSetup(const core::step::Configuration& configuration, bool plain)
      : configuration_(configuration),
        router_(configuration.graph, configuration.transport.routing,
                static_cast<std::uint64_t>(configuration.transport.seed)),
        per_packet_(core::network::needs_per_packet(configuration.transport)),
        plain_(plain || per_packet_),
        loads_(configuration.graph->links.size()) {
    if (per_packet_ && configuration.transport.fidelity == core::network::Fidelity::analytic)
      throw core::InputError(
          "fidelity: analytic bounds transfers on one path each (routing destination_mod_k or ecmp_hash, acks "
          "coalesced, "
          "fabric lossless, a transport that does not spray); take that, or fidelity: packet");
    if (!per_packet_) cache_.emplace(configuration.transport);
    core::network::check_pfc_headroom(*configuration.graph, configuration.transport);
  }

  void check_size(std::int64_t bytes) const {
    const std::int64_t max_packets = (std::int64_t{1} << 32) - 1;
    if (bytes / configuration_.transport.payload_bytes >= max_packets)
      throw core::InputError(
          fmt::format("{} bytes are more than {} packets of {} bytes; send less or set "
                      "transport.payload_bytes",
                      bytes, max_packets, configuration_.transport.payload_bytes));
  }
  core::network::Route route(std::uint32_t from, std::uint32_t to, std::uint64_t entropy) {
    return router_.route(from, to, entropy);
  }
  core::network::Router& router() { return router_; }
  /// Adds a transfer on `route` to the link loads. A lossless fabric sends nothing twice, so the load follows from the
  /// route.
  void load(const core::network::Route& route, std::int64_t bytes) {
    if (per_packet_) return;
    const auto& transport = configuration_.transport;
    const std::int64_t packets = core::network::packets_of(transport, bytes);
    const std::int64_t last = bytes - (packets - 1) * transport.payload_bytes + transport.header_bytes;
    for (const std::uint32_t link : route) {
      const std::int64_t rate = configuration_.graph->links[link].bits_per_second;
      loads_[link].packets += packets;
      loads_[link].bytes += bytes + packets * transport.header_bytes;
      loads_[link].busy_ps +=
          (packets - 1) * core::serialization_ps(transport.payload_bytes + transport.header_bytes, rate) +
          core::serialization_ps(last, rate);
    }
  }
  std::unique_ptr<Flows> flows() {
    auto created = per_packet_ ? core::network::make_per_packet_flows(configuration_.transport, configuration_.graph)
                   : plain_    ? core::network::make_flows(configuration_.transport)
                               : core::network::make_flows(*cache_);
    for (std::uint32_t link = 0; link < configuration_.graph->links.size(); ++link)
      created->add_link(core::network::spec_of(*configuration_.graph, link));
    return created;
  }
  /// Records the counters and loads of `network` (flows, or the traffic of a collective), which must be drained.
  template <class Network>
  void record_results(NetworkRun& run, const Network& network) {
    const core::network::Counters& counters = network.counters();
    run.loads = per_packet_ ? network.loads() : std::move(loads_);
    run.carried_ps =
        per_packet_ ? network.last_activity() - *std::min_element(run.starts.begin(), run.starts.end()) : run.elapsed();
    run.counters = counters;
    const bool packets = configuration_.transport.fidelity == core::network::Fidelity::packet;
    run.computed = plain_ && packets ? core::network::LinkHops{counters.link_hops, 0, 0} : cache_->link_hops();
  }

 private:
  const core::step::Configuration& configuration_;
  core::network::Router router_;
  bool per_packet_, plain_;
  std::optional<core::network::ComponentCache> cache_;  // absent if packets are simulated per packet
  std::vector<core::network::LinkLoad> loads_;          // by link of the graph, for pinned paths
};

/// Throws core::InputError if flows or the traffic of a collective are left over that can never move (PFC deadlock).
template <class Network>
void require_drained(const core::step::Configuration& configuration, const Network& network) {
  if (!network.drained()) core::network::throw_pfc_deadlock(*configuration.graph, network.deadlock());
}

}  // namespace

Time NetworkRun::end() const {
  return *std::max_element(ends.begin(), ends.end());
}
Time NetworkRun::elapsed() const {
  return end() - *std::min_element(starts.begin(), starts.end());
}

NetworkRun run_flows(const core::step::Configuration& configuration,
                     const std::vector<experiments::import::Flow>& flows, bool plain) {
  const double begin = cpu_s();
  NetworkSetup setup(configuration, plain);
  const auto network = setup.flows();
  network->set_tie_order({0});
  network->record_acknowledgements();
  NetworkRun run;
  std::vector<std::uint32_t> order(flows.size()), routes;
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return flows[a].start_ps < flows[b].start_ps; });
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    setup.check_size(flows[i].bytes);
    const core::network::Route route = setup.route(flows[i].source, flows[i].destination, i);
    setup.load(route, flows[i].bytes);
    routes.push_back(network->add_route(route));
    run.starts.push_back(flows[i].start_ps);
  }
  run.ends.resize(flows.size());
  std::vector<FlowId> finished;
  for (std::size_t next = 0, ended = 0; ended < flows.size() || !network->drained();) {
    while (next < order.size() && flows[order[next]].start_ps == network->now()) {
      const std::uint32_t flow = order[next++];
      network->start({0, flow}, routes[flow], flows[flow].bytes);
    }
    finished.clear();
    network->advance(next < order.size() ? flows[order[next]].start_ps : core::kNever, finished);
    if (finished.empty() && next == order.size()) require_drained(configuration, *network);
    for (const FlowId id : finished) run.ends[id.transfer] = network->now();
    ended += finished.size();
  }
  for (const auto& [id, at] : network->acknowledgements()) {
    run.acknowledged.resize(flows.size());
    run.acknowledged[id.transfer] = at;
  }
  setup.record_results(run, *network);
  run.cpu_s = cpu_s() - begin;
  return run;
}

NetworkRun run_collective(const core::step::Configuration& configuration, const core::collective::Shape& shape,
                          bool plain) {
  const double begin = cpu_s();
  NetworkSetup setup(configuration, plain);
  const auto dag = std::make_shared<const core::collective::Dag>(core::collective::build(shape));
  for (const auto& transfer : dag->transfers) setup.check_size(transfer.bytes);
  core::network::Traffic traffic(setup.flows());
  const core::step::Connectivity connectivity{dag->pairs, dag->switches};
  std::vector<std::uint32_t> gpus(dag->members);  // member i is GPU i
  std::iota(gpus.begin(), gpus.end(), 0u);
  std::vector<core::network::Route> routes;
  for (std::size_t pair = 0; pair < dag->pairs.size(); ++pair)
    routes.push_back(core::step::route_of(setup.router(), connectivity, gpus, pair, pair));
  for (const auto& transfer : dag->transfers) setup.load(routes[transfer.pair], transfer.bytes);
  const std::uint32_t number = traffic.add(dag, routes);
  traffic.set_tie_order({0});
  for (std::uint32_t member = 0; member < dag->members; ++member) traffic.enter(number, member);
  NetworkRun run;
  run.starts.assign(dag->members, 0);
  run.ends.resize(dag->members);
  std::vector<core::network::Exit> exits;
  while (exits.size() < dag->members || !traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(core::kNever, exits);
    if (exits.size() == before) require_drained(configuration, traffic);
  }
  for (const auto& exit : exits) run.ends[exit.member] = exit.at;
  setup.record_results(run, traffic);
  run.cpu_s = cpu_s() - begin;
  return run;
}

namespace {

CompletionTimes summarize_times(const std::vector<Time>& starts, const std::vector<Time>& ends) {
  std::vector<Time> times;
  for (std::size_t i = 0; i < ends.size(); ++i) times.push_back(ends[i] - starts[i]);
  std::sort(times.begin(), times.end());
  const auto rank = [&](std::size_t percent) { return times[(times.size() * percent + 99) / 100 - 1]; };
  double sum = 0;
  for (const Time time : times) sum += static_cast<double>(time);
  return {times.front(), rank(50), rank(99), times.back(), sum / static_cast<double>(times.size())};
}

}  // namespace

CompletionTimes completion_times_of(const NetworkRun& run) {
  return summarize_times(run.starts, run.ends);
}
CompletionTimes acknowledgement_times_of(const NetworkRun& run) {
  return summarize_times(run.starts, run.acknowledged);
}

}  // namespace manyworlds::farm

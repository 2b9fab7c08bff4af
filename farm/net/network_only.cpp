#include "farm/net/network_only.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/network/fabric/kept_link.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/network/transports/pfc_headroom.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/step/network/isolated.hpp"
#include "core/step/network/merged_collective.hpp"
#include "io/process/cpu_time.hpp"

namespace manyworlds::farm {
namespace {

using core::Time;
using core::collective::TransferGenerator;
using core::network::FlowId;
using core::network::Flows;
using io::cpu_s;

/// Setup shared by both simulations: routes over the graph's links, and the flows that use them.
class NetworkSetup {
 public:
  NetworkSetup(const core::step::Configuration& configuration, bool plain, core::HelperThreads* helpers)
      : configuration_(configuration),
        router_(configuration.graph, core::network::path_choice_of(configuration.transport)),
        per_packet_(core::network::needs_per_packet(configuration.transport) || configuration.has_failures()),
        plain_(plain || per_packet_),
        loads_(configuration.graph->links.size()) {
    if (configuration.transport.fidelity == core::network::Fidelity::fluid)
      throw core::InputError(
          "fidelity: fluid is of the collectives of a step; take packet or analytic for a network alone");
    if (per_packet_ && configuration.transport.fidelity == core::network::Fidelity::analytic)
      throw core::InputError(
          "fidelity: analytic bounds transfers on one path each (routing destination_mod_k or ecmp_hash, acks "
          "coalesced, "
          "fabric lossless, a transport that does not spray); take that, or fidelity: packet");
    if (!per_packet_) cache_.emplace(configuration.transport).simulate_with(helpers);
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
  /// Returns how any routing of the fabric gives the routes that are used, by number.
  using Routes = std::function<core::network::Route(core::network::Router&, std::uint32_t number)>;
  core::network::Router& router() { return router_; }
  /// Adds transfers on `route` to the link loads. A lossless fabric sends nothing twice, so the load follows from the
  /// route.
  void load(const core::network::Route& route, std::int64_t bytes, std::int64_t times = 1) {
    if (per_packet_) return;
    const auto& transport = configuration_.transport;
    const std::int64_t packets = core::network::packets_of(transport, bytes);
    const std::int64_t last = bytes - (packets - 1) * transport.payload_bytes + transport.header_bytes;
    for (const std::uint32_t link : route) {
      const std::int64_t rate = configuration_.graph->links[link].bits_per_second;
      loads_[link].packets += times * packets;
      loads_[link].bytes += times * (bytes + packets * transport.header_bytes);
      loads_[link].busy_ps +=
          times * ((packets - 1) * core::serialization_ps(transport.payload_bytes + transport.header_bytes, rate) +
                   core::serialization_ps(last, rate));
    }
  }
  /// Returns the cache of components; null if every packet is simulated.
  core::network::ComponentCache* cache() { return plain_ ? nullptr : &*cache_; }
  std::unique_ptr<Flows> flows(Routes routes) {
    auto created = configuration_.has_failures()
                       ? core::network::make_failing_flows(configuration_.transport, configuration_.graph,
                                                           configuration_.failures, std::move(routes))
                   : per_packet_ ? core::network::make_per_packet_flows(configuration_.transport, configuration_.graph)
                   : plain_      ? core::network::make_flows(configuration_.transport)
                                 : core::network::make_flows(*cache_);
    for (std::uint32_t link = 0; link < configuration_.graph->links.size(); ++link)
      created->add_link(core::network::spec_of(*configuration_.graph, link));
    return created;
  }
  /// Records the counters and loads of `network` (flows, or the traffic of a collective), which must be drained.
  template <class Network>
  void record_results(NetworkRun& run, const Network& network) {
    record_results(run, network.counters());
    if (!per_packet_) return;
    run.loads = network.loads();
    run.carried_ps = network.last_activity() - *std::min_element(run.starts.begin(), run.starts.end());
  }
  void record_results(NetworkRun& run, const core::network::Counters& counters) {
    run.loads = std::move(loads_);
    run.carried_ps = run.elapsed();
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
                     const std::vector<experiments::import::Flow>& flows, bool plain, core::HelperThreads* helpers) {
  const double begin = cpu_s();
  NetworkSetup setup(configuration, plain, helpers);
  const auto route = [&flows](core::network::Router& router, std::uint32_t flow) {
    return router.route(flows[flow].source, flows[flow].destination, flow);
  };
  const auto network = setup.flows(route);
  network->set_tie_order({0});
  network->record_acknowledgements();
  NetworkRun run;
  std::vector<std::uint32_t> order(flows.size()), routes;
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return flows[a].start_ps < flows[b].start_ps; });
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    setup.check_size(flows[i].bytes);
    const core::network::Route links = route(setup.router(), i);
    setup.load(links, flows[i].bytes);
    routes.push_back(network->add_route(links));
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
  const auto acknowledgements = network->acknowledgements();
  // Of a flow whose last acknowledgement a failed cable has lost nobody knows it.
  if (!configuration.has_failures() || acknowledgements.size() == flows.size())
    for (const auto& [id, at] : acknowledgements) {
      run.acknowledged.resize(flows.size());
      run.acknowledged[id.transfer] = at;
    }
  setup.record_results(run, *network);
  run.cpu_s = cpu_s() - begin;
  return run;
}

namespace {

/// The transfers of a collective, generated if its algorithm can and not all packets are in one event loop.
struct Transfers {
  std::shared_ptr<const TransferGenerator> generator;
  std::shared_ptr<const core::collective::Dag> dag;  // null if there is a generator

  Transfers(const core::collective::Shape& shape, bool plain) {
    if (!plain) generator = core::collective::generator_of(shape, shape.members);
    if (!generator) dag = std::make_shared<const core::collective::Dag>(core::collective::build(shape));
  }
  core::step::Connectivity connectivity() const {
    if (dag) return {dag->pairs, dag->switches};
    core::step::Connectivity result;
    for (std::uint32_t pair = 0; pair < generator->pairs(); ++pair) result.pairs.push_back(generator->ends(pair));
    return result;
  }
  std::uint32_t add_to(core::network::Traffic& traffic, const std::vector<core::network::Route>& routes) const {
    return generator ? traffic.add(generator, routes) : traffic.add(dag, routes);
  }
  bool has_parts() const { return dag && !dag->message.empty(); }
  std::uint64_t count() const { return generator ? generator->transfers() : dag->transfers.size(); }
  core::collective::Transfer operator[](std::uint32_t number) const {
    return generator ? generator->transfer(number) : dag->transfers[number];
  }
};

/// Returns the sizes of the transfers on each connection, each with its number of transfers.
std::vector<std::map<std::int64_t, std::int64_t>> sizes_by_pair(const TransferGenerator& generator) {
  std::vector<std::map<std::int64_t, std::int64_t>> result(generator.pairs());
  for (std::uint64_t number = 0; number < generator.transfers(); ++number) {
    const core::collective::Transfer transfer = generator.transfer(static_cast<std::uint32_t>(number));
    ++result[transfer.pair][transfer.bytes];
  }
  return result;
}

/// Simulates a collective of which some members are alike; returns whether it ends.
bool run_merged(const core::step::MergedCollective& merged, const core::network::Graph& graph,
                const std::vector<core::network::Route>& routes, NetworkSetup& setup, NetworkRun& run) {
  const auto sizes = sizes_by_pair(*merged.generator);
  for (const auto& of_pair : sizes)
    for (const auto& [bytes, times] : of_pair) setup.check_size(bytes);
  const auto result = core::step::simulate_merged(merged, graph, *setup.cache());
  if (!result) return false;
  for (std::uint32_t pair = 0; pair < routes.size(); ++pair)
    for (const auto& [bytes, times] : sizes[merged.representative(pair)]) setup.load(routes[pair], bytes, times);
  run.ends = result->exits;
  setup.record_results(run, result->counters);
  return true;
}

/// Simulates all transfers of a collective.
void run_whole(const core::step::Configuration& configuration, const Transfers& transfers,
               const std::vector<core::network::Route>& routes, const NetworkSetup::Routes& rerouted,
               NetworkSetup& setup, NetworkRun& run) {
  if (transfers.count() > UINT32_MAX)
    throw core::InputError(
        fmt::format("a collective of {} transfers of which none are alike cannot be simulated; at "
                    "most {} can",
                    transfers.count(), UINT32_MAX));
  for (std::uint64_t number = 0; number < transfers.count(); ++number) {
    const core::collective::Transfer transfer = transfers[static_cast<std::uint32_t>(number)];
    setup.check_size(transfer.bytes);
    setup.load(routes[transfer.pair], transfer.bytes);
  }
  // Only critical paths know which transfers are parts of one message.
  if (configuration.transport.fidelity == core::network::Fidelity::analytic && transfers.has_parts()) {
    core::step::Connections connections;
    connections.routes = routes;
    const auto result =
        core::step::uncontended(*transfers.dag, connections, *configuration.graph, configuration.transport);
    run.ends = result.exits;
    setup.record_results(run, result.counters);
    return;
  }
  core::network::Traffic traffic(setup.flows(rerouted));
  const std::uint32_t collective = transfers.add_to(traffic, routes);
  traffic.set_tie_order({0});
  const auto members = static_cast<std::uint32_t>(run.starts.size());
  for (std::uint32_t member = 0; member < members; ++member) traffic.enter(collective, member);
  run.ends.resize(members);
  std::vector<core::network::Exit> exits;
  while (exits.size() < members || !traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(core::kNever, exits);
    if (exits.size() == before) require_drained(configuration, traffic);
  }
  for (const auto& exit : exits) run.ends[exit.member] = exit.at;
  setup.record_results(run, traffic);
}

}  // namespace

NetworkRun run_collective(const core::step::Configuration& configuration, const core::collective::Shape& shape,
                          bool plain, core::HelperThreads* helpers) {
  const double begin = cpu_s();
  NetworkSetup setup(configuration, plain, helpers);
  const Transfers transfers(shape, plain);
  const core::step::Connectivity connectivity = transfers.connectivity();
  std::vector<std::uint32_t> gpus(shape.members);  // member i is GPU i
  std::iota(gpus.begin(), gpus.end(), 0u);
  std::vector<core::network::Route> routes;
  for (std::size_t pair = 0; pair < connectivity.pairs.size(); ++pair)
    routes.push_back(core::step::route_of(setup.router(), connectivity, gpus, pair, pair));
  const auto rerouted = [&](core::network::Router& router, std::uint32_t pair) -> core::network::Route {
    const auto& [from, to] = connectivity.pairs[pair];
    if (std::max(from, to) >= shape.members)
      return {core::network::kept_link(router.graph(), *configuration.graph, routes[pair].front())};
    return core::step::route_of(router, connectivity, gpus, pair, pair);
  };
  NetworkRun run;
  run.starts.assign(shape.members, 0);
  std::optional<core::step::MergedCollective> merged;
  if (setup.cache() != nullptr)
    merged = core::step::merge_members(shape, routes, *configuration.graph, configuration.transport);
  if (!merged || !run_merged(*merged, *configuration.graph, routes, setup, run))
    run_whole(configuration, transfers, routes, rerouted, setup, run);
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

#include "farm/net/network_only.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/error.hpp"
#include "core/network/fabric/fabric.hpp"
#include "core/network/flows/memo.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/network/transports/lossless.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/world/layout.hpp"
#include "io/process/cpu_time.hpp"

namespace manyworlds::farm {
namespace {

using core::Time;
using core::network::FlowId;
using core::network::Flows;
using io::cpu_s;

/// What both simulations need: routes over the graph's links, and flows that know them.
class Setting {
 public:
  Setting(const core::step::Configuration& world, bool plain)
      : world_(world),
        router_(world.graph, world.transport.routing, static_cast<std::uint64_t>(world.transport.seed)),
        individuals_(core::network::needs_individuals(world.transport)),
        plain_(plain || individuals_),
        loads_(world.graph->links.size()) {
    if (individuals_ && world.transport.fidelity == core::network::Fidelity::analytic)
      throw core::InputError(
          "fidelity: analytic bounds transfers on one path each (routing destination_mod_k or ecmp_hash, acks "
          "coalesced, "
          "fabric lossless, a transport that does not spray); take that, or fidelity: packet");
    if (!individuals_) memo_.emplace(world.transport);
    core::network::check_lossless(*world.graph, world.transport);
  }

  void check_size(std::int64_t bytes) const {
    const std::int64_t most = (std::int64_t{1} << 32) - 1;
    if (bytes / world_.transport.payload_bytes >= most)
      throw core::InputError(
          fmt::format("{} bytes are more than {} packets of {} bytes; send less or set "
                      "transport.payload_bytes",
                      bytes, most, world_.transport.payload_bytes));
  }
  core::network::Route route(std::uint32_t from, std::uint32_t to, std::uint64_t entropy) {
    return router_.route(from, to, entropy);
  }
  core::network::Router& router() { return router_; }
  /// A transfer takes this route. Nothing is sent twice on a lossless fabric, so what a link carries is known.
  void load(const core::network::Route& route, std::int64_t bytes) {
    if (individuals_) return;
    const auto& transport = world_.transport;
    const std::int64_t packets = core::network::packets_of(transport, bytes);
    const std::int64_t last = bytes - (packets - 1) * transport.payload_bytes + transport.header_bytes;
    for (const std::uint32_t link : route) {
      const std::int64_t rate = world_.graph->links[link].bits_per_second;
      loads_[link].packets += packets;
      loads_[link].bytes += bytes + packets * transport.header_bytes;
      loads_[link].busy_ps +=
          (packets - 1) * core::serialization_ps(transport.payload_bytes + transport.header_bytes, rate) +
          core::serialization_ps(last, rate);
    }
  }
  std::unique_ptr<Flows> flows() {
    auto made = individuals_ ? core::network::make_individual_flows(world_.transport, world_.graph)
                : plain_     ? core::network::make_flows(world_.transport)
                             : core::network::make_flows(*memo_);
    for (std::uint32_t link = 0; link < world_.graph->links.size(); ++link)
      made->add_link(core::network::spec_of(*world_.graph, link));
    return made;
  }
  /// `network` is drained: flows, or a collective's traffic.
  template <class Network>
  void count(NetworkRun& run, const Network& network) {
    const core::network::Counters& counters = network.counters();
    run.loads = individuals_ ? network.loads() : std::move(loads_);
    run.carried_ps =
        individuals_ ? network.quiet_since() - *std::min_element(run.starts.begin(), run.starts.end()) : run.elapsed();
    run.counters = counters;
    const bool packets = world_.transport.fidelity == core::network::Fidelity::packet;
    run.computed = plain_ && packets ? core::network::LinkHops{counters.link_hops, 0, 0} : memo_->link_hops();
  }

 private:
  const core::step::Configuration& world_;
  core::network::Router router_;
  bool individuals_, plain_;
  std::optional<core::network::Memo> memo_;     // unless packets are individuals
  std::vector<core::network::LinkLoad> loads_;  // by link of the graph, of pinned paths
};

/// Throws InputError if something is left of flows or a collective's traffic that nothing will ever move.
template <class Network>
void require_end(const core::step::Configuration& world, const Network& network) {
  if (!network.drained()) core::network::throw_pause_deadlock(*world.graph, network.standstill());
}

}  // namespace

Time NetworkRun::end() const {
  return *std::max_element(ends.begin(), ends.end());
}
Time NetworkRun::elapsed() const {
  return end() - *std::min_element(starts.begin(), starts.end());
}

NetworkRun run_flows(const core::step::Configuration& world, const std::vector<experiments::import::Flow>& flows,
                     bool plain) {
  const double begin = cpu_s();
  Setting setting(world, plain);
  const auto network = setting.flows();
  network->set_ranks({0});
  network->keep_acknowledgements();
  NetworkRun run;
  std::vector<std::uint32_t> order(flows.size()), routes;
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return flows[a].start_ps < flows[b].start_ps; });
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    setting.check_size(flows[i].bytes);
    const core::network::Route route = setting.route(flows[i].source, flows[i].destination, i);
    setting.load(route, flows[i].bytes);
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
    if (finished.empty() && next == order.size()) require_end(world, *network);
    for (const FlowId id : finished) run.ends[id.transfer] = network->now();
    ended += finished.size();
  }
  for (const auto& [id, at] : network->acknowledgements()) {
    run.acknowledged.resize(flows.size());
    run.acknowledged[id.transfer] = at;
  }
  setting.count(run, *network);
  run.cpu_s = cpu_s() - begin;
  return run;
}

NetworkRun run_collective(const core::step::Configuration& world, const core::collective::Shape& shape, bool plain) {
  const double begin = cpu_s();
  Setting setting(world, plain);
  const auto dag = std::make_shared<const core::collective::Dag>(core::collective::build(shape));
  for (const auto& transfer : dag->transfers) setting.check_size(transfer.bytes);
  core::network::Traffic traffic(setting.flows());
  const core::step::Wires wires{dag->pairs, dag->switches};
  std::vector<std::uint32_t> gpus(dag->members);  // member i is GPU i
  std::iota(gpus.begin(), gpus.end(), 0u);
  std::vector<core::network::Route> routes;
  for (std::size_t pair = 0; pair < dag->pairs.size(); ++pair)
    routes.push_back(core::step::route_of(setting.router(), wires, gpus, pair, pair));
  for (const auto& transfer : dag->transfers) setting.load(routes[transfer.pair], transfer.bytes);
  const std::uint32_t number = traffic.add(dag, routes);
  traffic.set_ranks({0});
  for (std::uint32_t member = 0; member < dag->members; ++member) traffic.enter(number, member);
  NetworkRun run;
  run.starts.assign(dag->members, 0);
  run.ends.resize(dag->members);
  std::vector<core::network::Exit> exits;
  while (exits.size() < dag->members || !traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(core::kNever, exits);
    if (exits.size() == before) require_end(world, traffic);
  }
  for (const auto& exit : exits) run.ends[exit.member] = exit.at;
  setting.count(run, traffic);
  run.cpu_s = cpu_s() - begin;
  return run;
}

namespace {

Completion figures_of(const std::vector<Time>& starts, const std::vector<Time>& ends) {
  std::vector<Time> times;
  for (std::size_t i = 0; i < ends.size(); ++i) times.push_back(ends[i] - starts[i]);
  std::sort(times.begin(), times.end());
  const auto rank = [&](std::size_t percent) { return times[(times.size() * percent + 99) / 100 - 1]; };
  double sum = 0;
  for (const Time time : times) sum += static_cast<double>(time);
  return {times.front(), rank(50), rank(99), times.back(), sum / static_cast<double>(times.size())};
}

}  // namespace

Completion completion_of(const NetworkRun& run) {
  return figures_of(run.starts, run.ends);
}
Completion acknowledgement_of(const NetworkRun& run) {
  return figures_of(run.starts, run.acknowledged);
}

}  // namespace manyworlds::farm

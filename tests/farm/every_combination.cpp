// Every registered fabric with every registered transport and every collective algorithm, for each kind that it can do,
// as `manyworlds net` runs them: it ends, every transfer arrives once, no packet is on a link too often, no link
// carries more than it can, and nothing is faster than alpha and beta. The lists are the registries', so that what is
// new is tested before its author writes a test.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>

#include "core/collective/algorithms/registry.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "experiments/import/topology.hpp"
#include "experiments/text/text.hpp"
#include "farm/net/net_collective.hpp"
#include "farm/net/network_only.hpp"
#include "tests/source_folder.hpp"
#include "topologies/fabrics/registry.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using core::Time;
using core::collective::Dag;
using core::network::FlowId;
using core::network::Transport;

namespace {

// ---- What there is ----

struct Fabric {
  std::string name;
  std::int64_t gpus_per_node = 0;
  std::shared_ptr<const core::network::Graph> graph;
};

/// Sixteen GPUs on every fabric; those that are read, from a sample.
std::vector<Fabric> fabrics() {
  std::vector<Fabric> all;
  for (const topologies::Topology& topology : topologies::registry()) {
    topologies::FabricSpec spec;
    spec.nodes = spec.gpus_per_node = 4;
    spec.scale_up_bits_per_second = 3'600'000'000'000;
    spec.scale_up_latency_ps = 500'000;
    spec.nic_bits_per_second = 400'000'000'000;
    spec.nic_latency_ps = 1'000'000;
    if (topology.traits.from_file) {
      const std::string path = source_folder() + "/tests/experiments/topologies/spectrum_x_16g_8gps_400gbps_h100.txt";
      auto file = experiments::import::parse_topology(experiments::import::read_text(path), path);
      spec.gpus_per_node = file.gpus_per_server;
      spec.nodes = file.graph.gpus / file.gpus_per_server;
      spec.nic_bits_per_second = 0;
      spec.loaded_graph = std::make_shared<const topologies::LoadedGraph>(
          topologies::LoadedGraph{std::move(file.graph), file.gpus_per_server});
    }
    all.push_back({topology.name, spec.gpus_per_node,
                   std::make_shared<const core::network::Graph>(topology.build(topology.traits.small_options, spec))});
    REQUIRE(all.back().graph->gpus == 16);
  }
  return all;
}

/// Every transport in each of the engines that it has: on pinned paths, and with packets that choose their way and
/// acknowledgements that are packets.
std::vector<Transport> all_transports() {
  std::vector<Transport> all;
  for (const auto& type : core::network::transports()) {
    Transport transport;
    transport.kind = type.name;
    transport.ecn_kmin_bytes = 2'000;  // at 100 Gb/s: the messages here are short, and some shall be marked
    transport.ecn_kmax_bytes = 8'000;
    if (type.make_engine != nullptr || type.trims) all.push_back(transport);
    if (type.make_per_packet == nullptr || type.trims) continue;
    transport.routing = core::network::Routing::spray;
    transport.acks = core::network::Acks::in_band;
    all.push_back(transport);
  }
  return all;
}

// ---- A run that is watched ----

struct Watched {
  struct Transfer {
    std::uint32_t route;
    std::int64_t bytes;
    Time start, end = -1;
  };
  std::map<std::uint32_t, Transfer> transfers;
  std::vector<core::network::Route> routes;
};

/// Flows that keep a record of what starts and ends.
class WatchedFlows final : public core::network::Flows {
 public:
  WatchedFlows(std::unique_ptr<Flows> flows, Watched& seen) : flows_(std::move(flows)), seen_(&seen) {}

  std::uint32_t add_link(const core::network::LinkSpec& spec) override { return flows_->add_link(spec); }
  std::uint32_t add_route(const core::network::Route& route) override {
    seen_->routes.push_back(route);
    return flows_->add_route(route);
  }
  void set_tie_order(const std::vector<std::uint32_t>& ranks) override { flows_->set_tie_order(ranks); }
  void add_tie_order(std::uint32_t rank) override { flows_->add_tie_order(rank); }
  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    if (!seen_->transfers.try_emplace(id.transfer, Watched::Transfer{route, bytes, now()}).second)
      FAIL("transfer " << id.transfer << " starts a second time");
    flows_->start(id, route, bytes);
  }
  void advance(Time limit, std::vector<FlowId>& finished) override {
    const std::size_t before = finished.size();
    flows_->advance(limit, finished);
    for (std::size_t i = before; i < finished.size(); ++i) {
      Time& end = seen_->transfers.at(finished[i].transfer).end;
      if (end >= 0) FAIL("transfer " << finished[i].transfer << " ends a second time");
      end = now();
    }
  }
  Time now() const override { return flows_->now(); }
  bool drained() const override { return flows_->drained(); }
  Time last_activity() const override { return flows_->last_activity(); }
  const core::network::Counters& counters() const override { return flows_->counters(); }
  std::unique_ptr<Flows> clone() const override { return nullptr; }

 private:
  std::unique_ptr<Flows> flows_;
  Watched* seen_;
};

struct Result {
  std::vector<Time> ends;  // by member
  Watched seen;
  core::network::Counters counters;
};

/// In one event loop, every packet by itself.
Result run_watched(const core::step::Configuration& configuration, const std::shared_ptr<const Dag>& dag) {
  Result result;
  auto flows = core::network::needs_per_packet(configuration.transport)
                   ? core::network::make_per_packet_flows(configuration.transport, configuration.graph)
                   : core::network::make_flows(configuration.transport);
  core::network::Traffic traffic(std::make_unique<WatchedFlows>(std::move(flows), result.seen));
  for (std::uint32_t link = 0; link < configuration.graph->links.size(); ++link)
    traffic.add_link(core::network::spec_of(*configuration.graph, link));
  core::network::Router router(configuration.graph, configuration.transport.routing,
                               static_cast<std::uint64_t>(configuration.transport.seed));
  std::vector<std::uint32_t> gpus(dag->members);
  std::iota(gpus.begin(), gpus.end(), 0u);
  std::vector<core::network::Route> routes;
  for (std::size_t pair = 0; pair < dag->pairs.size(); ++pair)
    routes.push_back(core::step::route_of(router, {dag->pairs, dag->switches}, gpus, pair, pair));
  const std::uint32_t number = traffic.add(dag, routes);
  traffic.set_tie_order({0});
  for (std::uint32_t member = 0; member < dag->members; ++member) traffic.enter(number, member);
  std::vector<core::network::Exit> exits;
  while (exits.size() < dag->members || !traffic.drained()) traffic.advance(core::kNever, exits);
  result.ends.resize(dag->members);
  for (const auto& exit : exits) result.ends[exit.member] = exit.at;
  result.counters = traffic.counters();
  return result;
}

// ---- What must hold ----

/// Whether packets of a transfer may overtake each other.
bool chooses(const Transport& transport) {
  return core::network::transport_type(transport).trims || transport.routing > core::network::Routing::ecmp_hash;
}

/// What no transfer can be faster than: itself, or, if its short last packet may overtake the others, its full ones.
std::int64_t counted_bytes(const Transport& transport, std::int64_t bytes) {
  const bool several = bytes > transport.payload_bytes;
  return chooses(transport) && several ? bytes / transport.payload_bytes * transport.payload_bytes : bytes;
}

/// When members would be done if every transfer had the fabric to itself.
std::vector<Time> analytic_ends(core::step::Configuration configuration, Dag dag) {
  for (auto& transfer : dag.transfers) transfer.bytes = counted_bytes(configuration.transport, transfer.bytes);
  configuration.transport = {};
  configuration.transport.fidelity = core::network::Fidelity::analytic;
  return run_watched(configuration, std::make_shared<const Dag>(std::move(dag))).ends;
}

/// What crosses links in all: a packet that crosses three counts three times.
struct Carried {
  std::int64_t packets = 0, bytes = 0;
};

/// Every transfer of the DAG takes place once, with its bytes, and takes no less than it would alone. Returns what
/// carries them, headers included.
Carried check_transfers(const core::step::Configuration& configuration, const Dag& dag, const Watched& seen) {
  REQUIRE(seen.transfers.size() == dag.transfers.size());
  Carried carried;
  for (const auto& [number, transfer] : seen.transfers) {
    const core::network::Route& route = seen.routes[transfer.route];
    std::vector<core::network::LinkSpec> path;
    for (const std::uint32_t link : route) path.push_back(core::network::spec_of(*configuration.graph, link));
    const bool whole = transfer.bytes == dag.transfers[number].bytes && transfer.route == dag.transfers[number].pair;
    const Time least = core::network::uncontended_ps(configuration.transport, path,
                                                     counted_bytes(configuration.transport, transfer.bytes));
    if (!whole || transfer.end - transfer.start < least)
      FAIL("transfer " << number << " of " << transfer.bytes << " bytes takes " << transfer.end - transfer.start
                       << " ps; alone it takes " << least);
    const std::int64_t packets = core::network::packets_of(configuration.transport, transfer.bytes);
    const auto links = static_cast<std::int64_t>(route.size());
    carried.packets += links * packets;
    carried.bytes += links * (transfer.bytes + packets * configuration.transport.header_bytes);
  }
  return carried;
}

/// As `net` runs it: the same picoseconds, links carry the transfers and nothing else, and no more than they can.
void check_net(const core::step::Configuration& configuration, const core::collective::Shape& shape,
               const Result& watched, Carried expected) {
  const NetworkRun run = run_collective(configuration, shape, false);
  REQUIRE(run.ends == watched.ends);
  Carried carried;
  for (const auto& load : run.loads) {
    carried.packets += load.packets;
    carried.bytes += load.bytes;
    REQUIRE(load.busy_ps <= run.carried_ps);
  }
  REQUIRE(carried.packets == watched.counters.link_hops);
  REQUIRE(carried.packets == run.counters.link_hops);
  REQUIRE(run.counters.drops == 0);
  REQUIRE(run.counters.retransmissions == run.counters.trims);  // what was cut is sent once more, and nothing else
  if (core::network::transport_type(configuration.transport).trims) {
    REQUIRE(carried.packets > expected.packets);  // and control packets
    REQUIRE(carried.bytes > expected.bytes);
    return;
  }
  REQUIRE(run.counters.trims == 0);
  if (configuration.transport.acks == core::network::Acks::in_band) {  // each packet is acknowledged by one
    expected.bytes += expected.packets * configuration.transport.ack_bytes;
    expected.packets *= 2;
  }
  REQUIRE(carried.packets == expected.packets);
  REQUIRE(carried.bytes == expected.bytes);
}

void check_combination(core::step::Configuration configuration, const core::collective::Shape& shape,
                       std::map<std::string, std::int64_t>& marks) {
  INFO(
      configuration.transport.kind << (core::network::needs_per_packet(configuration.transport) ? ", per packet" : ""));
  const auto dag = std::make_shared<const Dag>(core::collective::build(shape));
  const Result watched = run_watched(configuration, dag);
  check_net(configuration, shape, watched, check_transfers(configuration, *dag, watched.seen));
  const std::vector<Time> bounds = analytic_ends(configuration, *dag);
  for (std::size_t member = 0; member < bounds.size(); ++member)
    if (watched.ends[member] < bounds[member])
      FAIL("member " << member << " is done at " << watched.ends[member] << " ps; alpha and beta alone are "
                     << bounds[member]);
  marks[configuration.transport.kind] += watched.counters.ecn_marks;
}

}  // namespace

TEST_CASE("every fabric, transport and collective together: all of it arrives once, and none of it too early") {
  const std::vector<Transport> transports = all_transports();
  std::map<std::string, std::int64_t> marks;
  for (const Fabric& fabric : fabrics())
    for (const auto& algorithm : core::collective::algorithms())
      for (const auto kind : algorithm.kinds) {
        INFO(fabric.name << ", " << core::collective::name_of(kind) << " by " << algorithm.name);
        core::step::Configuration configuration;
        configuration.graph = fabric.graph;
        configuration.gpus_per_node = fabric.gpus_per_node;
        const auto shape = collective_of(configuration, core::collective::name_of(kind), algorithm.name, 200'003);
        REQUIRE(shape.algorithm == algorithm.algorithm);
        for (const Transport& transport : transports) {
          configuration.transport = transport;
          check_combination(configuration, shape, marks);
        }
      }
  for (const auto& type : core::network::transports()) {
    INFO(type.name);
    CHECK((marks[type.name] > 0) == type.marks);  // there was something to react to
  }
}

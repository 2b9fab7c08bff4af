// Tables of the structs that have no room of their own, and the way from settings to structs.
#include "experiments/config/world.hpp"

#include <algorithm>
#include <cmath>

#include "core/network/transports/registry.hpp"
#include "experiments/config/inputs.hpp"
#include "experiments/config/routing.hpp"
#include "experiments/config/vocabulary.hpp"

namespace manyworlds::experiments {
namespace {

using core::choice;
using core::option;
using core::OptionInfo;
using core::OptionSet;
using core::step::Configuration;

/// The settings directly under `path` that `options` names; absent figures stay at the struct's own default.
OptionSet values_under(const Settings& settings, const std::string& path, const std::vector<OptionInfo>& options) {
  OptionSet values;
  for (const OptionInfo& info : options)
    if (const auto found = settings.find(path + info.name); found != settings.end())
      values.insert({info.name, found->second});
  return values;
}

/// Straight from setting to member: sweeps of 100,000 experiments come here several times for each.
template <class T>
T make(const core::OptionTable<T>& table, const Settings& settings, const std::string& path) {
  T made{};
  std::string key = path;
  for (const auto& row : table.rows()) {
    key.replace(path.size(), std::string::npos, row.info.name);
    if (const auto found = settings.find(key); found != settings.end()) row.set(made, found->second);
  }
  return made;
}

const std::string& text_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  MANYWORLDS_CHECK(found != settings.end(), "no setting '{}'", key);
  return std::get<std::string>(found->second);
}

std::int64_t rounded(double value) {
  return static_cast<std::int64_t>(std::llround(value));
}

/// Parts per million, and no tolerance above 0 becomes none.
std::int64_t parts_per_million(double share) {
  return static_cast<std::int64_t>(std::ceil(share * 1e6));
}

core::network::Transport transport_of(const Settings& settings) {
  auto transport = make(core::network::transport_options(), settings, "transport.");
  transport.fidelity =
      text_of(settings, "fidelity") == "analytic" ? core::network::Fidelity::analytic : core::network::Fidelity::packet;
  transport.kind = text_of(settings, "transport");
  transport.own = values_under(settings, "transport.", core::network::transport_type(transport).own);
  transport.rate_tolerance_ppm = parts_per_million(make(skip_options(), settings, "skip.").rate_tolerance);
  return transport;
}

/// Figures that the rule for copies of experts is not told.
void reckon_with(core::workload::Strategy& strategy, const core::compute::Gpu& gpu, const Cluster& cluster) {
  if (strategy.hot_expert_tflops == 0) strategy.hot_expert_tflops = gpu.matrix_tflops * gpu.gemm_efficiency;
  if (strategy.hot_expert_gbps == 0) strategy.hot_expert_gbps = cluster.nic_gbps_of_gpu();
}

bool names_table(const Settings& settings, const std::string& gpu) {
  const auto table = settings.find(gpu + "measured_kernels");
  return table != settings.end() && !std::get<std::string>(table->second).empty();
}

/// Nodes behind the first ones.
std::vector<OtherNodes> others_of(const Settings& settings, World& world) {
  std::vector<OtherNodes> others;
  for (const std::string group : kNodeGroups) {
    const std::string path = "cluster." + group + ".";
    if (settings.count(path + "nodes") == 0) continue;
    others.push_back({make(node_group_options(), settings, path),
                      make(core::compute::gpu_options(), settings, path + "gpu."),
                      make(power_options(), settings, path + "gpu.")});
    world.measures_kernels |= names_table(settings, path + "gpu.");
  }
  return others;
}

}  // namespace

const core::OptionTable<Skip>& skip_options() {
  static const core::OptionTable<Skip> table{
      option("rate_tolerance", &Skip::rate_tolerance,
             "transfers whose rates stay within this share of themselves may go on by rate for a while, packets "
             "uncounted; 0: never, every answer exact",
             {0, 0.5}),
  };
  return table;
}

const core::OptionTable<Cluster>& cluster_options() {
  static const core::OptionTable<Cluster> table{
      option("nodes", &Cluster::nodes, "machines", {1, 131'072}),
      option("gpus_per_node", &Cluster::gpus_per_node, "GPUs of one machine", {1, 576}),
      option("nic_gbps", &Cluster::nic_gbps,
             "network bandwidth of one GPU, one direction; of one NIC where nics_per_node is given", {0.001, 1e6},
             "Gb/s"),
      option("nics_per_node", &Cluster::nics_per_node,
             "NICs of one machine: fewer than GPUs, which share them in order, or several for each; 0: one for each",
             {0, 4'096}),
      option("nic_latency_us", &Cluster::nic_latency_us, "latency of one link of the fabric, switching included",
             {0.000001, 1e6}, "us"),
      option("usd_per_gpu_hour", &Cluster::usd_per_gpu_hour,
             "price of one GPU for an hour, its share of hosts and network included", {0.000001, 1e6}, "USD/h"),
      option("memory_headroom", &Cluster::memory_headroom,
             "share of a GPU's memory that is to stay free: for what the prediction of peak memory is off by, and for "
             "what the allocator cannot use",
             {0, 0.9}),
      choice("network", &Cluster::network, {"infiniband", "roce"},
             "what the NICs speak; today's practice follows it: roce has transport dcqcn and routing ecmp_hash, "
             "infiniband a static window and routing destination_mod_k"),
  };
  return table;
}

const core::OptionTable<Configuration>& placement_options() {
  static const core::OptionTable<Configuration> table{
      choice("order", &Configuration::placement, {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"},
             "the order in which ranks fill GPUs, fastest first"),
  };
  return table;
}

const core::OptionTable<Configuration>& step_options() {
  static const core::OptionTable<Configuration> table{
      choice("composition", &Configuration::composition, {"composed", "coupled"},
             "composed: only what meets is simulated together; coupled: the whole step in one event loop, the oracle"),
      option(
          "tick_ns", &Configuration::tick_ns,
          "what GPUs do begins and ends on ticks of a clock, so that more of a step's traffic is alike and simulated "
          "once; 0: to the picosecond",
          {0, 1e6}, "ns"),
  };
  return table;
}

const core::OptionTable<core::step::Limit>& limit_options() {
  static const core::OptionTable<core::step::Limit> table{
      option("link_hops", &core::step::Limit::link_hops, "packets times links; a world beyond is too_large",
             {1, 9'007'199'254'740'992}),
      option("events", &core::step::Limit::events, "events; a world beyond is too_large", {1, 9'007'199'254'740'992}),
  };
  return table;
}

topologies::Site World::site() const {
  topologies::Site site;
  site.nodes = cluster.nodes;
  site.gpus_per_node = cluster.gpus_per_node;
  site.scale_up = configuration.gpu.scale_up;
  site.scale_up_bits_per_second = rounded(configuration.gpu.scale_up_gb_per_s * 8e9);
  site.scale_up_latency_ps = rounded(configuration.gpu.scale_up_latency_us * static_cast<double>(core::kMicrosecond));
  site.scale_up_planes = configuration.gpu.scale_up_planes;
  site.pcie_switch_gpus = configuration.gpu.pcie_switch_gpus;
  const bool shared = cluster.shares_nics();
  if (shared) site.shared_nics = cluster.nics_per_node;
  site.host_bits_per_second = rounded(configuration.gpu.host_gb_per_s * 8e9);
  double nic_gbps = shared ? cluster.nic_gbps : cluster.nic_gbps_of_gpu();  // the fabric is that of the fastest NICs
  for (const MachineKind& kind : machines) nic_gbps = std::max(nic_gbps, kind.node.nic_gbps);
  site.nic_bits_per_second = rounded(nic_gbps * 1e9);
  site.nic_latency_ps = rounded(cluster.nic_latency_us * static_cast<double>(core::kMicrosecond));
  return site;
}

World world_of(const Settings& settings, std::shared_ptr<const Inputs> inputs) {
  World world;
  world.inputs = std::move(inputs);
  world.cluster = make(cluster_options(), settings, "cluster.");
  world.power = make(power_options(), settings, "cluster.gpu.");
  world.machine_power = make(machine_power_options(), settings, "cluster.");
  world.price = make(price_options(), settings, "cluster.");
  world.training = make(training_options(), settings, "training.");
  Configuration& made = world.configuration;
  const Configuration step = make(step_options(), settings, "");
  made.composition = step.composition;
  made.tick_ns = step.tick_ns;
  made.placement = make(placement_options(), settings, "placement.").placement;
  made.collectives = make(core::collective::library_options(), settings, "collectives.");
  made.collectives.calibration = make(core::collective::calibration_options(), settings, "cluster.gpu.");
  made.limit = make(limit_options(), settings, "limit.");
  made.model = make(core::workload::model_options(), settings, "model.");
  RoutingChoice routing = routing_of(settings, world.inputs.get(), made.model);
  made.model.routing = std::move(routing.routing);
  world.routing_fault = std::move(routing.fault);
  made.gpu = make(core::compute::gpu_options(), settings, "cluster.gpu.");
  made.strategy = make(core::workload::strategy_options(), settings, "strategy.");
  made.strategy.stack = make(core::workload::stack_options(), settings, "strategy.stack.");
  if (world.inputs) made.strategy.written = written_schedule(settings, *world.inputs);
  if (made.strategy.hot_experts) reckon_with(made.strategy, made.gpu, world.cluster);
  made.transport = transport_of(settings);
  world.faults = make(fault_options(), settings, "faults.");
  made.gpus_per_node = world.cluster.gpus_per_node;
  made.memory_headroom = world.cluster.memory_headroom;
  world.measures_kernels = names_table(settings, "cluster.gpu.");
  add_machines(world, others_of(settings, world));
  const std::int64_t replica = made.strategy.tp * made.strategy.cp * made.strategy.pp;
  made.strategy.dp = world.cluster.gpus() % replica == 0 ? world.cluster.gpus() / replica : 0;

  world.topology = text_of(settings, "topology");
  const Alternative* chosen = find_alternative(*find_branch(vocabulary().branches, "topology"), world.topology);
  MANYWORLDS_CHECK(chosen, "no topology '{}'", world.topology);
  world.topology_options = values_under(settings, "topology.", chosen->options);
  return world;
}

}  // namespace manyworlds::experiments

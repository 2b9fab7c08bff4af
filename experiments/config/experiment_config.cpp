// Option tables of structs that have no file of their own, and the conversion from settings to structs.
#include "experiments/config/experiment_config.hpp"

#include <algorithm>
#include <cmath>

#include "core/network/transports/registry.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "experiments/config/collective_groups.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/config/stage_split.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/key_contents/documents.hpp"
#include "experiments/key_contents/expert_routing.hpp"
#include "experiments/key_contents/measured_shapes.hpp"
#include "experiments/key_contents/named_tables.hpp"

namespace manyworlds::experiments {
namespace {

/// Of the only node where no NIC is given: nothing leaves it, so that all rates give the same step.
constexpr double kUnusedNicGbps = 100;

using core::choice;
using core::option;
using core::OptionInfo;
using core::OptionSet;
using core::step::Configuration;

/// Returns the settings directly under `path` that `options` lists; missing ones keep the struct's default.
OptionSet values_under(const Settings& settings, const std::string& path, const std::vector<OptionInfo>& options) {
  OptionSet values;
  for (const OptionInfo& info : options)
    if (const auto found = settings.find(path + info.name); found != settings.end())
      values.insert({info.name, found->second});
  return values;
}

/// Returns the rows of the only table of T with many options, in the order of their names.
template <class T>
const std::vector<const typename core::OptionTable<T>::Row*>& rows_by_name(const core::OptionTable<T>& table) {
  static const core::OptionTable<T>* const sorted_table = &table;
  static const auto sorted = [&] {
    std::vector<const typename core::OptionTable<T>::Row*> rows;
    for (const auto& row : table.rows()) rows.push_back(&row);
    std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->info.name < b->info.name; });
    return rows;
  }();
  MANYWORLDS_CHECK(&table == sorted_table, "two tables of one type");
  return sorted;
}

/// Sets members directly from settings: sweeps of 100,000 experiments call this several times for each, and so options
/// and the keys below `path` are gone through once, side by side. A small table is looked up instead.
template <class T>
T from_settings(const core::OptionTable<T>& table, const Settings& settings, const std::string& path) {
  constexpr std::size_t kLookedUp = 4;
  T target{};
  if (table.rows().size() <= kLookedUp) {
    for (const auto& row : table.rows())
      if (const core::OptionValue* value = settings.value(path + row.info.name)) row.set(target, *value);
    return target;
  }
  auto setting = settings.lower_bound(path);
  const auto is_below = [&] { return setting != settings.end() && std::string_view(setting->first).starts_with(path); };
  const auto name = [&] { return std::string_view(setting->first).substr(path.size()); };
  for (const auto* row : rows_by_name(table)) {
    while (is_below() && name() < row->info.name) ++setting;
    if (!is_below()) break;
    if (name() == row->info.name) row->set(target, setting->second);
  }
  return target;
}

const std::string& text_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  MANYWORLDS_CHECK(found != settings.end(), "no setting '{}'", key);
  return std::get<std::string>(found->second);
}

constexpr const char* kStrategy = "strategy.";

std::int64_t rounded(double value) {
  return static_cast<std::int64_t>(std::llround(value));
}

/// Returns parts per million, rounded up so that no tolerance above 0 becomes 0.
std::int64_t parts_per_million(double share) {
  return static_cast<std::int64_t>(std::ceil(share * 1e6));
}

core::network::Transport transport_of(const Settings& settings) {
  auto transport = from_settings(core::network::transport_options(), settings, "transport.");
  const std::vector<std::string>& fidelities = core::network::fidelity_names();
  transport.fidelity = static_cast<core::network::Fidelity>(
      std::find(fidelities.begin(), fidelities.end(), text_of(settings, "fidelity")) - fidelities.begin());
  transport.kind = text_of(settings, "transport");
  transport.kind_options = values_under(settings, "transport.", core::network::transport_type(transport).kind_options);
  transport.rate_tolerance_ppm = parts_per_million(from_settings(skip_options(), settings, "skip.").rate_tolerance);
  return transport;
}

/// Sets the rates for the replication of hot experts that the settings leave open.
void set_hot_expert_rates(core::workload::Strategy& strategy, const core::compute::Gpu& gpu, const Cluster& cluster) {
  if (strategy.hot_expert_tflops == 0) strategy.hot_expert_tflops = gpu.matrix_tflops * gpu.gemm.front().efficiency;
  if (strategy.hot_expert_gbps == 0) strategy.hot_expert_gbps = cluster.nic_gbps_of_gpu();
}

bool names_kernel_table(const Settings& settings, const std::string& gpu) {
  const auto table = settings.find(gpu + "measured_kernels");
  return table != settings.end() && !std::get<std::string>(table->second).empty();
}

/// Returns the nodes after the first group.
std::vector<OtherNodes> other_nodes_of(const Settings& settings, ExperimentConfig& config) {
  std::vector<OtherNodes> others;
  for (const std::string group : kNodeGroups) {
    const std::string path = "cluster." + group + ".";
    if (settings.count(path + "nodes") == 0) continue;
    others.push_back({from_settings(node_group_options(), settings, path),
                      from_settings(core::compute::gpu_options(), settings, path + "gpu."),
                      from_settings(power_options(), settings, path + "gpu.")});
    set_measured_shapes(others.back().gpu);
    config.has_measured_kernels |= names_kernel_table(settings, path + "gpu.");
  }
  return others;
}

/// Returns whether a group has an algorithm of its own for a kind of operation that a tuner is asked about.
bool has_own(const core::collective::GroupAlgorithms& algorithms, core::collective::Kind kind) {
  using core::collective::Kind;
  if (kind == Kind::all_reduce) return algorithms.all_reduce.has_value();
  if (kind == Kind::all_gather) return algorithms.all_gather.has_value();
  if (kind == Kind::reduce_scatter) return algorithms.reduce_scatter.has_value();
  if (kind == Kind::all_to_all) return algorithms.all_to_all.has_value();
  return kind == Kind::broadcast ? algorithms.broadcast.has_value() : algorithms.reduce.has_value();
}

/// Sets the libraries of groups that have algorithms of their own; the section of a group has all of its keys or none.
void set_group_libraries(Configuration& configuration, const Settings& settings) {
  const auto& options = core::collective::group_algorithm_options();
  for (const CollectiveGroup& group : collective_groups()) {
    const std::string path = "collectives." + group.name + ".";
    if (settings.count(path + options.rows().front().info.name) == 0) continue;
    const auto algorithms = from_settings(options, settings, path);
    core::collective::Library library = core::collective::with_algorithms(configuration.collectives, algorithms);
    std::erase_if(library.tuner_rules, [&](const auto& one) { return has_own(algorithms, one.kind); });
    for (const core::workload::Role role : group.roles) configuration.group_libraries.insert_or_assign(role, library);
  }
}

/// Sets the programs that the settings name, if their file is at hand; the machines are set already.
void set_programs(ExperimentConfig& config, const Settings& settings) {
  config.program = from_settings(program_options(), settings, "program.");
  if (!config.inputs || config.program.file.empty()) return;
  const Configuration& configuration = config.configuration;
  programs::ClusterGpus gpus{{configuration.gpu}, configuration.kind_of_gpu};
  gpus.of_kind.insert(gpus.of_kind.end(), configuration.other_gpus.begin(), configuration.other_gpus.end());
  config.timed_programs = timed_programs(settings, *config.inputs, gpus);
  config.configuration.programs = {config.timed_programs, &config.timed_programs->programs};
}

/// Sets what follows from the settings below kStrategy and from the machines, which are set already.
void set_strategy(ExperimentConfig& config, const Settings& settings) {
  core::workload::Strategy& strategy = config.configuration.strategy;
  strategy = from_settings(core::workload::strategy_options(), settings, kStrategy);
  strategy.stack = from_settings(core::workload::stack_options(), settings, "strategy.stack.");
  if (config.inputs) strategy.written = written_schedule(settings, *config.inputs);
  if (strategy.hot_experts) set_hot_expert_rates(strategy, config.configuration.gpu, config.cluster);
  const std::int64_t replica = strategy.tp * strategy.cp * strategy.pp;
  strategy.dp = config.cluster.gpus() % replica == 0 ? config.cluster.gpus() / replica : 0;
  if (strategy.pp > 1 && config.cluster.nodes > 1)
    strategy.stack.host_collective_us += config.cluster.pipeline_host_us * static_cast<double>(strategy.tp);
  list_split_layers(config, settings);
}

}  // namespace

const core::OptionTable<SkipOptions>& skip_options() {
  static const core::OptionTable<SkipOptions> table{
      option("rate_tolerance", &SkipOptions::rate_tolerance,
             "transfers whose rates vary by less than this share may be fast-forwarded by rate, without simulating "
             "packets; 0: never, every result exact",
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
             "share of a GPU's memory to keep free, for errors of predicted peaks and for fragmentation", {0, 0.9}),
      option("pipeline_host_us", &Cluster::pipeline_host_us,
             "host time that a collective of tensor parallelism takes in addition for each of its members, while "
             "pipelines go from node to node",
             {0, 1e6}, "us"),
      choice("network", &Cluster::network, {"infiniband", "roce"},
             "what the NICs speak; today's practice follows it: roce has transport dcqcn and routing ecmp_hash, "
             "infiniband a static window and routing destination_mod_k"),
      option("fabric", &Cluster::fabric,
             "cluster file with the cluster's real graph, as `manyworlds cluster` writes it; topology graph reads it",
             {}, "file"),
      option("node_list", &Cluster::node_list,
             "hosts of the fabric to run on, in the order of the ranks, as in SLURM_JOB_NODELIST: a[01-08,12]; empty: "
             "the first"),
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
             "composed: only contending collectives are simulated together; coupled: the whole step in one event loop, "
             "the oracle"),
      option("tick_ns", &Configuration::tick_ns,
             "computation begins and ends on clock ticks, so that more traffic of a step is identical and simulated "
             "once; 0: picosecond resolution",
             {0, 1e6}, "ns"),
  };
  return table;
}

const core::OptionTable<core::step::Limit>& limit_options() {
  static const core::OptionTable<core::step::Limit> table{
      option("link_hops", &core::step::Limit::link_hops,
             "packets times links that have to be simulated, what recurs in a step counted once; an experiment beyond "
             "the limit is too_large",
             {1, 9'007'199'254'740'992}),
      option("events", &core::step::Limit::events,
             "entries into collectives and transfers that have to be simulated, counted like link_hops; an experiment "
             "beyond the limit is too_large",
             {1, 9'007'199'254'740'992}),
  };
  return table;
}

const core::OptionTable<core::step::FluidSampling>& fluid_options() {
  static const core::OptionTable<core::step::FluidSampling> table{
      option("samples", &core::step::FluidSampling::samples,
             "collectives that share links, drawn to be simulated packet by packet as well", {0, 1'000'000}),
      option("sample_link_hops", &core::step::FluidSampling::link_hops,
             "packets times links of one sample, at most, with the collectives that share its links",
             {1, 9'007'199'254'740'992}),
  };
  return table;
}

topologies::FabricSpec ExperimentConfig::fabric_spec() const {
  topologies::FabricSpec fabric_spec;
  fabric_spec.nodes = cluster.nodes;
  fabric_spec.gpus_per_node = cluster.gpus_per_node;
  fabric_spec.scale_up = configuration.gpu.scale_up;
  fabric_spec.scale_up_bits_per_second = rounded(configuration.gpu.scale_up_gb_per_s * 8e9);
  fabric_spec.scale_up_latency_ps =
      rounded(configuration.gpu.scale_up_latency_us * static_cast<double>(core::kMicrosecond));
  fabric_spec.scale_up_planes = configuration.gpu.scale_up_planes;
  fabric_spec.pcie_switch_gpus = configuration.gpu.pcie_switch_gpus;
  const bool shared = cluster.shares_nics();
  if (shared) fabric_spec.shared_nics = cluster.nics_per_node;
  fabric_spec.host_bits_per_second = rounded(configuration.gpu.host_gb_per_s * 8e9);
  double nic_gbps = shared ? cluster.nic_gbps : cluster.nic_gbps_of_gpu();  // the fabric is built for the fastest NICs
  for (const MachineKind& kind : machines) nic_gbps = std::max(nic_gbps, kind.node.nic_gbps);
  fabric_spec.nic_bits_per_second = rounded(nic_gbps * 1e9);
  fabric_spec.nic_latency_ps = rounded(cluster.nic_latency_us * static_cast<double>(core::kMicrosecond));
  return fabric_spec;
}

ExperimentConfig config_of(const Settings& settings, std::shared_ptr<const Inputs> inputs) {
  ExperimentConfig config;
  config.inputs = std::move(inputs);
  config.cluster = from_settings(cluster_options(), settings, "cluster.");
  if (config.cluster.nic_gbps == 0 && config.cluster.nodes == 1 && settings.text("topology") != "graph")
    config.cluster.nic_gbps = kUnusedNicGbps;
  config.power = from_settings(power_options(), settings, "cluster.gpu.");
  config.machine_power = from_settings(machine_power_options(), settings, "cluster.");
  config.price = from_settings(price_options(), settings, "cluster.");
  config.training = from_settings(training_options(), settings, "training.");
  Configuration& target = config.configuration;
  const Configuration step = from_settings(step_options(), settings, "");
  target.composition = step.composition;
  target.tick_ns = step.tick_ns;
  target.placement = from_settings(placement_options(), settings, "placement.").placement;
  target.collectives = from_settings(core::collective::library_options(), settings, "collectives.");
  target.collectives.calibration = from_settings(core::collective::calibration_options(), settings, "cluster.gpu.");
  if (config.inputs) target.collectives.tuner_rules = tuner_rules(settings, *config.inputs);
  set_group_libraries(target, settings);
  target.limit = from_settings(limit_options(), settings, "limit.");
  target.fluid = from_settings(fluid_options(), settings, "fluid.");
  target.model = from_settings(core::workload::model_options(), settings, "model.");
  if (core::workload::is_inference(target.model)) target.model.dropout = false;  // a forward pass alone drops nothing
  target.model.documents = documents_of(settings, config.inputs.get(), target.model);
  try {
    target.model.architecture = architecture_of(target.model);
  } catch (const core::InputError& error) {
    config.architecture_error = error.what();
  }
  try {
    if (config.architecture_error.empty()) target.model.teacher = teacher_for(target.model);
  } catch (const core::InputError&) {
    // The rule teacher_fits says what does not fit.
  }
  RoutingChoice routing = routing_of(settings, config.inputs.get(), target.model);
  target.model.routing = std::move(routing.routing);
  config.routing_error = std::move(routing.error);
  target.gpu = from_settings(core::compute::gpu_options(), settings, "cluster.gpu.");
  set_measured_shapes(target.gpu);
  target.transport = transport_of(settings);
  config.faults = from_settings(fault_options(), settings, "faults.");
  target.gpus_per_node = config.cluster.gpus_per_node;
  target.memory_headroom = config.cluster.memory_headroom;
  config.has_measured_kernels = names_kernel_table(settings, "cluster.gpu.");
  add_machine_kinds(config, other_nodes_of(settings, config));
  set_programs(config, settings);
  set_strategy(config, settings);

  config.topology = text_of(settings, "topology");
  const Choice* choice_of_topology =
      find_choice(*find_section(config_schema().subsections, "topology"), config.topology);
  MANYWORLDS_CHECK(choice_of_topology, "no topology '{}'", config.topology);
  config.topology_options = values_under(settings, "topology.", choice_of_topology->options);
  return config;
}

const ExperimentConfig& ConfigReader::read(const Settings& settings, const std::shared_ptr<const Inputs>& inputs) {
  if (is_known_ && config_.inputs == inputs && settings.same_outside(kStrategy, last_)) {
    set_strategy(config_, settings);
  } else {
    is_known_ = false;  // until it is
    config_ = config_of(settings, inputs);
  }
  last_ = settings;
  is_known_ = true;
  return config_;
}

}  // namespace manyworlds::experiments

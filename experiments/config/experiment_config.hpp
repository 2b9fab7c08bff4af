// The configuration of one experiment, converted from its settings to the structs of core.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/options.hpp"
#include "core/step/layout/configuration.hpp"
#include "experiments/config/machines.hpp"
#include "experiments/costs/power.hpp"
#include "experiments/costs/price.hpp"
#include "experiments/costs/training.hpp"
#include "experiments/faults/faults.hpp"
#include "experiments/key_contents/programs.hpp"
#include "experiments/keys/settings_map.hpp"
#include "topologies/fabrics/registry.hpp"

namespace manyworlds::experiments {

/// The machines, except for the properties of a single GPU.
struct Cluster {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  double nic_gbps = 0;             // one direction, per GPU, or per NIC if nics_per_node is given
  std::int64_t nics_per_node = 0;  // 0: one per GPU
  double nic_latency_us = 0.5;     // one link of the fabric, switching included
  double usd_per_gpu_hour = 0;     // its share of hosts and network included; 0: not given
  double memory_headroom = 0;      // share of a GPU's memory to keep free
  double pipeline_host_us = 0;     // host time that each member adds to a tensor-parallel collective, see option
  enum class Network : std::uint8_t { infiniband, roce } network = Network::infiniband;  // protocol of its NICs
  std::string fabric;     // path of a cluster file with the graph of the cluster; empty: none
  std::string node_list;  // hosts of that file to run on, as Slurm lists them; empty: the first
  std::int64_t gpus() const { return nodes * gpus_per_node; }
  bool shares_nics() const { return nics_per_node > 0 && nics_per_node < gpus_per_node; }
  /// Returns the NIC rate that a GPU has if all GPUs of its node send, Gb/s.
  double nic_gbps_of_gpu() const {
    const double nics = nics_per_node > 0 ? static_cast<double>(nics_per_node) : static_cast<double>(gpus_per_node);
    return nic_gbps * nics / static_cast<double>(gpus_per_node);
  }
};

struct ExperimentConfig {
  core::step::Configuration configuration;  // without its graph
  Cluster cluster;                          // all nodes are counted; other members describe the first group
  std::vector<MachineKind> machines;        // by kind, as in core::step::Configuration; empty: all are identical
  std::string slow_gpus_error;              // error in faults.slow_gpus; empty: none
  bool has_measured_kernels = false;        // some GPU's settings name a table of measured times
  GpuPower power;
  MachinePower machine_power;
  Price price;
  Training training;
  std::string topology;
  core::OptionSet topology_options;
  std::string architecture_error;  // why the architecture does not fit the model; empty: it fits
  std::string routing_error;       // why the routing does not fit the model; empty: it fits
  Faults faults;
  std::shared_ptr<const Inputs> inputs;  // may be null if no setting names a file
  ProgramChoice program;
  std::shared_ptr<const programs::TimedPrograms> timed_programs;  // those of the configuration; null: none are given
  topologies::FabricSpec fabric_spec() const;
};

const core::OptionTable<Cluster>& cluster_options();
/// Options that are members of core::step::Configuration itself, by section.
const core::OptionTable<core::step::Configuration>& placement_options();
const core::OptionTable<core::step::Configuration>& step_options();
const core::OptionTable<core::step::Limit>& limit_options();

const core::OptionTable<core::step::FluidSampling>& fluid_options();
struct SkipOptions {
  double rate_tolerance = 0;  // Transport::rate_tolerance_ppm as a share
};
const core::OptionTable<SkipOptions>& skip_options();

/// Converts settings to structs. Without `inputs`, contents of files (such as a measured routing) are omitted. dp
/// follows from the number of GPUs; it is 0 if that is not a multiple of tp x cp x pp (a validity rule reports it).
ExperimentConfig config_of(const Settings& settings, std::shared_ptr<const Inputs> inputs = nullptr);

/// Reads the configurations of one experiment after the other: those that differ from the one before in their strategy
/// alone, as the layouts of a search do, take the rest from it.
class ConfigReader {
 public:
  /// As config_of(); valid until the next call.
  const ExperimentConfig& read(const Settings& settings, const std::shared_ptr<const Inputs>& inputs);

 private:
  Settings last_;
  ExperimentConfig config_;
  bool is_known_ = false;
};

}  // namespace manyworlds::experiments

// The settings of one experiment as the structs that core works with.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/options.hpp"
#include "core/step/world/configuration.hpp"
#include "experiments/config/faults.hpp"
#include "experiments/config/machines.hpp"
#include "experiments/costs/power.hpp"
#include "experiments/costs/price.hpp"
#include "experiments/costs/training.hpp"
#include "topologies/fabrics/registry.hpp"

namespace manyworlds::experiments {

/// Dotted key to value, every default filled in: "strategy.tp" -> 8. A choice is its name ("topology" -> "fat_tree")
/// beside its options ("topology.oversubscription" -> 4). Figures that nobody gave are not there.
using Settings = std::map<std::string, core::OptionValue>;

/// Files that a sweep names, by the path it names them with, and what they hold. They are part of the sweep: whoever
/// has it needs no file.
using Inputs = std::map<std::string, std::string>;

/// The machines, apart from what a single GPU is.
struct Cluster {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  double nic_gbps = 0;             // one direction, per GPU, or per NIC where nics_per_node says how many there are
  std::int64_t nics_per_node = 0;  // 0: one for each GPU
  double nic_latency_us = 0.5;     // one link of the fabric, switching included
  double usd_per_gpu_hour = 0;     // its share of hosts and network included; absent until given
  double memory_headroom = 0;      // the share of a GPU's memory that is to stay free
  enum class Network : std::uint8_t { infiniband, roce } network = Network::infiniband;  // what its NICs speak
  std::int64_t gpus() const { return nodes * gpus_per_node; }
  bool shares_nics() const { return nics_per_node > 0 && nics_per_node < gpus_per_node; }
  /// What a GPU has of its node's NICs if all send, Gb/s.
  double nic_gbps_of_gpu() const {
    const double nics = nics_per_node > 0 ? static_cast<double>(nics_per_node) : static_cast<double>(gpus_per_node);
    return nic_gbps * nics / static_cast<double>(gpus_per_node);
  }
};

struct World {
  core::step::Configuration configuration;  // without its graph
  Cluster cluster;                          // all nodes; the rest tells of the first ones
  std::vector<MachineKind> machines;        // by kind, as core::step::Configuration counts them; empty: all are alike
  std::string machine_fault;                // what faults.slow_gpus has wrong; empty: nothing
  bool measures_kernels = false;            // some GPU's settings name a table of measured times
  GpuPower power;
  MachinePower machine_power;
  Price price;
  Training training;
  std::string topology;
  core::OptionSet topology_options;
  std::string routing_fault;  // why the routing does not fit the model; empty: it does
  Faults faults;
  std::shared_ptr<const Inputs> inputs;  // may be null where no setting names a file
  topologies::Site site() const;
};

const core::OptionTable<Cluster>& cluster_options();
/// Rows that live in core::step::Configuration itself, by where they stand in a document.
const core::OptionTable<core::step::Configuration>& placement_options();
const core::OptionTable<core::step::Configuration>& step_options();
const core::OptionTable<core::step::Limit>& limit_options();

struct Skip {
  double rate_tolerance = 0;  // as Transport::rate_tolerance_ppm, a share
};
const core::OptionTable<Skip>& skip_options();

/// Without `inputs` what files hold is left out, such as a measured routing. dp follows from the GPUs; it is 0 where
/// they are no multiple of tp x cp x pp (a validity rule says so).
World world_of(const Settings& settings, std::shared_ptr<const Inputs> inputs = nullptr);

}  // namespace manyworlds::experiments

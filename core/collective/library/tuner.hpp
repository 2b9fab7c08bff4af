// NCCL's choice of algorithm and protocol (src/graph/tuning.cc of NCCL 2.29, with the rates that src/graph/search.cc
// finds on fully connected nodes): the least time by its own latencies and rates, which are not those that are
// measured. The choice is therefore too early or too late for some sizes, and time jumps there. RCCL's has the same
// form with latencies and rates of its own (ROCm/rccl @0cbce2a, src/graph/tuning.cc, tuning_model_5, that of MI300X);
// its corrections by size, which move the choice between protocols below 1 MiB, are left out.
#pragma once

#include "core/collective/algorithms/communicator.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/collective/library/calibration.hpp"

namespace manyworlds::core::collective {

/// What the tuner knows.
struct TunerInput {
  Architecture architecture = Architecture::ampere;
  LibraryVersion version = LibraryVersion::v2_29;
  double link_gb_per_s = 0;  // of a GPU's scale-up links, in one direction
  double nic_gb_per_s = 0;   // of a GPU's NIC
  bool ll128_between_nodes = true;
};

/// Returns the tuner's time for an operation with one of the calibrated protocols, in microseconds; infinity if it does
/// not consider them together. Algorithms of which it does not know count as rings.
double tuner_us(const TunerInput& input, Kind kind, Algorithm algorithm, Protocol protocol, std::uint32_t members,
                std::uint32_t per_node, std::int64_t bytes);

/// Returns the steps of a ring: the transfers that one of its blocks takes part in.
std::int64_t ring_steps(Kind kind, std::uint32_t members);

/// Returns the rate at which a node's CPU hands on LL's data to the NICs, in GB/s: that of Intel's hosts.
double ll_gb_per_s_between(std::uint32_t nodes);

/// Returns the channels of a reduction in switches.
std::int64_t in_switch_channels(Architecture architecture);

}  // namespace manyworlds::core::collective

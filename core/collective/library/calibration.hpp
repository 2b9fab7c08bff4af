// Measured overheads of a communication library on one type of GPU, in addition to the network: launch, latency per
// hop, and copies at the endpoints. There are two protocols as in NCCL: LL for small messages, Simple for large ones.
// The network model transfers the bytes at line rate, so these values contain only what the network model lacks.
// docs/model/collectives.md has the equations.
#pragma once

#include <string>

#include "core/base/options.hpp"
#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// A value of 0 is absent: the GPU is not calibrated, or has no switches that reduce.
struct Calibration {
  double launch_us = 0;               // Simple, per collective
  double hop_us = 0;                  // Simple, before each transfer inside a node
  double hop_between_us = 0;          // Simple, before each transfer between nodes
  double copy_gb_per_s = 0;           // Simple: rate at which the endpoints copy the vector
  double chunking_ns_per_sqrt_b = 0;  // Simple: cost of dividing into chunks, times the square root of the bytes
  double ll_launch_us = 0;            // LL, as the values above
  double ll_hop_us = 0;
  double ll_hop_between_us = 0;
  double ll_gb_per_s = 0;          // LL: rate at which a member stores its part of the vector with flags
  double in_switch_launch_us = 0;  // reduction in switches, with Simple
  double in_switch_copy_gb_per_s = 0;
  double dispatch_launch_us = 0;      // hybrid_ep, per exchange
  double dispatch_copy_gb_per_s = 0;  // hybrid_ep inside one node: rate of copies; 0: they are free
  double nic_share = 0;               // achievable share of the NICs' line rate
  std::string from;                   // GPU whose values these are, scaled by link speed; empty: this GPU

  bool reduces_in_switches() const { return in_switch_copy_gb_per_s > 0; }
  bool operator==(const Calibration&) const = default;
};

/// Returns the option table, which is part of a GPU's options: all names begin with "library_".
const OptionTable<Calibration>& calibration_options();

/// Returns the costs of a shape whose protocol is calibrated_ll or calibrated_simple. Throws InputError if the GPU is
/// not calibrated for it.
ProtocolCosts calibrated_costs(const Calibration& calibration, const Shape& shape);

}  // namespace manyworlds::core::collective

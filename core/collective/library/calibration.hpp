// What a communication library adds to the network on one kind of GPU, as measured: launching, handing on from transfer
// to transfer, and copying at the ends. Two protocols as in NCCL: LL for small messages, Simple for large ones. The
// network carries the bytes at the line's rate, so that what stands here is only what the network does not tell.
// docs/model.md has the equations.
#pragma once

#include <string>

#include "core/base/options.hpp"
#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// 0 is absent: its GPU is not calibrated, or has no switches that reduce.
struct Calibration {
  double launch_us = 0;               // Simple, per collective
  double hop_us = 0;                  // Simple, before a transfer inside a node
  double hop_between_us = 0;          // Simple, before a transfer between nodes
  double copy_gb_per_s = 0;           // Simple: the vector passes the ends of its connections at this rate
  double chunking_ns_per_sqrt_b = 0;  // Simple: cutting into chunks, times the root of the bytes
  double ll_launch_us = 0;            // LL
  double ll_hop_us = 0;
  double ll_hop_between_us = 0;
  double ll_gb_per_s = 0;          // LL: a member's part is stored with its flags at this rate
  double in_switch_launch_us = 0;  // of reduction in switches, with Simple
  double in_switch_copy_gb_per_s = 0;
  double dispatch_launch_us = 0;  // hybrid_ep, per exchange
  double dispatch_copy_gb_per_s =
      0;                 // hybrid_ep in one node: rate at which what a member sends passes the ends; 0: free
  double nic_share = 0;  // of the NICs' line rate
  std::string from;      // the GPU whose figures these are, scaled by link speed; empty: its own

  bool reduces_in_switches() const { return in_switch_copy_gb_per_s > 0; }
  bool operator==(const Calibration&) const = default;
};

/// Rows of a GPU: their names begin with "library_".
const OptionTable<Calibration>& calibration_options();

/// Costs of a shape whose protocol is calibrated_ll or calibrated_simple.
ProtocolCosts calibrated_costs(const Calibration& calibration, const Shape& shape);

}  // namespace manyworlds::core::collective

// Measured constants of a communication library (NCCL) on one type of GPU: launch, latency before each transfer, shares
// of the links' rates, and copies at the endpoints, for each of its protocols. calibrated_costs.hpp has the times that
// follow from them, docs/model/collectives.md the equations.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/options.hpp"
#include "core/collective/library/token_figures.hpp"

namespace manyworlds::core::collective {

/// Versions of NCCL from which its times or its choices differ; each stands for those up to the next. 2.10 is that of
/// 2020 to 2023, with which clusters of A100 were measured.
enum class LibraryVersion : std::uint8_t { v2_10, v2_23, v2_26, v2_29 };

/// Architectures for which NCCL's tuner has tables, or RCCL's (`cdna`, AMD's Instinct). `unknown` takes that of the GPU
/// whose constants are borrowed.
enum class Architecture : std::uint8_t { unknown, ampere, hopper, blackwell, cdna };

/// A value of 0 is absent: the GPU is not calibrated, or has no switches that reduce. Every latency contains the wire.
struct Calibration {
  Architecture architecture = Architecture::unknown;
  double link_share = 0;                 // share of the scale-up rate that the library reaches
  double launch_us = 0;                  // Simple, per collective
  double hop_us = 0;                     // Simple, before each transfer inside a node
  double copy_gb_per_s = 0;              // Simple, LL128: rate at which a member copies its own block
  double fill_us = 0;                    // Simple: filling the pipelines of all channels, for large vectors
  double fill_reduce_scatter_share = 0;  // of fill_us, in a reduce-scatter
  double ll_launch_us = 0;
  double ll_hop_us = 0;
  double ll_store_launch_us = 0;  // LL: the first stores of a block of 4 KiB or more
  double ll_store_us = 0;         // LL: the stores of each further step, while the wire is not slower
  double ll_copy_gb_per_s = 0;
  double ll128_launch_us = 0;
  double ll128_hop_us = 0;
  double ll128_share = 0;          // of the rate that Simple reaches
  double in_switch_launch_us = 0;  // reduction in switches
  double in_switch_round_us = 0;   // for each round of chunks over all channels
  double in_switch_copy_gb_per_s = 0;
  double in_switch_fill_us = 0;
  double exchange_launch_us = 0;           // all-to-all and sends
  double exchange_launch_per_log2_us = 0;  // for each doubling of the members
  double exchange_simple_us = 0;           // added where a message is long enough for Simple
  double exchange_simple_kib = 0;          // and how long that is
  double exchange_link_share = 0;          // share of the scale-up rate
  double exchange_copy_gb_per_s = 0;
  double exchange_fill_us = 0;
  double hop_between_us = 0;     // Simple, before each transfer between nodes
  double ll_hop_between_us = 0;  // as above, by protocol, in rings and in trees
  double ll128_hop_between_us = 0;
  double tree_hop_between_us = 0;
  double ll_tree_hop_between_us = 0;
  double ll128_tree_hop_between_us = 0;
  double nic_share = 0;               // share of the NICs' line rate that the library reaches
  double tree_nic_share = 0;          // of that share, in trees
  double dispatch_launch_us = 0;      // hybrid_ep, per exchange
  double dispatch_copy_gb_per_s = 0;  // hybrid_ep inside one node: rate of copies; 0: they are free
  double older_launch_us_2_23 = 0;    // added to every launch by version 2.23
  double older_launch_us_2_26 = 0;    // and by 2.26 to 2.28
  double older_rate_share = 0;        // of the links' rates, before 2.29
  std::string from;                   // the GPU whose values these are; empty: this GPU
  TokenCalibration tokens;            // kernels that exchange tokens

  bool reduces_in_switches() const { return in_switch_copy_gb_per_s > 0; }
  /// Returns the share of the scale-up rate that a version reaches.
  double link_share_in(LibraryVersion version) const;
  /// Returns what a version adds to every launch, in microseconds.
  double older_launch_us_in(LibraryVersion version) const;
  bool operator==(const Calibration&) const = default;
};

/// Returns the option table, which is part of a GPU's options: all names begin with "library_".
const OptionTable<Calibration>& calibration_options();

/// Returns the names of LibraryVersion, in its order: "2.10", …
const std::vector<std::string>& version_names();

}  // namespace manyworlds::core::collective

// Figures of a calibrated library for tests.
#pragma once

#include "core/collective/library/calibration.hpp"

namespace manyworlds::tests {

/// Round figures; every latency contains the wire, which is 1 us inside a node and 2 us between nodes.
inline core::collective::Calibration calibration() {
  core::collective::Calibration result;
  result.architecture = core::collective::Architecture::hopper;
  result.link_share = 0.8, result.nic_share = 0.5, result.tree_nic_share = 0.5;
  result.launch_us = 20, result.hop_us = 8, result.copy_gb_per_s = 500;
  result.fill_us = 10, result.fill_reduce_scatter_share = 0.5;
  result.ll_launch_us = 4, result.ll_hop_us = 3, result.ll_store_launch_us = 2, result.ll_store_us = 1;
  result.ll_copy_gb_per_s = 10;
  result.ll128_launch_us = 12, result.ll128_hop_us = 5, result.ll128_share = 0.75;
  result.in_switch_launch_us = 40, result.in_switch_round_us = 3, result.in_switch_copy_gb_per_s = 1'000;
  result.in_switch_fill_us = 16;
  result.exchange_launch_us = 30, result.exchange_launch_per_log2_us = 2, result.exchange_simple_us = 4;
  result.exchange_simple_kib = 32, result.exchange_link_share = 0.6, result.exchange_copy_gb_per_s = 100;
  result.exchange_fill_us = 6;
  result.hop_between_us = 14, result.ll_hop_between_us = 3, result.ll128_hop_between_us = 4;
  result.tree_hop_between_us = 14, result.ll_tree_hop_between_us = 5, result.ll128_tree_hop_between_us = 8;
  result.older_launch_us_2_23 = 2, result.older_launch_us_2_26 = 1, result.older_rate_share = 0.5;
  return result;
}

}  // namespace manyworlds::tests

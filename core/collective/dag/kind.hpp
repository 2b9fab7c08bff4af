// Names of the collective operations, of the algorithms that carry them out, and of the protocols beneath.
#pragma once

#include <cstdint>

namespace manyworlds::core::collective {

/// `bytes` of an operation is, per rank: all_reduce the vector; all_gather the gathered result; reduce_scatter the
/// vector that is reduced; all_to_all what a rank sends in all (its own part included); broadcast and send what is
/// sent; reduce the vector. A broadcast comes from member 0 and a reduce ends there, unless a Split says otherwise.
enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, reduce };

/// Which kinds each of them can do stands in registry.cpp.
enum class Algorithm : std::uint8_t {
  ring,
  two_level,
  node_leaders,
  halving_doubling,
  recursive_doubling,
  double_tree,
  direct,
  in_switch,
  pairwise,
  node_aware,
  hybrid_ep,
  chain,
  binomial_tree,
  automatic,     // for Library alone: what the cost model takes to be fastest
  as_all_reduce  // for Library alone: that of all-reduces where it can do this kind, otherwise ring
};

/// How a library moves a message; `none` has no cost of its own. What calibrated ones cost was measured (Calibration).
enum class Protocol : std::uint8_t {
  none,
  ll,
  ll128,
  simple,
  automatic,      // for Library alone
  calibrated,     // for Library alone: one of the two below
  calibrated_ll,  // for Shape alone
  calibrated_simple
};

}  // namespace manyworlds::core::collective

// The terms of the alpha-beta cost model (Hockney 1994; Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 3) by
// which a library compares algorithms. Each algorithm's file has its own formula.
#pragma once

#include <algorithm>
#include <cstdint>

namespace manyworlds::core::collective {

/// Sequential steps, each of which takes a path's latency, and bytes on the most loaded connection, without flags; both
/// inside nodes and between nodes.
struct CostTerms {
  std::int64_t intra_node_steps = 0, inter_node_steps = 0;
  std::int64_t intra_node_bytes = 0, inter_node_bytes = 0;
  bool two_in_flight = false;  // between nodes, latencies overlap the transmission of a second transfer in part
};

/// The sizes that a formula depends on. `bytes` are those of Kind; if a split is uneven, every member counts as the
/// busiest one. `passes` is 2 for an all-reduce, which reduces and gathers, otherwise 1.
struct CollectiveSizes {
  std::int64_t members = 0, per_node = 1, nodes = 0;
  std::int64_t bytes = 0;
  std::int64_t channels = 1;
  std::int64_t passes = 1;
};

/// Returns the base-2 logarithm of `n` > 0, rounded up.
constexpr std::int64_t log2_up(std::int64_t n) {
  std::int64_t log = 0;
  while (std::int64_t{1} << log < n) ++log;
  return log;
}

constexpr bool is_power_of_two(std::int64_t n) {
  return (n & (n - 1)) == 0;
}

/// Returns the equivalent bytes of a vector that passes `stages` connections in sequence: without chunks, `stages`
/// times as many; with chunks, one chunk more per additional stage.
constexpr std::int64_t pipelined_bytes(std::int64_t bytes, std::int64_t stages, std::int64_t chunk_bytes) {
  return bytes + (stages - 1) * (chunk_bytes > 0 ? std::min(bytes, chunk_bytes) : bytes);
}

}  // namespace manyworlds::core::collective

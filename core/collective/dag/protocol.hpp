// Costs of a communication library's protocols: launch, per-hop latency, and flags within the data. The values are
// those of NCCL's tuner (NCCL 2.28, src/graph/tuning.cc, baseLatencies and hwLatencies for NVLink and the network).
// NCCL's hop latency includes that of the wire, which the network model adds again: one or two microseconds are counted
// twice. The costs of calibrated protocols are measured instead, see calibration.hpp.
#pragma once

#include <compare>

#include "core/base/units.hpp"
#include "core/collective/dag/kind.hpp"

namespace manyworlds::core::collective {

struct ProtocolCosts {
  Time launch_ps = 0;               // per collective
  std::uint32_t intra_node_ps = 0;  // before each transfer inside a node
  std::uint32_t inter_node_ps = 0;  // before each transfer between nodes
  std::int64_t line_bytes = 1;      // bytes on the wire
  std::int64_t payload_bytes = 1;   // per so many bytes of data
  // Millionths of the links' rates that transfers reach; what they lack is sent as additional bytes.
  std::int64_t intra_node_rate_ppm = 1'000'000, inter_node_rate_ppm = 1'000'000;

  /// Returns the bytes that a transfer of `data` bytes occupies on links inside a node or between nodes.
  std::int64_t wire_bytes(std::int64_t data, bool inter_node = false) const {
    const std::int64_t ppm = inter_node ? inter_node_rate_ppm : intra_node_rate_ppm;
    const std::int64_t lines =
        line_bytes == payload_bytes ? data : (data + payload_bytes - 1) / payload_bytes * line_bytes;
    // In two parts, for a product of all bytes and a million may not fit.
    return lines / ppm * 1'000'000 + (lines % ppm * 1'000'000 + ppm - 1) / ppm;
  }
  auto operator<=>(const ProtocolCosts&) const = default;
};

/// Groups of algorithms whose latencies were measured apart. NCCL's tuner has tables for rings, trees and switches that
/// reduce (NVLS); a calibrated library also has figures for the exchange of tokens, which otherwise counts as a ring.
/// Data in switches, and tokens of a calibrated library, have no flags: there is no LL for them.
enum class LatencyGroup : std::uint8_t { ring, tree, in_switch, token_exchange };

/// Returns the costs of none, ll, ll128 or simple, which are constants. Throws InternalError for other protocols.
ProtocolCosts costs_of(Protocol protocol, LatencyGroup group);

/// Returns costs with only the line format of a protocol (see wire_bytes()); launch and hops cost nothing.
ProtocolCosts line_format_costs(Protocol protocol);

/// Returns the name of a protocol, as in options and results.
const char* name_of(Protocol protocol);

}  // namespace manyworlds::core::collective

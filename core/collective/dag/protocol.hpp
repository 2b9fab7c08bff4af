// What a communication library's protocols cost: launching, handing on, and flags among the data. Figures are those of
// NCCL's tuner (NCCL 2.28, src/graph/tuning.cc, baseLatencies and hwLatencies for NVLink and the network). A hop's
// latency there includes the wire's, which the network adds once more: a microsecond or two of them is counted twice.
// Calibrated protocols cost what a library was measured to take instead: calibration.hpp.
#pragma once

#include <compare>

#include "core/base/units.hpp"
#include "core/collective/dag/kind.hpp"

namespace manyworlds::core::collective {

struct ProtocolCosts {
  Time launch_ps = 0;              // of a collective, once
  std::uint32_t inside_ps = 0;     // of a transfer inside a node
  std::uint32_t between_ps = 0;    // of a transfer between nodes
  std::int64_t line_bytes = 1;     // sent for every
  std::int64_t payload_bytes = 1;  // bytes of data
  std::int64_t wire_bytes(std::int64_t data) const {
    return line_bytes == payload_bytes ? data : (data + payload_bytes - 1) / payload_bytes * line_bytes;
  }
  auto operator<=>(const ProtocolCosts&) const = default;
};

/// Of a protocol whose figures stand here: none, ll, ll128 or simple.
ProtocolCosts costs_of(Protocol protocol, Algorithm algorithm);

/// The shape of lines with flags among the data, which wire_bytes() counts; launching and handing on cost nothing.
ProtocolCosts lines_with_flags(Protocol protocol);

const char* name_of(Protocol protocol);

}  // namespace manyworlds::core::collective

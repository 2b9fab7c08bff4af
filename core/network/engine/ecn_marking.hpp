// ECN marking of a queue: RED with error diffusion instead of random numbers, so that the share of marks is exact.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// Returns a marking threshold, given at 100 Gb/s, scaled to the rate of a link.
constexpr std::int64_t scaled_to_rate(std::int64_t bytes, std::int64_t bits_per_second) {
  return static_cast<std::int64_t>(static_cast<Int128>(bytes) * bits_per_second / 100'000'000'000);
}

/// Returns whether a packet is marked that arrives at `port` while `waiting_bytes` are queued there. The port has the
/// thresholds kmin and kmax in bytes, and mark_error, the accumulated marking share of earlier packets in parts per
/// million, which is updated.
template <class Port>
bool mark_next_packet(Port& port, std::int64_t waiting_bytes, std::int64_t pmax_ppm) {
  if (waiting_bytes <= port.kmin) return false;
  if (waiting_bytes >= port.kmax) return true;
  port.mark_error += pmax_ppm * (waiting_bytes - port.kmin) / (port.kmax - port.kmin);
  if (port.mark_error < 1'000'000) return false;
  port.mark_error -= 1'000'000;
  return true;
}

}  // namespace manyworlds::core::network

// ECN marks of a queue: RED by error diffusion, so that the share of marks is exact and nothing is drawn.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// Thresholds are given at 100 Gb/s and scale with the rate of the link.
constexpr std::int64_t at_rate(std::int64_t bytes, std::int64_t bits_per_second) {
  return static_cast<std::int64_t>(static_cast<Wide>(bytes) * bits_per_second / 100'000'000'000);
}

/// Whether a packet that comes to `port` is marked where `waiting` bytes wait. The port has its thresholds, kmin and
/// kmax, and what is left of the share of the packets before, mark_error in parts per million.
template <class Port>
bool marks_next(Port& port, std::int64_t waiting, std::int64_t pmax_ppm) {
  if (waiting <= port.kmin) return false;
  if (waiting >= port.kmax) return true;
  port.mark_error += pmax_ppm * (waiting - port.kmin) / (port.kmax - port.kmin);
  if (port.mark_error < 1'000'000) return false;
  port.mark_error -= 1'000'000;
  return true;
}

}  // namespace manyworlds::core::network

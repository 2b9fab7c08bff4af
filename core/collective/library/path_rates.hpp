// Rates and latencies of paths as the measured costs of libraries have them: microseconds and GB/s.
#pragma once

#include "core/base/units.hpp"
#include "core/collective/algorithms/communicator.hpp"

namespace manyworlds::core::collective {

inline constexpr double kPsPerUs = static_cast<double>(kMicrosecond);

/// Returns the time of `bytes` at a rate in GB/s, in microseconds; 0 if there is no such rate.
inline double us_at(double bytes, double gb_per_s) {
  return gb_per_s > 0 ? bytes / gb_per_s * 1e-3 : 0;
}

inline double gb_per_s(const Path& path) {
  return static_cast<double>(path.bits_per_second) / 8e9;
}

inline double latency_us(const Path& path) {
  return static_cast<double>(path.latency_ps) / kPsPerUs;
}

/// Returns the base-2 logarithm of a number from 1 on, linear between powers of two.
inline double log2_of(double n) {
  double log = 0, power = 1;
  for (; 2 * power <= n; power *= 2) ++log;
  return log + (n / power - 1);
}

}  // namespace manyworlds::core::collective

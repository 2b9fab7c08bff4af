// The amount of simulation behind a result, in link-hops: packets times the links they crossed.
#pragma once

#include <cstdint>

namespace manyworlds::core::network {

/// Link-hops by how they were computed. Cached results count in none of them.
struct LinkHops {
  std::int64_t simulated = 0;
  std::int64_t periods = 0;  // fast-forwarded as whole periods
  std::int64_t rate = 0;     // fast-forwarded by rate
  std::int64_t all() const { return simulated + periods + rate; }
  LinkHops& operator+=(const LinkHops& other) {
    simulated += other.simulated, periods += other.periods, rate += other.rate;
    return *this;
  }
  LinkHops operator-(const LinkHops& other) const {
    return {simulated - other.simulated, periods - other.periods, rate - other.rate};
  }
};

}  // namespace manyworlds::core::network

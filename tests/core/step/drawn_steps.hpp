// What holds of every step, on configurations drawn by a test.
#pragma once

#include <cstdint>

#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/step_configurations.hpp"

namespace manyworlds::tests {

/// Requires that the steps of draw(1) to draw(draws) take the same picoseconds composed and coupled.
template <class Draw>
void require_composed_as_coupled(std::uint64_t draws, const Draw& draw) {
  for (std::uint64_t seed = 1; seed <= draws; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw(seed);
    require_same_packets(run_configuration(configuration, step::Composition::composed),
                         run_configuration(configuration, step::Composition::coupled));
  }
}

/// Requires that bounds of the same are below their analytic steps, more than half of them on average, and those for
/// any number of replicas below the bounds.
template <class Draw>
void require_bounds_below(std::uint64_t draws, const Draw& draw) {
  double tightness = 0;
  for (std::uint64_t seed = 1; seed <= draws; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw(seed);
    configuration.transport.fidelity = network::Fidelity::analytic;
    const Time bound = step::lower_bound_ps(configuration),
               analytic = run_at(configuration, network::Fidelity::analytic).step_ps;
    REQUIRE(bound > 0);
    REQUIRE(bound <= analytic);
    REQUIRE(step::lower_bound_ps(configuration, step::Replicas::open) <= bound);
    tightness += static_cast<double>(bound) / static_cast<double>(analytic);
  }
  CHECK(tightness / static_cast<double>(draws) > 0.5);
}

}  // namespace manyworlds::tests

// What the collectives of a configuration take from its kernels.
#pragma once

#include "core/step/layout/configuration.hpp"
#include "core/stream/interference.hpp"

namespace manyworlds::core::step {

/// Returns what collectives take from the kernels of a GPU; nothing under `fidelity: analytic`, which must remain a
/// lower bound: a collective that starts earlier may slow down more kernels.
stream::Interference interference_of(const Configuration& configuration, const compute::Gpu& gpu);

}  // namespace manyworlds::core::step

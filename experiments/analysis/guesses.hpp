// Which rates of kernels nobody measured: those that the catalog calls guesses.
#pragma once

#include <array>

#include "core/compute/measured.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/settings/catalog.hpp"

namespace manyworlds::experiments {

/// Returns, by kind of kernel, whether the rate of its model is a guess on a GPU of the experiment: the catalog's,
/// which the settings left as it is, or the general value of a GPU for which nobody gave one.
std::array<bool, core::compute::kKernelKinds> guessed_kinds(const Settings& settings, const Catalog& catalog);

}  // namespace manyworlds::experiments

// A configuration's programs as given ones: what a program file holds of an experiment.
#pragma once

#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/given_programs.hpp"

namespace manyworlds::core::step {

/// Returns the programs that a model and a strategy have on a layout, with a dimension for each role. The step of a
/// configuration with these is that of `configuration`, to the picosecond. Throws core::InputError if experts exchange
/// tokens otherwise than by an all-to-all, which programs do not know.
workload::GivenPrograms as_given(const Configuration& configuration, const RankLayout& layout);

}  // namespace manyworlds::core::step

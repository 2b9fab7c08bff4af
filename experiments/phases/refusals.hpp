// Errors about experiments of phases: they point at what the user wrote, and say in words what followed from it.
#pragma once

#include <vector>

#include "experiments/phase_files/phase_settings.hpp"
#include "experiments/phase_files/phases_file.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments::phases {

/// Throws InputError for an experiment that violates a rule. It points at the key that the rule is about, if the user
/// wrote that; else at another one that the rule names; else at the section around it, or at the phase. Derived
/// settings that the rule names are told with their origin.
[[noreturn]] void refuse(const Experiment& refused, const Phase& phase, const WrittenSettings& written,
                         const std::vector<DerivedSettings>& derived);

}  // namespace manyworlds::experiments::phases

// Asking a sweep for its best alone.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/sweep/experiment.hpp"
#include "experiments/text/yaml.hpp"

namespace manyworlds::experiments {

/// Lets a sweep simulate only what may be among its `best` best. Throws InputError, naming `option`, if no lower bound
/// of the step time bounds its objective.
void ask_for_best(Sweep& sweep, std::uint32_t best, const std::string& option);
/// The same by the key `best` of a document.
void read_best(const import::Node& best, Sweep& sweep);

}  // namespace manyworlds::experiments

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
/// Lets it end once no other experiment can be better than the last of these by more than a share, as in "2%" or
/// "0.02". Throws InputError, naming `option`, for anything but a share below 1, and for a sweep that does not ask for
/// its best.
void allow_gap(Sweep& sweep, const std::string& gap, const std::string& option);
/// The same by the keys `best` and `gap` of a document; either may be null.
void read_best(const import::Node* best, const import::Node* gap, Sweep& sweep);

}  // namespace manyworlds::experiments

// Names of keys in the config schema: how they are composed, which there are, and which is meant by an unknown one.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment_config.hpp"
#include "experiments/keys/section.hpp"

namespace manyworlds::experiments {

std::vector<std::string> key_parts(const std::string& dotted);

std::vector<std::string> names_of(const std::vector<core::OptionInfo>& options);
/// Returns the names of the options of all components of a section, each once.
std::vector<std::string> option_names(const Section& choice_section);
/// Returns all keys that end in these words; those of optional sections, which repeat others, are left out.
std::vector<std::string> keys_ending_in(const std::string& ending);

/// Returns a hint about the intended key for an unknown key in `section`.
std::string hint_in_section(const Section& section, const std::string& dotted);

}  // namespace manyworlds::experiments

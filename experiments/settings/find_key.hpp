// Finds dotted keys in the config schema.
#pragma once

#include <string>

#include "experiments/keys/section.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// The meaning of a dotted key. Exactly one of section, option and choice_section is set.
struct Target {
  std::string path;                          // canonical key, as in Settings
  const Section* section = nullptr;          // a whole section, or a component by name
  const core::OptionInfo* option = nullptr;  // a single value
  const Section* choice_section = nullptr;   // section of whose chosen component `member` is an option
  std::string member;
  std::string component;  // with an option: the component that has it, which must be the chosen one; with a section:
                          // the component whose options are given
};

/// Whether it is a text that may be empty: --set KEY= then takes away what a sweep says.
bool takes_empty_text(const Target& target);

/// Resolves a key. Throws InputError at `at`, with the nearest name, if the config schema has no such key.
Target find_key(const std::string& dotted, const import::Node& at);

/// Resolves a key as people type it: its last words suffice, as in "tp", if only one key ends with them.
Target find_typed_key(const std::string& typed, const import::Node& at);

/// Returns the place of an entry's key, without content.
import::Node place_of_entry(const import::Entry& entry);

}  // namespace manyworlds::experiments

// Keys of an experiment as a tree of sections, and how one is found in it. The tree itself is that of
// experiments/config/config_schema.hpp.
#pragma once

#include <string>
#include <vector>

#include "core/base/options.hpp"

namespace manyworlds::experiments {

/// One of the components that a section chooses between: `{fat_tree: {oversubscription: 4}}`.
struct Choice {
  std::string name;
  std::string help;
  std::vector<core::OptionInfo> options;
  std::vector<std::string> also_called = {};
};

struct Section {
  std::string name;
  std::string help;
  std::vector<core::OptionInfo> options;
  std::vector<Section> subsections;
  std::string catalog;          // "gpus", "models", "clusters", "stacks": a catalog name may replace the mapping
  std::vector<Choice> choices;  // of routing, topology and transport: exactly one is chosen
  bool optional = false;        // absent, defaults included, until one of its keys is given
};

/// Returns false if the default is outside the option's own range or choices. The value is then absent until the user
/// or derive() sets it.
bool has_default(const core::OptionInfo& option);

/// Returns whether the option names a file, whose text becomes part of the sweep.
bool is_file(const core::OptionInfo& option);

const core::OptionInfo* find_option(const std::vector<core::OptionInfo>& options, const std::string& name);
const Section* find_section(const std::vector<Section>& subsections, const std::string& name);
const Choice* find_choice(const Section& section, const std::string& name);
/// Finds a choice by its name or one of its aliases; - and _ between words are equivalent.
const Choice* choice_named(const Section& section, std::string typed);

/// Returns all names that are valid at this level of the tree, for suggestions.
std::vector<std::string> names_in(const Section& section);

/// Returns the key of `name` in the section at `path`; that of the root is empty.
std::string join_key(const std::string& path, const std::string& name);

}  // namespace manyworlds::experiments

// Every key that an experiment may have, as one tree made from the option tables and registries. Readers, axes,
// the JSON Schema and suggestions walk it; none of them knows a key by name.
#pragma once

#include <string>
#include <vector>

#include "core/base/options.hpp"

namespace manyworlds::experiments {

/// One of the components a branch chooses between: `{fat_tree: {oversubscription: 4}}`.
struct Alternative {
  std::string name;
  std::string help;
  std::vector<core::OptionInfo> options;
  std::vector<std::string> also_called = {};
};

struct Branch {
  std::string name;
  std::string help;
  std::vector<core::OptionInfo> options;
  std::vector<Branch> branches;
  std::string catalog;                    // "gpus", "models", "clusters": a name of it may stand for the mapping
  std::vector<Alternative> alternatives;  // of routing, topology and transport, which choose exactly one
  bool optional = false;                  // nothing of it is there, defaults included, until some of it is given
};

/// The root: its options and branches are the keys of `base`.
const Branch& vocabulary();

/// The branch that the catalog's `kind` fills.
const Branch& catalog_branch(const std::string& kind);

/// False where the default lies outside the option's own range or choices: the value is absent until somebody gives it,
/// or until derive() does.
bool has_default(const core::OptionInfo& option);

/// Does this option name a file, whose text belongs to the sweep?
bool is_file(const core::OptionInfo& option);

const core::OptionInfo* find_option(const std::vector<core::OptionInfo>& options, const std::string& name);
const Branch* find_branch(const std::vector<Branch>& branches, const std::string& name);
const Alternative* find_alternative(const Branch& branch, const std::string& name);
/// By its name or another that people have for it, with - or _ between its words.
const Alternative* alternative_called(const Branch& branch, std::string typed);

/// What may stand at this level of the tree, for suggestions.
std::vector<std::string> names_in(const Branch& branch);

}  // namespace manyworlds::experiments

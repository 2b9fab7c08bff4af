#include "experiments/settings/key_names.hpp"

#include <algorithm>

#include "experiments/config/config_schema.hpp"
#include "experiments/settings/key_hints.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;

/// Collects the keys that end in ".ending", except in optional sections, whose keys repeat those of other sections.
void collect_endings(const Section& section, const std::string& path, const std::string& ending,
                     std::vector<std::string>& found) {
  const auto look = [&](const std::string& name) {
    if (("." + join_key(path, name)).ends_with("." + ending)) found.push_back(join_key(path, name));
  };
  for (const OptionInfo& info : section.options)
    if (info.name != "name") look(info.name);
  for (const std::string& name : option_names(section)) look(name);
  for (const Section& child : section.subsections) {
    if (child.optional) continue;
    look(child.name);
    collect_endings(child, join_key(path, child.name), ending, found);
  }
}

}  // namespace

std::vector<std::string> key_parts(const std::string& dotted) {
  std::vector<std::string> parts{""};
  for (const char c : dotted) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  }
  return parts;
}

std::vector<std::string> names_of(const std::vector<OptionInfo>& options) {
  std::vector<std::string> names;
  for (const OptionInfo& info : options) names.push_back(info.name);
  return names;
}

std::vector<std::string> option_names(const Section& choice_section) {
  std::vector<std::string> names;
  for (const Choice& candidate : choice_section.choices)
    for (const std::string& name : names_of(candidate.options))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::vector<std::string> keys_ending_in(const std::string& ending) {
  std::vector<std::string> found;
  collect_endings(config_schema(), "", ending, found);
  return found;
}

std::string hint_in_section(const Section& section, const std::string& dotted) {
  return key_hint(section, dotted, {});
}

}  // namespace manyworlds::experiments

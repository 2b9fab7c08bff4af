#include "experiments/settings/find_key.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/config/config_schema.hpp"
#include "experiments/settings/key_aliases.hpp"
#include "experiments/settings/key_hints.hpp"
#include "experiments/settings/key_names.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;
using import::Node;

/// Resolves the part of a dotted key behind a choice: an option, alone or after its component's name.
Target find_in_choice(const Section& section, const std::string& path, const std::vector<std::string>& rest,
                      const std::string& dotted, const Node& at) {
  Target target;
  target.path = join_key(path, rest.back());
  if (rest.size() == 1) {
    if (const Choice* component_named = choice_named(section, rest[0])) {
      target.path = path;
      target.section = &section;
      target.component = component_named->name;
      return target;
    }
    const auto known = option_names(section);
    if (std::find(known.begin(), known.end(), rest[0]) == known.end())
      at.fail(fmt::format("unknown key '{}'{}", dotted, suggestion(rest[0], known)));
    target.choice_section = &section;
    target.member = rest[0];
    return target;
  }
  const Choice* component = choice_named(section, rest[0]);
  if (!component)
    at.fail(fmt::format("unknown {} '{}' in '{}'{}", section.name, rest[0], dotted,
                        suggestion(rest[0], names_in(section))));
  if (rest.size() == 2) target.option = find_option(component->options, rest[1]);
  if (!target.option)
    at.fail(fmt::format("unknown key '{}'{}", dotted, suggestion(rest[1], names_of(component->options))));
  target.component = component->name;
  return target;
}

}  // namespace

bool takes_empty_text(const Target& target) {
  if (target.option == nullptr || target.option->kind != core::OptionInfo::Kind::text) return false;
  return target.option->choices.empty() && std::get<std::string>(target.option->default_value).empty();
}

Target find_key(const std::string& dotted, const Node& at) {
  const auto parts = key_parts(dotted);
  const Section* section = &config_schema();
  std::string path;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!section->choices.empty())
      return find_in_choice(*section, path, {parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end()}, dotted, at);
    const std::string child_path = join_key(path, parts[i]);
    if (const OptionInfo* option = find_option(section->options, parts[i]); option && i + 1 == parts.size()) {
      Target target;
      target.path = child_path;
      target.option = option;
      return target;
    }
    const Section* child = find_section(section->subsections, parts[i]);
    if (!child) {
      if (const std::string key = key_for_alias(dotted); !key.empty()) return find_key(key, at);
      at.fail(fmt::format("unknown key '{}'{}", dotted, key_hint(*section, dotted, at)));
    }
    section = child;
    path = child_path;
  }
  Target target;
  target.path = path;
  target.section = section;
  return target;
}

Target find_typed_key(const std::string& typed, const Node& at) {
  const std::string first = typed.substr(0, typed.find('.'));
  const auto top = names_in(config_schema());
  if (std::find(top.begin(), top.end(), first) != top.end()) return find_key(typed, at);
  const std::vector<std::string> found = keys_ending_in(typed);
  if (found.size() == 1) return find_key(found.front(), at);
  if (!found.empty()) at.fail(fmt::format("'{}' may be {}; give one of them", typed, fmt::join(found, " or ")));
  return find_key(typed, at);
}

import::Node place_of_entry(const import::Entry& entry){import::Node at;
at.file = entry.value.file;
at.line = entry.line;
return at;
}  // namespace manyworlds::experiments

}  // namespace manyworlds::experiments

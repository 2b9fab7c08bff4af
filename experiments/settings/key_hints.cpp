#include "experiments/settings/key_hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "experiments/config/config_schema.hpp"
#include "experiments/settings/key_aliases.hpp"
#include "experiments/settings/key_names.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;
using import::Node;

constexpr std::size_t kMinWordLength = 4;  // of a word that may stand for a longer key

bool says_nothing(const Node& value) {
  return value.kind == Node::Kind::null || value.kind == Node::Kind::sequence ||  // lists are of axes
         (value.kind == Node::Kind::scalar && value.text.empty());
}

bool takes(const OptionInfo& option, const Node& value) {
  if (says_nothing(value)) return true;
  try {
    import::read_value(value, option, option.name);
    return true;
  } catch (const core::InputError&) {
    return false;
  }
}

void add_taking(const std::vector<OptionInfo>& options, const Node& value, std::vector<std::string>& names) {
  for (const OptionInfo& info : options)
    if (takes(info, value)) names.push_back(info.name);
}

/// Collects the names of options below `section`, at any depth, that can take `value`.
void collect_names(const Section& section, const Node& value, std::vector<std::string>& names) {
  for (const Choice& component : section.choices) add_taking(component.options, value, names);
  for (const Section& child : section.subsections) {
    add_taking(child.options, value, names);
    collect_names(child, value, names);
  }
}

/// Returns the words of a name from each on: "dispatcher" and "token_dispatcher" of "moe_token_dispatcher", the longest
/// first.
std::vector<std::string> last_words(const std::string& name) {
  std::vector<std::string> ends;
  for (std::size_t at = name.find('_'); at != std::string::npos; at = name.find('_', at + 1))
    if (name.size() - at > kMinWordLength) ends.push_back(name.substr(at + 1));
  return ends;
}

/// Returns the key whose name is the last words of an unknown one, in the section if it has one, else anywhere.
std::string key_of_last_words(const std::vector<std::string>& known, const std::string& name) {
  for (const std::string& words : last_words(name)) {
    if (std::find(known.begin(), known.end(), words) != known.end()) return words;
    if (const std::vector<std::string> elsewhere = keys_ending_in(words); elsewhere.size() == 1)
      return elsewhere.front();
  }
  return "";
}

/// Returns what is right in place of a key `…like`, which stands in mappings alone.
std::string like_hint(const std::string& dotted, const Node& value) {
  const std::string section = dotted.substr(0, dotted.rfind('.'));
  if (value.kind != Node::Kind::scalar || value.text.empty()) return unknown_key_hint(dotted);
  return fmt::format("; it is {0}={1}, or {0}={{like: {1}, KEY: VALUE}} with what is otherwise than there", section,
                     value.text);
}

}  // namespace

std::string key_hint(const Section& section, const std::string& dotted, const Node& value) {
  if (dotted.ends_with(".like")) return like_hint(dotted, value);
  if (const std::string hint = unknown_key_hint(dotted); !hint.empty()) return hint;
  const std::string last = key_parts(dotted).back();
  if (const auto elsewhere = keys_ending_in(last); elsewhere.size() == 1)
    return fmt::format("; did you mean '{}'?", elsewhere.front());
  auto known = names_in(section);
  if (!section.catalog.empty()) known.push_back("like");
  std::vector<std::string> candidates = known;
  if (last == dotted)
    collect_names(config_schema(), value, candidates);  // at the top of `base` the last words of a key suffice
  const std::string near_text = suggestion(last, candidates);
  if (near_text.starts_with("; did")) return near_text;
  if (const std::string key = key_of_last_words(known, last); !key.empty())
    return fmt::format("; did you mean '{}'?", key);
  return suggestion(last, known);
}

}  // namespace manyworlds::experiments

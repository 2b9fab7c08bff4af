#include "experiments/megatron/dialect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

constexpr const char* kNotGiven = "-";

/// Returns True and False as Megatron-LM prints them, whatever YAML or a shell calls them.
std::string plain_value(const Node& value) {
  if (value.kind == Node::Kind::null) return "None";
  for (const char* word : {"true", "True", "TRUE", "yes", "on"})
    if (value.text == word) return "True";
  for (const char* word : {"false", "False", "FALSE", "no", "off"})
    if (value.text == word) return "False";
  if (value.text == "null" || value.text == "~" || value.text == "none") return "None";
  return value.text;
}

Place place_of(const Node& node) {
  return {node.file, node.line};
}

/// Returns what a value stands for by words such as "a=b *=c".
std::string translated_or_other(const std::string& values, const std::string& word) {
  const std::string meaning = translated(values, word);
  return meaning.empty() ? translated(values, "*") : meaning;
}

bool matches(const std::string& pattern, const std::string& name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool is_switch(const std::string& argument) {
  const MegatronArgument* known = find_argument(argument);
  return known != nullptr && known->takes == Takes::nothing;
}

std::string without_values(const std::string& word) {
  return word.substr(0, word.find('='));
}

}  // namespace

void DialectReader::put(const std::string& name, const std::string& argument, std::vector<Text> values,
                        const Place& place) {
  mapped_.insert(name);
  arguments_[argument] = Argument{argument, is_switch(argument) ? std::vector<Text>{} : std::move(values), place};
}

void DialectReader::assume(const std::string& argument, const std::string& value) {
  Argument one{argument, {}, {}};
  if (!value.empty()) one.values.push_back({value, {}});
  arguments_[argument] = std::move(one);
}

std::string DialectReader::text(const std::string& argument) const {
  const auto found = arguments_.find(argument);
  return found == arguments_.end() || found->second.values.empty() ? "" : found->second.values.front().text;
}

/// Returns the group that a name belongs to: by itself, or by a pattern.
const ArgumentGroup* DialectReader::other(const std::string& name, bool by_pattern, std::string& harmless) const {
  for (const ArgumentGroup& group : dialect_.others)
    for (const std::string& word : words_of(group.names)) {
      const std::string pattern = without_values(word);
      if (pattern.ends_with('*') != by_pattern || !matches(pattern, name)) continue;
      harmless = word.substr(std::min(word.size(), pattern.size() + 1));
      std::replace(harmless.begin(), harmless.end(), '/', ' ');
      return &group;
    }
  return nullptr;
}

std::string DialectReader::own_name(const std::string& name) const {
  std::string own;
  for (const std::string& section : dialect_.sections)
    if (name.starts_with(section) && name.find('.', section.size()) == std::string::npos)
      own = name.substr(section.size());
  return own;
}

bool DialectReader::knows(const std::string& name) const {
  std::string harmless;
  return other(name, false, harmless) != nullptr || other(name, true, harmless) != nullptr ||
         std::any_of(dialect_.settings.begin(), dialect_.settings.end(),
                     [&](const NamedSetting& one) { return one.name == name; }) ||
         (!own_name(name).empty() && !own_setting(own_name(name), "None", {}).argument.empty());
}

void DialectReader::add(const std::string& name, const Node& value) {
  for (const NamedSetting& one : dialect_.settings)
    if (one.name == name) return add_mapped(one, value);
  std::string harmless;
  const ArgumentGroup* group = other(name, false, harmless);
  if (group != nullptr) return judge(name, group->fate, group->why, harmless, value);
  const std::string own = own_name(name);
  if (!own.empty() && !own_setting(own, "None", place_of(value)).argument.empty()) return add_own(name, own, value);
  group = other(name, true, harmless);
  if (group == nullptr && value.kind == Node::Kind::null) return void(irrelevant_.insert(name));  // not set
  if (group == nullptr) fail_unknown(name, place_of(value));
  judge(name, group->fate, group->why, harmless, value);
}

void DialectReader::fail_unknown(const std::string& name, const Place& place) const {
  std::vector<std::string> known;
  for (const NamedSetting& one : dialect_.settings) known.push_back(one.name);
  for (const ArgumentGroup& group : dialect_.others)
    for (const std::string& word : words_of(group.names)) known.push_back(without_values(word));
  for (const std::string& section : dialect_.sections)
    for (const MegatronArgument& one : megatron_arguments()) {
      std::string own = one.name;
      std::replace(own.begin(), own.end(), '-', '_');
      known.push_back(section + own);
    }
  std::string near = suggestion(name, known);
  if (!near.starts_with("; did")) near = "";
  fail_at(place, fmt::format("'{}' is no setting of {} that is known here{}", name, dialect_.framework, near));
}

void DialectReader::add_mapped(const NamedSetting& known, const Node& value) {
  if (value.kind == Node::Kind::mapping) value.fail(fmt::format("'{}' must be a value", known.name));
  if (value.kind == Node::Kind::sequence) {
    std::vector<Text> words;
    for (const Node& item : value.items) words.push_back({plain_value(item), place_of(item)});
    if (words.empty()) return void(arguments_.erase(known.argument));
    return put(known.name, known.argument, std::move(words), place_of(value));
  }
  std::string word = plain_value(value);
  if (!shell::is_known(word))
    fail_at(place_of(value),
            fmt::format("'{}' follows from {}{}", known.name, shell::why_unknown(word),
                        dialect_.from_environment ? fmt::format("; give it with --env {}=VALUE", known.name) : ""));
  const bool by_words = !known.values.empty();
  if (word == "None" && (!by_words || translated(known.values, word).empty()))
    return void(arguments_.erase(known.argument));
  if (is_switch(known.argument) && (word == "1" || word == "0")) word = word == "1" ? "True" : "False";
  const std::string meaning = by_words ? translated_or_other(known.values, word) : word;
  if (meaning.empty()) {
    std::vector<std::string> words;
    for (const std::string& one : words_of(known.values)) words.push_back(without_values(one));
    fail_at(place_of(value),
            fmt::format("'{}' {} is not modelled; known are {}", known.name, value.text, fmt::join(words, ", ")));
  }
  if (is_switch(known.argument) && meaning != "True" && meaning != "False" && meaning != kNotGiven)
    fail_at(place_of(value), fmt::format("'{}' must be true or false, not '{}'", known.name, value.text));
  mapped_.insert(known.name);
  if (meaning == kNotGiven || (is_switch(known.argument) && meaning == "False"))
    return void(arguments_.erase(known.argument));
  put(known.name, known.argument, {{meaning, place_of(value)}}, place_of(value));
}

/// Sets what has Megatron-LM's own name.
void DialectReader::add_own(const std::string& name, const std::string& own, const Node& value) {
  if (value.kind == Node::Kind::mapping) value.fail(fmt::format("'{}' must be a value", name));
  std::string word = value.kind == Node::Kind::sequence ? (value.items.empty() ? "None" : "list") : plain_value(value);
  const OwnSetting unset = own_setting(own, "None", place_of(value));
  const MegatronArgument& argument = *find_argument(unset.argument);
  if (argument.takes == Takes::nothing && (word == "1" || word == "0")) word = word == "1" ? "True" : "False";
  if (argument.fate == Fate::irrelevant) irrelevant_.insert(name);
  if (argument.fate == Fate::mapped) mapped_.insert(name);
  OwnSetting set = own_setting(own, word, place_of(value));
  if (!set.given) return void(arguments_.erase(unset.argument));
  if (value.kind == Node::Kind::sequence) {
    set.given->values.clear();
    for (const Node& item : value.items) set.given->values.push_back({plain_value(item), place_of(item)});
  }
  arguments_[unset.argument] = std::move(*set.given);
}

void DialectReader::judge(const std::string& name, Fate fate, const std::string& why, const std::string& harmless,
                          const Node& value) {
  if (fate == Fate::irrelevant) return void(irrelevant_.insert(name));
  const std::string word =
      value.kind == Node::Kind::scalar || value.kind == Node::Kind::null ? plain_value(value) : "…";
  const std::vector<std::string> allowed = words_of(harmless);
  if (is_off(word) || word == "0" || std::find(allowed.begin(), allowed.end(), word) != allowed.end()) {
    noted_.erase(name);
    irrelevant_.insert(name);
    return;
  }
  if (fate == Fate::refused) fail_at(place_of(value), fmt::format("'{}' {}: {}", name, shell::shown(word), why));
  noted_[name] = why;
}

void DialectReader::finish(JobArguments& to) const {
  for (const auto& [name, argument] : arguments_) to.arguments.push_back(argument);
  const auto is_said = [](const Argument& one) { return one.place.file != nullptr; };
  std::stable_sort(to.arguments.begin(), to.arguments.end(), [&](const Argument& a, const Argument& b) {
    return is_said(a) != is_said(b) ? is_said(a) : a.place.line < b.place.line;
  });
  std::vector<std::string> noted;
  for (const auto& [name, why] : noted_) noted.push_back(fmt::format("{} ({})", name, why));
  if (!noted.empty()) to.notes.push_back(fmt::format("not modelled: {}", fmt::join(noted, ", ")));
}

void DialectReader::count(Job& job) const {
  job.mapped = mapped_.size();
  job.irrelevant = static_cast<std::int64_t>(irrelevant_.size());
}

void visit_leaves(const Node& mapping, const std::string& prefix,
                  const std::function<void(const std::string& name, const Node& value)>& visit) {
  for (const import::Entry& entry : mapping.entries) {
    const std::string name = prefix + entry.key;
    if (entry.value.kind == Node::Kind::mapping)
      visit_leaves(entry.value, name + ".", visit);
    else
      visit(name, entry.value);
  }
}

std::string dialect_markdown(const Dialect& dialect) {
  std::string text = "| setting | argument of Megatron-LM | meaning |\n|---|---|---|\n";
  for (const NamedSetting& one : dialect.settings)
    text += fmt::format("| `{}` | `--{}` | {} |\n", one.name, one.argument,
                        !one.why.empty()     ? one.why
                        : one.values.empty() ? "as given"
                                             : one.values);
  const std::pair<Fate, const char*> titles[] = {{Fate::irrelevant, "without effect on time and memory"},
                                                 {Fate::noted, "not modelled, said in the answer"},
                                                 {Fate::refused, "refused"}};
  for (const auto& [fate, title] : titles) {
    std::string rows;
    for (const ArgumentGroup& group : dialect.others) {
      if (group.fate != fate) continue;
      std::string names;
      for (const std::string& word : words_of(group.names))
        names += fmt::format("{}`{}`", names.empty() ? "" : " ", without_values(word));
      rows += fmt::format("| {} | {} |\n", group.why, names);
    }
    if (!rows.empty()) text += fmt::format("\n| {} | settings |\n|---|---|\n{}", title, rows);
  }
  return text;
}

}  // namespace manyworlds::experiments::jobs

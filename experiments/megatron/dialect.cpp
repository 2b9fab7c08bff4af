#include "experiments/megatron/dialect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

bool is_switch(const std::string& argument) {
  const KnownName* known = find_argument(argument);
  return known != nullptr && known->takes == Takes::nothing;
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

std::string DialectReader::own_name(const std::string& name) const {
  std::string own;
  for (const std::string& section : dialect_.sections)
    if (name.starts_with(section) && name.find('.', section.size()) == std::string::npos)
      own = name.substr(section.size());
  return own;
}

bool DialectReader::knows(const std::string& name) const {
  return dialect_.names.find(name) != nullptr || dialect_.names.find_beginning(name) != nullptr ||
         (!own_name(name).empty() && !own_setting(own_name(name), "None", {}).argument.empty());
}

void DialectReader::add(const std::string& name, const Node& value) {
  const KnownName* known = dialect_.names.find(name);
  if (known != nullptr && known->fate == Fate::mapped) return add_mapped(*known, value);
  if (known != nullptr) return judge(name, *known, value);
  const std::string own = own_name(name);
  if (!own.empty() && !own_setting(own, "None", place_of(value)).argument.empty()) return add_own(name, own, value);
  known = dialect_.names.find_beginning(name);
  if (known == nullptr && value.kind == Node::Kind::null) return void(irrelevant_.insert(name));  // not set
  if (known == nullptr) fail_unknown(name, place_of(value));
  judge(name, *known, value);
}

void DialectReader::fail_unknown(const std::string& name, const Place& place) const {
  std::vector<std::string> own;
  for (const std::string& section : dialect_.sections)
    for (const KnownName& one : megatron_arguments().all()) {
      own.push_back(section + one.name);
      std::replace(own.back().begin() + static_cast<std::ptrdiff_t>(section.size()), own.back().end(), '-', '_');
    }
  fail_at(place, fmt::format("'{}' is no setting of {} that is known here{}", name, dialect_.names.framework(),
                             dialect_.names.near(name, own)));
}

void DialectReader::add_mapped(const KnownName& known, const Node& value) {
  if (value.kind == Node::Kind::mapping) value.fail(fmt::format("'{}' must be a value", known.name));
  if (value.kind == Node::Kind::sequence) {
    std::vector<Text> words;
    for (const Node& item : value.items) words.push_back({plain_value(item), place_of(item)});
    if (words.empty()) return void(arguments_.erase(known.means));
    return put(known.name, known.means, std::move(words), place_of(value));
  }
  std::string word = plain_value(value);
  if (!shell::is_known(word))
    fail_at(place_of(value),
            fmt::format("'{}' follows from {}{}", known.name, shell::why_unknown(word),
                        dialect_.from_environment ? fmt::format("; give it with --env {}=VALUE", known.name) : ""));
  const bool by_words = !known.values.empty();
  if (word == "None" && (!by_words || translated(known.values, word).empty()))
    return void(arguments_.erase(known.means));
  if (is_switch(known.means) && (word == "1" || word == "0")) word = word == "1" ? "True" : "False";
  const std::string meaning = by_words ? translated_or_other(known.values, word) : word;
  if (meaning.empty())
    fail_at(place_of(value),
            fmt::format("'{}' {} is not modelled; known are {}", known.name, value.text, known_words(known.values)));
  if (is_switch(known.means) && meaning != "True" && meaning != "False" && meaning != kNotGiven)
    fail_at(place_of(value), fmt::format("'{}' must be true or false, not '{}'", known.name, value.text));
  mapped_.insert(known.name);
  if (meaning == kNotGiven || (is_switch(known.means) && meaning == "False"))
    return void(arguments_.erase(known.means));
  put(known.name, known.means, {{meaning, place_of(value)}}, place_of(value));
}

/// Sets what has Megatron-LM's own name.
void DialectReader::add_own(const std::string& name, const std::string& own, const Node& value) {
  if (value.kind == Node::Kind::mapping) value.fail(fmt::format("'{}' must be a value", name));
  std::string word = value.kind == Node::Kind::sequence ? (value.items.empty() ? "None" : "list") : plain_value(value);
  const OwnSetting unset = own_setting(own, "None", place_of(value));
  const KnownName& argument = *find_argument(unset.argument);
  if (argument.takes == Takes::nothing && (word == "1" || word == "0")) word = word == "1" ? "True" : "False";
  if (argument.fate == Fate::irrelevant || argument.fate == Fate::carried) irrelevant_.insert(name);
  if (argument.fate == Fate::mapped) mapped_.insert(name);
  OwnSetting set = own_setting(own, word, place_of(value));
  if (!set.given) return void(arguments_.erase(unset.argument));
  if (value.kind == Node::Kind::sequence) {
    set.given->values.clear();
    for (const Node& item : value.items) set.given->values.push_back({plain_value(item), place_of(item)});
  }
  arguments_[unset.argument] = std::move(*set.given);
}

void DialectReader::judge(const std::string& name, const KnownName& known, const Node& value) {
  if (known.fate == Fate::irrelevant) return void(irrelevant_.insert(name));
  const bool plain = value.kind == Node::Kind::scalar || value.kind == Node::Kind::null;
  const std::string word = plain ? plain_value(value) : value.items.empty() && value.entries.empty() ? "[]" : "…";
  if (is_off(word) || word == "0" || known.is_harmless(word)) {
    noted_.erase(name);
    irrelevant_.insert(name);
    return;
  }
  if (known.fate == Fate::refused)
    fail_at(place_of(value), fmt::format("'{}' {}: {}", name, shell::shown(word), known.why));
  noted_[name] = known.why;
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

}  // namespace manyworlds::experiments::jobs

#include "experiments/jobs/given_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

void flatten(const Node& node, const std::string& prefix, const KnownNames& known, std::vector<GivenKey>& keys) {
  for (const import::Entry& entry : node.entries) {
    const std::string name = prefix + entry.key;
    const bool section = known.is_section(name);
    if (known.find(name) == nullptr && !section)
      fail_at({entry.value.file, entry.line},
              fmt::format("'{}' is no key of {} that is known here{}", name, known.framework(), known.near(name)));
    if (section && entry.value.kind == Node::Kind::mapping)
      flatten(entry.value, name + ".", known, keys);
    else if (known.find(name) == nullptr)
      fail_at({entry.value.file, entry.line},
              fmt::format("'{}' must have keys, not {}", name, import::describe(entry.value)));
    else
      keys.push_back({name, entry.value});
  }
}

/// Returns a value as text, for messages and for comparing it with harmless ones.
std::string shown(const Node& value) {
  if (value.kind == Node::Kind::scalar) return shell::shown(value.text);
  if (value.kind == Node::Kind::sequence && value.items.empty()) return "[]";
  return value.kind == Node::Kind::null ? "None" : import::describe(value);
}

bool changes_nothing(const KnownName& key, const Node& value) {
  const std::string text = shown(value);
  return text.empty() || text == "None" || key.is_harmless(text);
}

}  // namespace

std::vector<GivenKey> flattened(const Node& root, const KnownNames& known) {
  if (root.kind != Node::Kind::mapping)
    root.fail(fmt::format("a file of {} must have keys, not {}", known.framework(), import::describe(root)));
  std::vector<GivenKey> keys;
  flatten(root, "", known, keys);
  return keys;
}

GivenKeys::GivenKeys(const KnownNames& known, const std::vector<GivenKey>& keys) : known_(known) {
  for (const GivenKey& one : keys) values_[one.name] = one.value;
}

const Node* GivenKeys::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

const Node* GivenKeys::given_value(const std::string& name) const {
  const Node* value = find(name);
  return value == nullptr || value->kind == Node::Kind::null ? nullptr : value;
}

bool GivenKeys::given(const std::string& name) const {
  return given_value(name) != nullptr;
}

/// Returns the value of a key, or nothing if it is not given. Throws InputError for one that is not known.
const Node* GivenKeys::known_value(const std::string& name) const {
  const Node* value = given_value(name);
  if (value == nullptr) return nullptr;
  if (!shell::is_known(value->text)) fail(name, fmt::format(" follows from {}", shell::why_unknown(value->text)));
  return value;
}

std::string GivenKeys::text(const std::string& name, const std::string& otherwise) const {
  const Node* value = known_value(name);
  if (value == nullptr) return otherwise;
  if (value->kind != Node::Kind::scalar) fail(name, fmt::format(" must be a text, not {}", import::describe(*value)));
  return value->text;
}

std::int64_t GivenKeys::count(const std::string& name, std::int64_t otherwise, std::int64_t minimum) const {
  const Node* value = known_value(name);
  if (value == nullptr) return otherwise;
  const bool plain = value->kind == Node::Kind::scalar && !value->quoted;
  const std::int64_t number = plain ? shell::integer_of(value->text).value_or(minimum - 1) : minimum - 1;
  if (number < minimum || number > kMaxCount)
    fail(name, fmt::format(" must be a whole number of {} at least, not {}", minimum, import::describe(*value)));
  return number;
}

bool GivenKeys::flag(const std::string& name, bool otherwise) const {
  const Node* value = known_value(name);
  if (value == nullptr) return otherwise;
  if (value->kind != Node::Kind::scalar || value->quoted || (value->text != "true" && value->text != "false"))
    fail(name, fmt::format(" must be true or false, not {}", import::describe(*value)));
  return value->text == "true";
}

std::vector<std::string> GivenKeys::words(const std::string& name, const std::vector<std::string>& otherwise) const {
  const Node* value = known_value(name);
  if (value == nullptr) return otherwise;
  std::vector<std::string> result;
  if (value->kind == Node::Kind::scalar)
    for (const std::string_view word : import::words_of(value->text, ", ")) result.emplace_back(word);
  if (value->kind == Node::Kind::mapping) fail(name, " must be a list of texts, not a mapping");
  for (const Node& item : value->items) {
    if (item.kind != Node::Kind::scalar) fail(name, fmt::format(" must be a list of texts, not of {}", describe(item)));
    if (!shell::is_known(item.text)) fail(name, fmt::format(" follows from {}", shell::why_unknown(item.text)));
    result.push_back(item.text);
  }
  return result;
}

std::string GivenKeys::translated(const std::string& name, const std::string& word, const std::string& values) const {
  std::string meaning = jobs::translated(values, word);
  if (meaning.empty()) fail(name, fmt::format(" '{}' is not modelled; known are {}", word, known_words(values)));
  return meaning;
}

Place GivenKeys::place(const std::string& name) const {
  const Node* value = find(name);
  return value == nullptr ? Place{} : Place{value->file, value->line};
}

void GivenKeys::fail(const std::string& name, const std::string& what) const {
  fail_at(place(name), name + what);
}

void GivenKeys::check(Job& job) const {
  std::vector<std::string> noted;
  const std::pair<const std::string, Node>* first = nullptr;  // of those that are refused
  for (const auto& one : values_) {
    const KnownName& key = *known_.find(one.first);
    job.mapped += key.fate == Fate::mapped ? 1 : 0;
    job.irrelevant += key.fate == Fate::irrelevant || key.fate == Fate::carried ? 1 : 0;
    if (key.fate != Fate::noted && key.fate != Fate::refused) continue;
    if (changes_nothing(key, one.second)) continue;
    if (key.fate == Fate::noted) noted.push_back(fmt::format("{} ({})", key.name, key.why));
    if (key.fate == Fate::refused && (first == nullptr || one.second.line < first->second.line)) first = &one;
  }
  if (first != nullptr)
    fail(first->first, fmt::format(" {}: {}", shown(first->second), known_.find(first->first)->why));
  if (!noted.empty()) job.notes.push_back(fmt::format("not modelled: {}", fmt::join(noted, ", ")));
}

}  // namespace manyworlds::experiments::jobs

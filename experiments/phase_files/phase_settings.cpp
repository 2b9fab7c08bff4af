#include "experiments/phase_files/phase_settings.hpp"

#include <algorithm>

#include "experiments/catalog/cluster_files.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::phases {
namespace {

using import::Entry;
using import::Node;

void add_dotted(const Section& section, const std::string& path, const Node& mapping, Node& to) {
  for (const Entry& entry : mapping.entries) {
    const std::string key = path.empty() ? entry.key : path + "." + entry.key;
    const Section* child = find_section(section.subsections, entry.key);
    const bool is_inside = child != nullptr && child->choices.empty() && entry.value.kind == Node::Kind::mapping &&
                           entry.value.find("like") == nullptr;
    if (is_inside)
      add_dotted(*child, key, entry.value, to);
    else
      to.entries.push_back({key, entry.line, entry.value});
  }
}

/// Returns the places of the keys that a mapping of with_dotted_keys() sets, as Settings has them, with those inside
/// sections that are set as a whole.
WrittenSettings::Places places_of(const Node& mapping) {
  WrittenSettings::Places places;
  for (const Entry& entry : mapping.entries) {
    const Node place = place_of_entry(entry);
    const std::string path = find_typed_key(entry.key, place).path;
    places[path] = place;
    if (entry.value.kind != Node::Kind::mapping) continue;
    for (const Entry& inner : entry.value.entries) places[path + "." + inner.key] = place_of_entry(inner);
  }
  return places;
}

Practice practice_of(const PhasesFile& file) {
  if (file.practice.kind == Node::Kind::null) return Practice::today;
  return practice_named(import::read_line(file.practice, "assume", practice_names()));
}

void clear_lines(Node& node) {
  node.line = 0;  // an override has no lines; its name identifies it
  for (Node& item : node.items) clear_lines(item);
  for (Entry& entry : node.entries) entry.line = 0, clear_lines(entry.value);
}

}  // namespace

std::int64_t integer_of(const Settings& settings, const std::string& key, std::int64_t otherwise) {
  const core::OptionValue* found = settings.value(key);
  return found == nullptr ? otherwise : std::get<std::int64_t>(*found);
}

Node with_dotted_keys(const Node& mapping) {
  Node result;
  result.kind = Node::Kind::mapping;
  result.file = mapping.file, result.line = mapping.line;
  add_dotted(config_schema(), "", mapping, result);
  return result;
}

Node overrides_node(const std::vector<std::string>& overrides) {
  Node result;
  result.kind = Node::Kind::mapping;
  for (const std::string& given : overrides) {
    const std::size_t equals = given.find('=');
    if (given.starts_with("assume=")) continue;
    Node value = import::parse_yaml(equals == std::string::npos ? "null" : given.substr(equals + 1), "--set " + given);
    clear_lines(value);
    if (equals == std::string::npos) value.fail("must be key=value, such as strategy.tp=8");
    result.entries.push_back({given.substr(0, equals), 0, std::move(value)});
  }
  return result;
}

WrittenSettings::WrittenSettings(const PhasesFile& file, const Node& change, const Node& set, const Catalog& catalog)
    : changes_{with_dotted_keys(change), set},
      places_{places_of(with_dotted_keys(file.base)), places_of(changes_[0]), places_of(with_dotted_keys(set))} {
  Assigner assigner(catalog, settings_, nullptr, practice_of(file));
  assigner.defaults();
  assigner.assign_base(file.base);
  for (const Node& one : changes_) assigner.assign_base(one);
  count_listed_nodes(settings_);
}

bool WrittenSettings::say(const std::string& key) const {
  return std::any_of(places_.begin(), places_.end(), [&](const Places& places) { return places.contains(key); });
}

const Node& WrittenSettings::place_of(const std::vector<std::string>& keys, const Node& otherwise) const {
  for (auto places = places_.rbegin(); places != places_.rend(); ++places)
    for (const std::string& key : keys)
      if (const auto found = places->find(key); found != places->end()) return found->second;
  return otherwise;
}

DerivedSettings::DerivedSettings(const Node& place) {
  node_.kind = Node::Kind::mapping;
  node_.file = place.file, node_.line = place.line;
}

DerivedSettings& DerivedSettings::set(const std::string& key, const std::string& value, const std::string& origin) {
  Node scalar;
  scalar.kind = Node::Kind::scalar;
  scalar.text = value;
  scalar.file = node_.file, scalar.line = node_.line;
  node_.entries.push_back({key, node_.line, std::move(scalar)});
  origins_[key] = origin;
  return *this;
}

const std::string* DerivedSettings::origin_of(const std::string& key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? nullptr : &found->second;
}

}  // namespace manyworlds::experiments::phases

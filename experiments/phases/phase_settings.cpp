#include "experiments/phases/phase_settings.hpp"

#include <fmt/format.h>

#include <optional>

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

}  // namespace

Node with_dotted_keys(const Node& mapping) {
  Node result;
  result.kind = Node::Kind::mapping;
  result.file = mapping.file, result.line = mapping.line;
  add_dotted(config_schema(), "", mapping, result);
  return result;
}

std::set<std::string> keys_of(const Node& mapping) {
  std::set<std::string> keys;
  for (const Entry& entry : mapping.entries) {
    const std::string path = find_typed_key(entry.key, place_of_entry(entry)).path;
    keys.insert(path);
    if (entry.value.kind != Node::Kind::mapping) continue;
    for (const Entry& inner : entry.value.entries) keys.insert(path + "." + inner.key);
  }
  return keys;
}

Change::Change(const Node& place) {
  node_.kind = Node::Kind::mapping;
  node_.file = place.file, node_.line = place.line;
}

Change& Change::set(const std::string& key, const std::string& value) {
  Node scalar;
  scalar.kind = Node::Kind::scalar;
  scalar.text = value;
  scalar.file = node_.file, scalar.line = node_.line;
  node_.entries.push_back({key, node_.line, std::move(scalar)});
  return *this;
}

Node overrides_node(const std::vector<std::string>& overrides) {
  Node result;
  result.kind = Node::Kind::mapping;
  for (const std::string& given : overrides) {
    const std::size_t equals = given.find('=');
    if (given.starts_with("assume=")) continue;
    Node value = import::parse_yaml(equals == std::string::npos ? "null" : given.substr(equals + 1), "--set " + given);
    if (equals == std::string::npos) value.fail("must be key=value, such as strategy.tp=8");
    const int line = value.line;
    result.entries.push_back({given.substr(0, equals), line, std::move(value)});
  }
  return result;
}

Settings settings_of(const PhasesFile& file, const std::vector<Node>& changes, const Catalog& catalog) {
  const Practice practice = file.practice.kind == Node::Kind::null
                                ? Practice::today
                                : practice_named(import::read_line(file.practice, "assume", practice_names()));
  Settings settings;
  Assigner assigner(catalog, settings, nullptr, practice);
  assigner.defaults();
  assigner.assign_base(file.base);
  for (const Node& change : changes) assigner.assign_base(change);
  count_listed_nodes(settings);
  return settings;
}

}  // namespace manyworlds::experiments::phases

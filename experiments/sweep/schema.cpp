// JSON Schema draft 2020-12: the vocabulary as nested objects, every object closed.
#include "experiments/sweep/schema.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/config/vocabulary.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;
using nlohmann::json;
using Kind = OptionInfo::Kind;

json any_of(std::vector<json> ways) {
  return ways.size() == 1 ? ways.front() : json{{"anyOf", std::move(ways)}};
}

/// Sizes, times and rates may carry a suffix, which makes them texts.
bool takes_suffix(const OptionInfo& info) {
  for (const char* unit : {"bytes", "GiB", "ps", "us", "Gb/s"})
    if (info.unit == unit) return true;
  return false;
}

json option_schema(const OptionInfo& info) {
  json made, items_of_list{{"type", info.choices.empty() ? "integer" : "string"}};
  switch (info.kind) {
    case Kind::boolean:
      made["type"] = "boolean";
      break;
    case Kind::integer:
      made["type"] = "integer";
      break;
    case Kind::real:
      made["type"] = "number";
      break;
    case Kind::text:
      made["type"] = "string";
      break;
  }
  json& values = info.several ? items_of_list : made;
  if (!info.choices.empty()) values["enum"] = info.choices;
  if (std::isfinite(info.minimum)) values["minimum"] = info.minimum;
  if (std::isfinite(info.maximum)) values["maximum"] = info.maximum;
  if (info.several) made = any_of({made, json{{"type", "array"}, {"items", items_of_list}}});
  if (takes_suffix(info))
    made = any_of({made, json{{"type", "string"},
                              {"pattern", "^[0-9.]+ ?(B|bytes|[KMGT](i?B)?|ps|ns|us|ms|s|[KkMGT]?bps|Gb/s)$"}}});
  made["description"] = info.help + (info.unit.empty() ? "" : " (" + info.unit + ")");
  if (has_default(info)) made["default"] = to_json(info.fallback);
  return made;
}

json closed(json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

json options_schema(const std::vector<OptionInfo>& options) {
  json properties = json::object();
  for (const OptionInfo& info : options) properties[info.name] = option_schema(info);
  return properties;
}

json names_schema(const std::string& kind, const Catalog& catalog) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : catalog.of(kind)) {
    names.push_back(name);
    names.insert(names.end(), entry.also_called.begin(), entry.also_called.end());
  }
  return {{"type", "string"}, {"enum", names}};
}

json branch_schema(const Branch& branch, const Catalog& catalog) {
  json made;
  if (!branch.alternatives.empty()) {
    std::vector<json> ways{{{"type", "string"}, {"enum", names_in(branch)}}};
    for (const Alternative& one : branch.alternatives) {
      json way = closed({{one.name, closed(options_schema(one.options))}});
      way["required"] = {one.name};
      way["description"] = one.help;
      ways.push_back(std::move(way));
    }
    made = any_of(std::move(ways));
  } else {
    json properties = options_schema(branch.options);
    for (const Branch& child : branch.branches) properties[child.name] = branch_schema(child, catalog);
    if (branch.catalog.empty()) {
      made = closed(std::move(properties));
    } else {
      properties["like"] = names_schema(branch.catalog, catalog);
      made = any_of({names_schema(branch.catalog, catalog), closed(std::move(properties))});
    }
  }
  made["description"] = branch.help;
  return made;
}

json list_of(json item) {
  return {{"type", "array"}, {"minItems", 1}, {"items", std::move(item)}};
}

/// A list of values, or a range where values are numbers.
json axis_schema(json value, bool number) {
  std::vector<json> ways{list_of(std::move(value))};
  if (number)
    ways.push_back(json::parse(R"({"type": "object", "required": ["range"], "additionalProperties": false,
    "properties": {"range": {"type": "array", "minItems": 3, "maxItems": 3}}})"));
  return any_of(std::move(ways));
}

void add_axes(json& axes, const Branch& branch, const std::string& path, const Catalog& catalog) {
  const auto add = [&](const std::vector<OptionInfo>& options, const std::string& prefix) {
    for (const OptionInfo& info : options)
      axes[prefix + info.name] =
          axis_schema(option_schema(info), info.kind == Kind::integer || info.kind == Kind::real);
  };
  const std::string prefix = path.empty() ? "" : path + ".";
  add(branch.options, prefix);
  for (const Alternative& one : branch.alternatives) {
    add(one.options, prefix);
    add(one.options, prefix + one.name + ".");
  }
  for (const Branch& child : branch.branches) {
    axes[prefix + child.name] = axis_schema(branch_schema(child, catalog), false);
    add_axes(axes, child, prefix + child.name, catalog);
  }
}

}  // namespace

std::string json_schema(const Catalog& catalog) {
  json axes = json::object();
  add_axes(axes, vocabulary(), "", catalog);
  const json moved = closed(std::move(axes));
  std::vector<std::string> figures;
  for (const Objective& one : objectives()) figures.push_back(one.name);
  // A bare 2021 is a number to who reads YAML by its types.
  const json practices = any_of({json{{"enum", practice_names()}}, json{{"const", 2021}}});
  json made = closed({{"name", {{"type", "string"}}},
                      {"assume", practices},
                      {"base", branch_schema(vocabulary(), catalog)},
                      {"axes", {{"$ref", "#/$defs/axes"}}},
                      {"zip", list_of({{"$ref", "#/$defs/axes"}})},
                      {"where", {{"type", "array"}, {"items", {{"type", "string"}}}}},
                      {"sample", closed({{"experiments", {{"type", "integer"}, {"minimum", 1}}},
                                         {"seed", {{"type", "integer"}, {"minimum", 0}}}})},
                      {"objective", {{"type", "string"}, {"enum", figures}}},
                      {"measured", closed({{"step_time_s", {{"type", "number"}, {"exclusiveMinimum", 0}}},
                                           {"source", {{"type", "string"}}}})}});
  made["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  made["title"] = "Manyworlds sweep";
  made["required"] = {"base"};
  made["$defs"] = {{"axes", moved}};
  return made.dump(2) + "\n";
}

}  // namespace manyworlds::experiments

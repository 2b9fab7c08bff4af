// JSON Schema draft 2020-12: the config schema as nested objects, none of which allows other keys. Each key's schema
// stands once: axes, and sections that the catalog fills, refer to it.
#include "experiments/sweep/schema.hpp"

#include "experiments/axes/axes.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/config/config_schema.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/sweep/best.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;
using nlohmann::json;
using Kind = OptionInfo::Kind;

json any_of(std::vector<json> variants) {
  return variants.size() == 1 ? variants.front() : json{{"anyOf", std::move(variants)}};
}

/// Returns whether values may have a unit suffix, which makes them texts.
bool takes_suffix(const OptionInfo& info) {
  for (const char* unit : {"bytes", "GiB", "ps", "us", "Gb/s"})
    if (info.unit == unit) return true;
  return false;
}

json option_schema(const OptionInfo& info) {
  json schema, items_of_list{{"type", info.choices.empty() ? "integer" : "string"}};
  switch (info.kind) {
    case Kind::boolean:
      schema["type"] = "boolean";
      break;
    case Kind::integer:
      schema["type"] = "integer";
      break;
    case Kind::real:
      schema["type"] = "number";
      break;
    case Kind::text:
      schema["type"] = "string";
      break;
  }
  json& values = info.is_list ? items_of_list : schema;
  if (!info.choices.empty()) values["enum"] = info.choices;
  if (std::isfinite(info.minimum)) values["minimum"] = info.minimum;
  if (std::isfinite(info.maximum)) values["maximum"] = info.maximum;
  if (info.is_list) schema = any_of({schema, json{{"type", "array"}, {"items", items_of_list}}});
  if (takes_suffix(info))
    schema = any_of({schema, json{{"type", "string"},
                                  {"pattern", "^[0-9.]+ ?(B|bytes|[KMGT](i?B)?|ps|ns|us|ms|s|[KkMGT]?bps|Gb/s)$"}}});
  schema["description"] = info.help + (info.unit.empty() ? "" : " (" + info.unit + ")");
  if (has_default(info)) schema["default"] = to_json(info.default_value);
  return schema;
}

json closed_object(json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

json options_schema(const std::vector<OptionInfo>& options) {
  json properties = json::object();
  for (const OptionInfo& info : options) properties[info.name] = option_schema(info);
  return properties;
}

json names_schema(const std::string& kind, const Catalog& catalog) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : catalog.entries(kind)) {
    names.push_back(name);
    names.insert(names.end(), entry.also_called.begin(), entry.also_called.end());
  }
  const json named{{"type", "string"}, {"enum", names}};
  if (kind != "models") return named;
  // The path of a configuration, or of its folder.
  return any_of({named, {{"type", "string"}, {"pattern", R"(/|\.json(#|$))"}}});
}

json reference(const std::string& place) {
  return {{"$ref", "#" + place}};
}

std::string place_of_kind(const std::string& catalog) {
  return "/$defs/" + catalog;
}

/// Returns the schema of a section's mapping; sections that the catalog fills are in $defs, once for each kind.
json branch_schema(const Section& section);

json section_object(const Section& section) {
  json properties = options_schema(section.options);
  for (const Section& child : section.subsections) properties[child.name] = branch_schema(child);
  if (!section.catalog.empty()) properties["like"] = reference(place_of_kind(section.catalog) + "/anyOf/0");
  return closed_object(std::move(properties));
}

json branch_schema(const Section& section) {
  json schema;
  if (!section.catalog.empty()) {
    schema = reference(place_of_kind(section.catalog));
  } else if (!section.choices.empty()) {
    std::vector<json> variants{{{"type", "string"}, {"enum", names_in(section)}}};
    for (const Choice& one : section.choices) {
      json variant = closed_object({{one.name, closed_object(options_schema(one.options))}});
      variant["required"] = {one.name};
      variant["description"] = one.help;
      variants.push_back(std::move(variant));
    }
    schema = any_of(std::move(variants));
  } else {
    schema = section_object(section);
  }
  schema["description"] = section.help;
  return schema;
}

/// Adds the schemas of catalog sections below `section`, itself included: a name of the catalog, or a mapping.
void add_catalog_sections(json& definitions, const Section& section, const Catalog& catalog) {
  if (!section.catalog.empty() && !definitions.contains(section.catalog))
    definitions[section.catalog] = any_of({names_schema(section.catalog, catalog), section_object(section)});
  for (const Section& child : section.subsections) add_catalog_sections(definitions, child, catalog);
}

json list_of(json item) {
  return {{"type", "array"}, {"minItems", 1}, {"items", std::move(item)}};
}

/// Returns the schema of a list of what the schema at `place` allows, or of a range if the values are numbers, or of
/// any value.
json axis_schema(const std::string& place, bool number, bool any) {
  json list = list_of(reference(place));
  if (any) return any_of({std::move(list), json{{"const", "any"}}});
  if (!number) return list;
  return any_of({std::move(list), reference("/$defs/range")});
}

/// Adds the keys of the section whose schema is at `place`, a JSON pointer; keys begin with `path`.
void add_axes(json& axes, const Section& section, const std::string& path, const std::string& place) {
  const auto add = [&](const std::vector<OptionInfo>& options, const std::string& prefix, const std::string& object) {
    for (const OptionInfo& info : options)
      axes[prefix + info.name] =
          axis_schema(object + "/properties/" + info.name, info.kind == Kind::integer || info.kind == Kind::real,
                      may_be_any(prefix + info.name));
  };
  const std::string prefix = path.empty() ? "" : path + ".";
  const std::string object = section.catalog.empty() ? place : place_of_kind(section.catalog) + "/anyOf/1";
  add(section.options, prefix, object);
  for (std::size_t i = 0; i < section.choices.size(); ++i) {
    const Choice& one = section.choices[i];
    const std::string variant = object + "/anyOf/" + std::to_string(i + 1) + "/properties/" + one.name;
    add(one.options, prefix, variant);
    add(one.options, prefix + one.name + ".", variant);
  }
  for (const Section& child : section.subsections) {
    const std::string below = object + "/properties/" + child.name;
    axes[prefix + child.name] = axis_schema(below, false, false);
    add_axes(axes, child, prefix + child.name, below);
  }
}

}  // namespace

std::string json_schema(const Catalog& catalog) {
  json definitions = json::object(), axes = json::object();
  add_catalog_sections(definitions, config_schema(), catalog);
  add_axes(axes, config_schema(), "", "/properties/base");
  definitions["axes"] = closed_object(std::move(axes));
  definitions["range"] = json::parse(R"({"type": "object", "required": ["range"], "additionalProperties": false,
    "properties": {"range": {"type": "array", "minItems": 3, "maxItems": 3}}})");
  std::vector<std::string> objective_names;
  for (const Objective& one : objectives()) objective_names.push_back(one.name);
  std::vector<std::string> front_names;
  for (const Objective& one : front_columns()) front_names.push_back(one.name);
  // YAML readers that infer types read a bare 2021 as a number.
  const json practices = any_of({json{{"enum", practice_names()}}, json{{"const", 2021}}});
  json schema =
      closed_object({{"name", {{"type", "string"}}},
                     {"assume", practices},
                     {"base", branch_schema(config_schema())},
                     {"axes", {{"$ref", "#/$defs/axes"}}},
                     {"zip", list_of({{"$ref", "#/$defs/axes"}})},
                     {"where", {{"type", "array"}, {"items", {{"type", "string"}}}}},
                     {"sample", closed_object({{"experiments", {{"type", "integer"}, {"minimum", 1}}},
                                               {"seed", {{"type", "integer"}, {"minimum", 0}}}})},
                     {"objective", {{"type", "string"}, {"enum", objective_names}}},
                     {"best", {{"type", "integer"}, {"minimum", 1}}},
                     {"front", {{"type", "string"}, {"enum", front_names}}},
                     {"gap", {{"type", {"number", "string"}}}},
                     {"measured", closed_object({{"step_time_s", {{"type", "number"}, {"exclusiveMinimum", 0}}},
                                                 {"source", {{"type", "string"}}}})}});
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Manyworlds sweep";
  schema["required"] = {"base"};
  schema["$defs"] = std::move(definitions);
  return schema.dump(1) + "\n";
}

}  // namespace manyworlds::experiments

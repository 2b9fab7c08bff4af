#include "experiments/catalog/read_entry.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/catalog/calibration.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using import::Entry;
using import::Node;

OptionInfo boolean_info() {
  OptionInfo info;
  info.kind = OptionInfo::Kind::boolean;
  info.default_value = false;
  return info;
}

std::string read_certainty(const Node& node) {
  return import::read_line(node, "certainty", {"read", "known", "fitted", "guess"});
}

/// Reads a list of names; if `allowed` is not empty, each name must be in it.
std::vector<std::string> read_names(const Node& node, const std::string& key,
                                    const std::vector<std::string>& allowed = {}) {
  if (node.kind != Node::Kind::sequence)
    node.fail(fmt::format("'{}' must be a list of names, not {}", key, import::describe(node)));
  std::vector<std::string> names;
  for (const Node& item : node.items)
    names.push_back(allowed.empty() ? import::read_line(item, key) : import::read_line(item, key, allowed));
  return names;
}

struct Provenance {
  std::string source, certainty;
};

/// Reads the range of a guess, whose ends are values of the option, around the value.
GuessedRange read_range(const Node& node, const OptionInfo& info, const SourcedValue& figure) {
  const auto fail = [&](const std::string& what) { node.fail(fmt::format("the range of '{}' {}", info.name, what)); };
  const auto value = number_of(figure.value);
  if (!value) fail("must go; its value is no number");
  if (figure.certainty != "guess") fail(fmt::format("is for guesses, and its value is {}", figure.certainty));
  if (node.kind != Node::Kind::sequence || node.items.size() != 2)
    fail(fmt::format("must be a list of two numbers, the least and the greatest, not {}", import::describe(node)));
  const auto end = [&](std::size_t i) { return *number_of(import::read_value(node.items[i], info, info.name)); };
  const GuessedRange range{end(0), end(1)};
  if (!(range.low < range.high)) fail(fmt::format("must rise, not go from {} to {}", range.low, range.high));
  if (*value < range.low || *value > range.high)
    fail(fmt::format("must hold its value, {}, and goes from {} to {}", *value, range.low, range.high));
  return range;
}

bool is_architecture(const OptionInfo& info) {
  return info.name == "architecture";
}

SourcedValue read_sourced_value(const Node& node, const OptionInfo& info, Provenance provenance) {
  const Node *value = &node, *range = nullptr;
  const bool is_structure = is_architecture(info) && node.find("value") == nullptr;
  if (node.kind == Node::Kind::mapping && !is_structure) {
    value = nullptr;
    for (const Entry& entry : node.entries) {
      if (entry.key == "value")
        value = &entry.value;
      else if (entry.key == "range")
        range = &entry.value;
      else if (entry.key == "source")
        provenance.source = import::read_line(entry.value, "source");
      else if (entry.key == "certainty")
        provenance.certainty = read_certainty(entry.value);
      else
        fail_unknown_key(entry, {"value", "range", "source", "certainty"});
    }
    if (!value) node.fail(fmt::format("'{}' has no value", info.name));
  }
  if (provenance.source.empty() || provenance.certainty.empty())
    node.fail(fmt::format("value '{}' needs a source and a certainty (read, known, fitted or guess)", info.name));
  if (is_architecture(info)) check_architecture(*value, value->text);
  SourcedValue result{import::read_value(*value, info, info.name), provenance.source, provenance.certainty, {}};
  if (range) result.range = read_range(*range, info, result);
  return result;
}

std::map<std::string, SourcedValue> read_sourced_values(const Node& node, const std::vector<OptionInfo>& options,
                                                        const Provenance& provenance) {
  std::map<std::string, SourcedValue> result;
  for (const Entry& entry : node.entries) {
    const OptionInfo* info = find_option(options, entry.key);
    std::vector<std::string> names;
    for (const OptionInfo& option : options) names.push_back(option.name);
    if (!info) fail_unknown_key(entry, names);
    result[entry.key] = read_sourced_value(entry.value, *info, provenance);
  }
  return result;
}

std::vector<OptionInfo> catalog_options(const std::string& kind) {
  if (kind == "libraries") return core::collective::calibration_options().infos();
  std::vector<OptionInfo> options;
  for (const OptionInfo& info : catalog_section(kind).options)
    if (info.name != "name" && info.name != "teacher") options.push_back(info);
  if (kind == "clusters") {
    options.emplace_back().name = "gpu";
    options.back().kind = OptionInfo::Kind::text;
  }
  return options;
}

}  // namespace

void fail_unknown_key(const Entry& entry, const std::vector<std::string>& known) {
  throw InputError(fmt::format("unknown key '{}'{}", entry.key, suggestion(entry.key, known)), *entry.value.file,
                   entry.line);
}

CatalogEntry read_entry(const std::string& kind, const Node& root) {
  if (root.kind != Node::Kind::mapping) root.fail(fmt::format("must be a mapping, not {}", import::describe(root)));
  CatalogEntry result;
  Provenance provenance;
  const Node *values = nullptr, *recipe = nullptr, *several_stages = nullptr;
  const bool is_gpu = kind == "gpus";
  const Section& strategy = *find_section(config_schema().subsections, "strategy");
  std::vector<std::string> known{"help", "source", "certainty", "values", "also_called"};
  if (is_gpu) known.insert(known.end(), {"constants_of", "same_chip"});
  if (kind == "stacks") known.insert(known.end(), {"constants_of", "recipe", "several_stages", "schedules", "library"});
  if (kind == "libraries") known.insert(known.end(), {"versions", "gpus"});
  for (const Entry& entry : root.entries) {
    if (entry.key == "help")
      result.help = import::read_line(entry.value, "help");
    else if (entry.key == "source")
      provenance.source = import::read_line(entry.value, "source");
    else if (entry.key == "certainty")
      provenance.certainty = read_certainty(entry.value);
    else if (entry.key == "values")
      values = &entry.value;
    else if (entry.key == "also_called")
      result.also_called = read_names(entry.value, "also_called");
    else if (entry.key == "recipe" && kind == "stacks")
      recipe = &entry.value;
    else if (entry.key == "several_stages" && kind == "stacks")
      several_stages = &entry.value;
    else if (entry.key == "schedules" && kind == "stacks")
      result.schedules = read_names(entry.value, "schedules", find_option(strategy.options, "schedule")->choices);
    else if (entry.key == "library" && kind == "stacks")
      result.library = import::read_line(entry.value, "library", core::collective::version_names());
    else if (entry.key == "versions" && kind == "libraries")
      result.versions = read_names(entry.value, "versions", core::collective::version_names());
    else if (entry.key == "gpus" && kind == "libraries")
      result.gpus = read_names(entry.value, "gpus");
    else if (entry.key == "constants_of" && (is_gpu || kind == "stacks"))
      result.constants_of = import::read_line(entry.value, "constants_of");
    else if (entry.key == "same_chip" && is_gpu)
      result.same_chip = std::get<bool>(import::read_value(entry.value, boolean_info(), "same_chip"));
    else
      fail_unknown_key(entry, known);
  }
  if (!values || values->kind != Node::Kind::mapping) root.fail("needs 'values', a mapping of what is known");
  result.values = read_sourced_values(*values, catalog_options(kind), provenance);
  if (several_stages != nullptr && several_stages->kind != Node::Kind::mapping)
    several_stages->fail("'several_stages' must be a mapping");
  if (recipe != nullptr && recipe->kind != Node::Kind::mapping) recipe->fail("'recipe' must be a mapping");
  if (recipe != nullptr) result.recipe = read_sourced_values(*recipe, strategy.options, provenance);
  // Options where a pipeline rank has several stages stand in the recipe, under a name of their own.
  if (several_stages != nullptr)
    for (auto& [name, sourced] : read_sourced_values(*several_stages, catalog_options(kind), provenance))
      result.recipe.emplace("several_stages." + name, std::move(sourced));
  return result;
}

}  // namespace manyworlds::experiments

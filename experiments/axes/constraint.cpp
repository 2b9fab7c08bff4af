#include "experiments/axes/constraint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using import::Node;

ExpressionName name_for(const std::string& path, const core::OptionInfo& option) {
  using Kind = ExpressionName::Kind;
  const bool number = option.kind == core::OptionInfo::Kind::integer || option.kind == core::OptionInfo::Kind::real;
  return {path,
          number                                           ? Kind::number
          : option.kind == core::OptionInfo::Kind::boolean ? Kind::boolean
                                                           : Kind::text,
          option.unit};
}

const core::OptionInfo* option_of(const Target& target) {
  if (target.option != nullptr || target.choice_section == nullptr) return target.option;
  for (const Choice& choice : target.choice_section->choices)
    if (const core::OptionInfo* option = find_option(choice.options, target.member)) return option;
  return nullptr;
}

ExpressionName resolve(const std::string& key, const Node& node) {
  for (const std::string derived : {"cluster.gpus", "strategy.dp"})
    if (key == derived || "." + key == derived.substr(derived.find('.')))
      return {derived, ExpressionName::Kind::number, ""};
  Node place = node;
  place.text.clear();  // an expression, which is no value of the key
  const Target target = find_typed_key(key, place);
  if (const core::OptionInfo* option = option_of(target)) return name_for(target.path, *option);
  if (!target.section->catalog.empty()) return {target.path + ".name", ExpressionName::Kind::text, ""};
  if (target.section->choices.empty())
    node.fail(fmt::format("'{}' is a section; a where compares single values, such as '{}.{}'", key, key,
                          names_in(*target.section).front()));
  return {target.path, ExpressionName::Kind::text, ""};
}

}  // namespace

Constraint::Constraint(const Node& node) : expression_(node, resolve) {}

bool Constraint::depends_on(const OpenKeys& open) const {
  const auto& names = expression_.names();
  return open.any() &&
         std::any_of(names.begin(), names.end(), [&](const ExpressionName& name) { return open.has(name.path); });
}

bool Constraint::holds(const Settings& settings) const {
  std::vector<core::OptionValue> values;
  for (const ExpressionName& name : expression_.names()) {
    if (name.path == "cluster.gpus" || name.path == "strategy.dp") {
      const ExperimentConfig config = config_of(settings);
      values.emplace_back(name.path == "cluster.gpus" ? config.cluster.gpus() : config.configuration.strategy.dp);
      continue;
    }
    const auto found = settings.find(name.path);
    if (found == settings.end()) expression_.fail(fmt::format("'{}' has no value in every combination", name.path));
    values.push_back(found->second);
  }
  return expression_.holds(values);
}

}  // namespace manyworlds::experiments

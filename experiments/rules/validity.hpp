// Which layouts exist at all: one table of rules. A single experiment that breaks one is refused; in a sweep the
// combination is left out and kept with the rule's name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/graphs.hpp"
#include "experiments/config/world.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {

/// The values that break a rule, or nothing.
using Broken = std::optional<std::string>;

struct Rule {
  std::string name;
  std::string reason;  // what would be right, in general
  std::string key;     // the setting that a message points at
  /// Rules run in order: each may rely on those before it.
  std::function<Broken(const World&, GraphCache&)> check;
  bool steps_only = false;  // the network by itself can do without
  std::string source = {};  // who says so (experiments/rules/rule_facts.hpp)
  /// Rules without which its check means nothing.
  std::vector<std::string> relies_on = {};
};

/// One that looks at settings alone.
using WorldCheck = std::function<Broken(const World&)>;
Rule rule(std::string name, std::string key, std::string reason, WorldCheck check);

const std::vector<Rule>& rules();

struct Violation {
  std::string rule, key, reason;  // reason: the rule's, and the values that broke it
  std::string source, values;     // of the rule, and those values alone
};

/// The first rule that `world` breaks.
std::optional<Violation> find_violation(const World& world, GraphCache& graphs, Scope scope = Scope::step);

/// All that `world` breaks, in the order of the table, and the rules that could not be asked since others are broken.
struct Violations {
  std::vector<Violation> broken;
  std::vector<std::string> not_asked;
};
Violations find_violations(const World& world, GraphCache& graphs, Scope scope = Scope::step);

}  // namespace manyworlds::experiments

// Validity rules: the layouts that exist at all. A single experiment that violates a rule is refused; in a sweep the
// combination is excluded and recorded with the rule's name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/rules/rule.hpp"
#include "experiments/settings/required_settings.hpp"

namespace manyworlds::experiments {

const std::vector<Rule>& rules();

struct RuleViolation {
  std::string rule, key, reason;  // reason: the rule's reason, and the values that violate it
  std::string source, values;     // of the rule, and those values alone
};

/// Returns the first rule that `config` violates.
std::optional<RuleViolation> find_violation(const ExperimentConfig& config, GraphCache& graphs,
                                            Scope scope = Scope::step);

/// All violations in the order of the table, and the rules that were skipped because rules that they rely on are
/// violated.
struct RuleViolations {
  std::vector<RuleViolation> broken;
  std::vector<std::string> skipped;
};
RuleViolations find_violations(const ExperimentConfig& config, GraphCache& graphs, Scope scope = Scope::step);

}  // namespace manyworlds::experiments

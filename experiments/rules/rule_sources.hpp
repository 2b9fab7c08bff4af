// Sources of the validity rules, and the rules that each of them relies on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments {

struct RuleSource {
  std::string name;
  std::string source;  // an argument check, a paper with its section, or "by construction"
  /// Rules that must hold for this rule's check to be meaningful.
  std::vector<std::string> prerequisites = {};
};

const std::vector<RuleSource>& rule_sources();
/// Returns the source of a rule. A rule that is not listed holds by construction and relies on the rule about replicas.
const RuleSource& source_of(std::string_view rule);

}  // namespace manyworlds::experiments

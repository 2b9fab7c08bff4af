// What is known of a rule beside what it checks: who says so, and which rules it takes for kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments {

struct RuleFacts {
  std::string name;
  std::string source;  // the argument check, paper and section, or "by construction"
  /// Rules without which this one's check would reckon with figures that mean nothing.
  std::vector<std::string> relies_on = {};
};

const std::vector<RuleFacts>& rule_facts();
/// Of a rule that is not among them: that it holds by construction, and reckons with replicas.
const RuleFacts& facts_of(std::string_view rule);

}  // namespace manyworlds::experiments

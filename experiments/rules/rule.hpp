// A validity rule: the values of settings that violate it, and where it is from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/experiment_config.hpp"
#include "experiments/config/graphs.hpp"

namespace manyworlds::experiments {

/// The values that violate a rule, or nothing.
using Violation = std::optional<std::string>;

struct Rule {
  std::string name;
  std::string reason;  // the requirement in general
  std::string key;     // the setting that a message points at
  /// Rules are checked in order: each may rely on earlier ones.
  std::function<Violation(const ExperimentConfig&, GraphCache&)> check;
  bool steps_only = false;  // not needed for the network alone
  std::string source = {};  // an argument check, a paper with its section, or "by construction"
  /// Rules that must hold for the check to be meaningful.
  std::vector<std::string> prerequisites = {};
};

/// A check that depends on settings alone.
using ConfigCheck = std::function<Violation(const ExperimentConfig&)>;
/// The source of a rule, and the rules that must hold for its check to be meaningful.
struct RuleSource {
  std::string text;
  std::vector<std::string> prerequisites = {};
};
Rule rule(std::string name, std::string key, std::string reason, RuleSource source, ConfigCheck check);
/// Returns a violation unless `whole` is a multiple of `part`.
Violation check_divisible(const char* whole_name, std::int64_t whole, const char* part_name, std::int64_t part);

}  // namespace manyworlds::experiments

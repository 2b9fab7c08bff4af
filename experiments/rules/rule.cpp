#include "experiments/rules/rule.hpp"

#include <fmt/format.h>

#include <utility>

namespace manyworlds::experiments {

Rule rule(std::string name, std::string key, std::string reason, RuleSource source, ConfigCheck check) {
  return {std::move(name),
          std::move(reason),
          std::move(key),
          [check = std::move(check)](const ExperimentConfig& config, GraphCache&) { return check(config); },
          false,
          std::move(source.text),
          std::move(source.prerequisites)};
}

Violation check_divisible(const char* whole_name, std::int64_t whole, const char* part_name, std::int64_t part) {
  if (whole % part == 0) return std::nullopt;
  return fmt::format("{} {}, {} {}", whole_name, whole, part_name, part);
}

}  // namespace manyworlds::experiments

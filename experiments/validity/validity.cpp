// The table of validity rules. Megatron-LM refuses the same layouts at its start, most of them in arguments.py.
#include "experiments/validity/validity.hpp"

#include <algorithm>
#include <set>

#include "experiments/rules/layouts/activation_rules.hpp"
#include "experiments/rules/layouts/factor_rules.hpp"
#include "experiments/rules/layouts/layout_rules.hpp"
#include "experiments/rules/layouts/overlap_rules.hpp"
#include "experiments/rules/machines/cost_rules.hpp"
#include "experiments/rules/machines/machine_rules.hpp"
#include "experiments/rules/machines/network_rules.hpp"
#include "experiments/rules/machines/program_rules.hpp"
#include "experiments/rules/models/adapter_rules.hpp"
#include "experiments/rules/models/architecture_rules.hpp"
#include "experiments/rules/models/distillation_rules.hpp"
#include "experiments/rules/models/document_rules.hpp"
#include "experiments/rules/models/expert_rules.hpp"
#include "experiments/rules/models/fine_tuning_rules.hpp"
#include "experiments/rules/models/inference_rules.hpp"
#include "experiments/rules/models/loss_rules.hpp"
#include "experiments/rules/models/mtp_rules.hpp"

namespace manyworlds::experiments {
namespace {

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (auto part : {machine_rules(), transport_rules(), mixed_machine_rules(), program_rules()})
    for (Rule& one : part) all.push_back(std::move(one));
  for (auto part : {precision_rules(), architecture_rules(), data_part_rules(),     model_rules(),  stage_rules(),
                    attention_rules(), layout_rules(),       network_stage_rules(), mtp_rules(),    expert_rules(),
                    routing_rules(),   document_rules(),     overlap_rules(),       factor_rules(), fine_tuning_rules(),
                    inference_rules(), activation_rules(),   distillation_rules(),  loss_rules(),   adapter_rules()})
    for (Rule& one : part) {
      one.steps_only = true;
      all.push_back(std::move(one));
    }
  for (Rule& one : fabric_rules()) all.push_back(std::move(one));
  for (Rule& one : cost_rules()) {
    one.steps_only = true;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = all_rules();
  return table;
}

namespace {

/// Returns whether a rule is of no account: it is about models and strategies, and there are none.
bool is_idle(const Rule& rule, const ExperimentConfig& config, Scope scope) {
  return rule.steps_only && (scope != Scope::step || config.configuration.programs);
}

}  // namespace

std::optional<RuleViolation> find_violation(const ExperimentConfig& config, GraphCache& graphs, Scope scope) {
  for (const Rule& one : rules()) {
    if (is_idle(one, config, scope)) continue;
    if (const Violation values = one.check(config, graphs))
      return RuleViolation{one.name, one.key, fmt::format("{}: {}", one.reason, *values), one.source, *values};
  }
  return std::nullopt;
}

RuleViolations find_violations(const ExperimentConfig& config, GraphCache& graphs, Scope scope) {
  RuleViolations result;
  std::set<std::string> failed_or_skipped;  // violated or skipped
  for (const Rule& one : rules()) {
    if (is_idle(one, config, scope)) continue;
    const auto& needs = one.prerequisites;
    if (std::any_of(needs.begin(), needs.end(),
                    [&](const std::string& rule) { return failed_or_skipped.count(rule) > 0; })) {
      result.skipped.push_back(one.name);
      failed_or_skipped.insert(one.name);
    } else if (const Violation values = one.check(config, graphs)) {
      result.broken.push_back({one.name, one.key, fmt::format("{}: {}", one.reason, *values), one.source, *values});
      failed_or_skipped.insert(one.name);
    }
  }
  return result;
}

}  // namespace manyworlds::experiments

// Groups are drawn one after another without replacement, and then experts are. Only + - x / on doubles, so that
// results are the same on every machine.
#include "core/workload/model/group_limits.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace manyworlds::core::workload {
namespace {

/// Returns the probability that none of `chosen` experts out of `all` is among `inside` of these.
double none_inside(std::int64_t inside, std::int64_t all, std::int64_t chosen) {
  double probability = 1;
  for (std::int64_t i = 0; i < std::min(chosen, all); ++i)
    probability *= static_cast<double>(std::max<std::int64_t>(0, all - inside - i)) / static_cast<double>(all - i);
  return probability;
}

/// Returns how many experts of the run from `first` to before `last` lie in each group that has some.
std::vector<std::int64_t> experts_by_group(std::int64_t first, std::int64_t last, std::int64_t group_size) {
  std::vector<std::int64_t> result;
  for (std::int64_t at = first; at < last;) {
    const std::int64_t end = std::min(last, (at / group_size + 1) * group_size);
    result.push_back(end - at);
    at = end;
  }
  return result;
}

/// Returns the probability that a token has no expert of a part with `by_group` experts in each of its groups.
double miss_probability(const Model& model, const std::vector<std::int64_t>& by_group) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> states{{{0, 0}, 1.0}};  // by groups taken, and their experts
  std::int64_t seen = 0;
  for (const std::int64_t experts : by_group) {
    std::map<std::pair<std::int64_t, std::int64_t>, double> next;
    for (const auto& [state, probability] : states) {
      const auto [taken, inside] = state;
      const double is_taken =
          static_cast<double>(model.groups_per_token - taken) / static_cast<double>(model.expert_groups - seen);
      if (is_taken > 0) next[{taken + 1, inside + experts}] += probability * is_taken;
      if (is_taken < 1) next[{taken, inside}] += probability * (1 - is_taken);
    }
    states = std::move(next);
    ++seen;
  }
  const std::int64_t all = model.experts / model.expert_groups * model.groups_per_token;
  double miss = 0;
  for (const auto& [state, probability] : states)
    miss += probability * none_inside(state.second, all, model.experts_per_token);
  return miss;
}

}  // namespace

bool limits_groups(const Model& model) {
  return model.has_experts() && model.groups_per_token > 0 && model.groups_per_token < model.expert_groups;
}

double mean_parts_reached_in_groups(const Model& model, std::int64_t parts) {
  const std::int64_t group_size = model.experts / model.expert_groups, part_size = model.experts / parts;
  // Behind so many parts the next one begins where a group does, as the first one.
  const std::int64_t period = model.experts % parts == 0 ? group_size / std::gcd(group_size, part_size) : parts;
  double reached = 0;
  for (std::int64_t part = 0; part < period; ++part) {
    const std::int64_t first = part * model.experts / parts, last = (part + 1) * model.experts / parts;
    reached += 1 - miss_probability(model, experts_by_group(first, last, group_size));
  }
  return reached * static_cast<double>(parts) / static_cast<double>(period);
}

}  // namespace manyworlds::core::workload

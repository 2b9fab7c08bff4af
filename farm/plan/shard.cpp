#include "farm/plan/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kAcceptableImbalance =
    1.05;  // stop once the most expensive shard costs at most this multiple of an even share

/// Steps that stay together because all of them ask for the same collectives.
struct StepGroup {
  std::vector<std::uint32_t> steps;
  double cost = 0;  // of the steps alone
  double cost_with_collectives = 0;
};

double cost_of(const Plan& plan, const std::vector<std::uint32_t>& collectives) {
  double cost = 0;
  for (const std::uint32_t one : collectives) cost += plan.collectives[one].cost;
  return cost;
}

/// Groups the steps, most expensive group first. A group of several steps costs at most `max_cost`.
std::vector<StepGroup> group_steps(const Plan& plan, double max_cost) {
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> steps_by_collectives;
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step)
    steps_by_collectives[plan.steps[step].collectives].push_back(step);
  std::vector<StepGroup> groups;
  for (const auto& [collectives, steps] : steps_by_collectives) {
    const double shared = cost_of(plan, collectives);
    bool begin = true;
    for (const std::uint32_t step : steps) {
      const double cost = plan.steps[step].cost;
      if (begin || (groups.back().cost > 0 && groups.back().cost_with_collectives + cost > max_cost))
        groups.push_back({{}, 0, shared});
      begin = false;
      groups.back().steps.push_back(step);
      groups.back().cost += cost;
      groups.back().cost_with_collectives += cost;
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const StepGroup& a, const StepGroup& b) {
    return a.cost_with_collectives > b.cost_with_collectives;
  });
  return groups;
}

struct Assignment {
  std::vector<std::uint32_t> shard_of_step;
  double max_cost = 0;  // of the most expensive shard
};

/// Assigns each group to the shard that is cheapest with it; collectives that a shard already has cost nothing more.
Assignment assign_groups(const Plan& plan, const std::vector<StepGroup>& groups, std::uint32_t count) {
  Assignment assignment{std::vector<std::uint32_t>(plan.steps.size()), 0};
  std::vector<double> load(count, 0);
  std::vector<std::vector<bool>> has(count, std::vector<bool>(plan.collectives.size()));
  for (const StepGroup& group : groups) {
    const auto& collectives = plan.steps[group.steps.front()].collectives;
    std::uint32_t best = 0;
    double best_load = 0;
    for (std::uint32_t shard = 0; shard < count; ++shard) {
      double new_load = load[shard] + group.cost;
      for (const std::uint32_t one : collectives)
        if (!has[shard][one]) new_load += plan.collectives[one].cost;
      if (shard == 0 || new_load < best_load) best = shard, best_load = new_load;
    }
    load[best] = best_load;
    for (const std::uint32_t one : collectives) has[best][one] = true;
    for (const std::uint32_t step : group.steps) assignment.shard_of_step[step] = best;
  }
  assignment.max_cost = *std::max_element(load.begin(), load.end());
  return assignment;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const auto reject = [&](const std::string& what) {
    throw core::InputError(
        fmt::format("--shard {}: {}; it takes I/N with I from 1 to N, as in --shard 3/8", text, what));
  };
  Shard shard;
  const auto read = [&](const char* from, const char* end, std::uint32_t& into) {
    const auto [last, error] = std::from_chars(from, end, into);
    if (error != std::errc() || last != end) reject("not two numbers");
  };
  const auto slash = text.find('/');
  if (slash == std::string::npos) reject("not two numbers");
  read(text.data(), text.data() + slash, shard.number);
  read(text.data() + slash + 1, text.data() + text.size(), shard.count);
  if (shard.count < 1 || shard.count > kMaxShards) reject(fmt::format("N is from 1 to {}", kMaxShards));
  if (shard.number < 1 || shard.number > shard.count) reject(fmt::format("there is no shard {}", shard.number));
  return shard;
}

std::string shard_directory(const std::string& run_directory, const Shard& shard) {
  if (shard.whole()) return run_directory;
  return fmt::format("{}.shards/{}-of-{}", run_directory, shard.number, shard.count);
}

double cost_of(const Plan& plan) {
  double cost = 0;
  for (const PlannedCollective& collective : plan.collectives) cost += collective.cost;
  for (const PlannedStep& step : plan.steps) cost += step.cost;
  return cost;
}

std::vector<std::uint32_t> shards_of_steps(const Plan& plan, std::uint32_t count) {
  MANYWORLDS_CHECK(count > 0, "{} shards", count);
  if (count == 1) return std::vector<std::uint32_t>(plan.steps.size(), 0);
  const double even_share = cost_of(plan) / count;
  Assignment best;
  for (const double parts : {1, 2, 4, 8, 16}) {
    Assignment assignment = assign_groups(plan, group_steps(plan, even_share / parts), count);
    if (best.shard_of_step.empty() || assignment.max_cost < best.max_cost) best = std::move(assignment);
    if (best.max_cost <= kAcceptableImbalance * even_share) break;
  }
  return best.shard_of_step;
}

Plan plan_of_shard(Plan whole, const Shard& shard) {
  if (shard.whole()) return whole;
  const std::uint32_t mine = shard.number - 1;
  const std::vector<std::uint32_t> shard_of = shards_of_steps(whole, shard.count);
  std::vector<bool> needed(whole.collectives.size());
  for (std::uint32_t step = 0; step < whole.steps.size(); ++step)
    if (shard_of[step] == mine)
      for (const std::uint32_t one : whole.steps[step].collectives) needed[one] = true;
  Plan part;
  std::vector<std::uint32_t> new_collective(whole.collectives.size());
  for (std::uint32_t one = 0; one < whole.collectives.size(); ++one) {
    new_collective[one] = static_cast<std::uint32_t>(part.collectives.size());
    if (needed[one]) part.collectives.push_back(whole.collectives[one]);
  }
  std::vector<std::uint32_t> new_step(whole.steps.size(), kNoStep);
  for (std::uint32_t step = 0; step < whole.steps.size(); ++step) {
    if (shard_of[step] != mine) continue;
    new_step[step] = static_cast<std::uint32_t>(part.steps.size());
    part.steps.push_back(std::move(whole.steps[step]));
    for (std::uint32_t& one : part.steps.back().collectives) one = new_collective[one];
  }
  part.experiments = std::move(whole.experiments);
  std::uint32_t out_of_memory = 0;
  for (PlannedExperiment& experiment : part.experiments) {
    if (experiment.fits())
      experiment.step = new_step[experiment.step], experiment.in_other_shard = experiment.step == kNoStep;
    else
      experiment.in_other_shard = out_of_memory++ % shard.count != mine;
  }
  return part;
}

}  // namespace manyworlds::farm

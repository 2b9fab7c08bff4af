#include "experiments/sweep/best.hpp"

#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "experiments/text/scalar.hpp"

namespace manyworlds::experiments {

namespace {

/// Returns why nothing proves the best of a sweep; empty if lower bounds of step times do.
std::string problem_with_best(const Sweep& sweep) {
  if (objective_named(sweep.objective).follows_step_time) return {};
  std::vector<std::string> bounded;
  for (const Objective& one : objectives())
    if (one.follows_step_time) bounded.push_back(one.name);
  return fmt::format("no lower bound proves the best by {}; rank by {}", sweep.objective, fmt::join(bounded, ", "));
}

}  // namespace

void ask_for_best(Sweep& sweep, std::uint32_t best, const std::string& option) {
  if (const std::string problem = problem_with_best(sweep); !problem.empty()) throw core::InputError(problem, option);
  sweep.best = best;
}

void read_best(const import::Node& best, Sweep& sweep) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = 1, info.maximum = 1e6;
  sweep.best = static_cast<std::uint32_t>(std::get<std::int64_t>(import::read_value(best, info, "best")));
  if (const std::string problem = problem_with_best(sweep); !problem.empty()) best.fail("'best': " + problem);
}

}  // namespace manyworlds::experiments

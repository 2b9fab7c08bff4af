#include "experiments/sweep/best.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/scalar.hpp"

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

/// Returns why nothing proves a Pareto front of the objective against a column; empty if bounds do.
std::string problem_with_front(const Sweep& sweep, const std::string& column) {
  if (const std::string problem = problem_with_best(sweep); !problem.empty()) return problem;
  std::vector<std::string> others;
  for (const Objective& one : front_columns())
    if (one.name != sweep.objective) others.push_back(one.name);
  if (std::find(others.begin(), others.end(), column) != others.end()) return {};
  return fmt::format(
      "{}; a front is against one of {}",
      column == sweep.objective
          ? fmt::format("{} is the objective itself", column)
          : fmt::format("'{}' is neither known before a step is simulated nor bounded by its time", column),
      fmt::join(others, ", "));
}

void set_front(Sweep& sweep, const std::string& column) {
  sweep.front = column;
  sweep.best = std::max(sweep.best, 1u);
}

constexpr const char* kExpectedGap = "is a share of the objective from 0 to below 1, as in 2% or 0.02";

/// Returns the share that "2%", "2 %" or "0.02" is; nullopt if it is none from 0 to below 1.
std::optional<double> share_of(std::string text) {
  double unit = 1;
  if (text.ends_with('%')) {
    unit = 0.01;
    text = import::trimmed(text.substr(0, text.size() - 1), " ");
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value * unit >= 1)
    return std::nullopt;
  return value * unit;
}

}  // namespace

const std::vector<Objective>& front_columns() {
  static const std::vector<Objective> all = [] {
    std::vector<Objective> columns{
        objective_named("memory_peak_bytes"), {"gpus", false, {}, false}, {kFrontOfBatches, false, {}, false}};
    for (const Objective& one : objectives())
      if (one.follows_step_time) columns.push_back(one);
    return columns;
  }();
  return all;
}

const Objective& ordered_column(const std::string& name) {
  for (const Objective& one : front_columns())
    if (one.name == name) return one;
  return objective_named(name);
}

void ask_for_best(Sweep& sweep, std::uint32_t best, const std::string& option) {
  if (const std::string problem = problem_with_best(sweep); !problem.empty()) throw core::InputError(problem, option);
  sweep.best = best;
}

void allow_gap(Sweep& sweep, const std::string& gap, const std::string& option) {
  if (sweep.best == 0) throw core::InputError("belongs to the best of a sweep: add 'best: 1'", option);
  if (const auto share = share_of(gap))
    sweep.gap = *share;
  else
    throw core::InputError(fmt::format("{}, not '{}'", kExpectedGap, gap), option);
}

void ask_for_front(Sweep& sweep, const std::string& column, const std::string& option) {
  if (const std::string problem = problem_with_front(sweep, column); !problem.empty())
    throw core::InputError(problem, option);
  set_front(sweep, column);
}

void read_best(const import::Node* best, const import::Node* front, const import::Node* gap, Sweep& sweep) {
  if (best != nullptr) {
    core::OptionInfo info;
    info.kind = core::OptionInfo::Kind::integer;
    info.minimum = 1, info.maximum = 1e6;
    sweep.best = static_cast<std::uint32_t>(std::get<std::int64_t>(import::read_value(*best, info, "best")));
    if (const std::string problem = problem_with_best(sweep); !problem.empty()) best->fail("'best': " + problem);
  }
  if (front != nullptr) {
    const std::string column = import::read_line(*front, "front");
    if (const std::string problem = problem_with_front(sweep, column); !problem.empty())
      front->fail("'front': " + problem);
    set_front(sweep, column);
  }
  if (gap == nullptr) return;
  if (sweep.best == 0) gap->fail("'gap' belongs to the best of a sweep: add 'best: 1'");
  const std::string text = import::read_line(*gap, "gap");
  if (const auto share = share_of(text))
    sweep.gap = *share;
  else
    gap->fail(fmt::format("'gap': {}, not '{}'", kExpectedGap, text));
}

}  // namespace manyworlds::experiments

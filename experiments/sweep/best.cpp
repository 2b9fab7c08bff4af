#include "experiments/sweep/best.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/text/scalar.hpp"
#include "experiments/text/text.hpp"

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

void read_best(const import::Node* best, const import::Node* gap, Sweep& sweep) {
  if (best != nullptr) {
    core::OptionInfo info;
    info.kind = core::OptionInfo::Kind::integer;
    info.minimum = 1, info.maximum = 1e6;
    sweep.best = static_cast<std::uint32_t>(std::get<std::int64_t>(import::read_value(*best, info, "best")));
    if (const std::string problem = problem_with_best(sweep); !problem.empty()) best->fail("'best': " + problem);
  }
  if (gap == nullptr) return;
  if (best == nullptr) gap->fail("'gap' belongs to the best of a sweep: add 'best: 1'");
  const std::string text = import::read_line(*gap, "gap");
  if (const auto share = share_of(text))
    sweep.gap = *share;
  else
    gap->fail(fmt::format("'gap': {}, not '{}'", kExpectedGap, text));
}

}  // namespace manyworlds::experiments

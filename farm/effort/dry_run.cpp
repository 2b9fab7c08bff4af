#include "farm/effort/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/plural.hpp"
#include "core/compute/gpu.hpp"
#include "core/step/layout/keys.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/distributions/documents.hpp"
#include "farm/plan/plan.hpp"
#include "farm/status/progress.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEpisodes = "counted while running: which collectives contend is known only then";

/// Counts the kernels of every experiment that fits. Experiments with the same model, strategy and GPU have the same
/// kernels on every fabric.
Forecast::Count kernels_of(const experiments::Sweep& sweep, const Plan& plan) {
  Forecast::Count count;
  std::map<core::sharing::Key, std::uint64_t> times_of;  // by everything the kernels depend on
  std::set<std::pair<core::sharing::Key, core::compute::Kernel>> distinct;
  for (const auto& experiment : sweep.experiments) {
    if (!plan.experiments[experiment.id].fits() || plan.experiments[experiment.id].in_other_shard) continue;
    const auto configuration = experiment.config().configuration;
    const auto& strategy = configuration.strategy;
    const core::step::ParallelConfig parallel = core::step::parallel_config_of(configuration);
    const auto classes = core::step::classes_of(parallel);
    const auto key_of = [&](const core::workload::RankClass& rank_class) {
      core::sharing::KeyWriter gpu("gpu");
      core::step::write_options(gpu, core::compute::gpu_options().read(configuration.gpu_of(rank_class)));
      if (configuration.gpu_of(rank_class).speed_factor != 1) gpu.real(configuration.gpu_of(rank_class).speed_factor);
      return gpu.finish();
    };
    core::sharing::KeyWriter all("kernels");
    core::step::write_options(all, core::workload::model_options().read(configuration.model));
    core::step::write_options(all, core::workload::strategy_options().read(strategy));
    all.integer(strategy.dp);
    for (const auto& [rank_class, ranks] : classes) all.key(key_of(rank_class)).integer(ranks);
    if (configuration.model.routing) all.key(configuration.model.routing->key);
    if (configuration.model.documents) all.key(configuration.model.documents->key);
    if (configuration.programs) all.key(configuration.programs->key);
    const auto [known, is_new] = times_of.try_emplace(all.finish(), 0);
    if (is_new)
      for (const auto& [rank_class, ranks] : classes) {
        const auto gpu_key = key_of(rank_class);
        for (const auto& use : core::step::kernels_of(configuration, rank_class)) {
          distinct.insert({gpu_key, use.kernel});
          known->second += static_cast<std::uint64_t>(use.times * ranks);
        }
      }
    count.naive += known->second;
  }
  count.unique = distinct.size();
  return count;
}

struct ExclusionCount {
  std::uint64_t count = 0;
  const experiments::Excluded* example = nullptr;
};

std::map<std::string, ExclusionCount> by_rule(const experiments::Sweep& sweep) {
  std::map<std::string, ExclusionCount> rules;
  for (const auto& one : sweep.excluded) {
    ExclusionCount& rule = rules[one.rule];
    if (rule.count++ == 0) rule.example = &one;
  }
  return rules;
}

std::string axes_text(const experiments::Sweep& sweep, const std::vector<core::OptionValue>& axes) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", sweep.columns[i].name,
                        std::visit([](const auto& value) { return fmt::format("{}", value); }, axes[i]));
  return text;
}

/// Returns the first experiments, with their ids and what varies, as a table.
std::string experiments_text(const experiments::Sweep& sweep) {
  constexpr std::size_t kShown = 20;
  std::vector<std::vector<std::string>> rows{{"id"}};
  for (const auto& column : sweep.columns) rows.front().push_back(column.name);
  const std::size_t shown = std::min(kShown, sweep.experiments.size());
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string> row{std::to_string(sweep.experiments[i].id)};
    for (const auto& value : sweep.experiments[i].axes)
      row.push_back(std::visit([](const auto& held) { return fmt::format("{}", held); }, value));
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      text += i + 1 == row.size() ? row[i] + "\n" : fmt::format("{:<{}}  ", row[i], widths[i]);
  }
  if (const std::size_t more = sweep.experiments.size() - shown; more > 0) text += fmt::format("and {} more\n", more);
  return text + "(--json has every key of the first)\n";
}

/// Returns what a pilot tells: the steps one by one, which is at most what a run takes, as its steps share work.
std::string pilot_text(const Pilot& pilot, std::int64_t steps, int ranks) {
  const auto time_text = [](double seconds) {
    return seconds < 10 ? fmt::format("{:.1f}s", seconds) : duration_text(seconds);
  };
  const bool drawn = pilot.steps < steps;
  std::string text = fmt::format("simulated for this estimate: {} of {} {}{}\n", pilot.steps, steps,
                                 core::plural(steps, "step"), drawn ? ", drawn by their expected cost" : "");
  text += fmt::format("  {}{} of CPU if steps shared nothing",
                      pilot.is_cut ? "at least "
                      : drawn      ? "about "
                                   : "",
                      time_text(pilot.cpu_s.total));
  if (drawn && !pilot.is_cut) text += fmt::format(" (standard error {})", time_text(pilot.cpu_s.error));
  if (!pilot.is_cut)
    text += fmt::format(", so at most {} on {} {}", time_text(std::max(pilot.cpu_s.total / ranks, pilot.longest_s)),
                        ranks, core::plural(ranks, "rank"));
  text += pilot.is_cut ? fmt::format("; a step was given up after {}\n", time_text(pilot.longest_s)) : "\n";
  if (pilot.link_hops.total > 0)
    text += fmt::format("  {:.2g} link-hops take place, {:.2g} of them are simulated\n", pilot.link_hops.total,
                        pilot.simulated_link_hops.total);
  return text;
}

Json json_of(const DrawnTotal& total) {
  return {{"total", total.total}, {"standard_error", total.error}};
}

}  // namespace

Forecast forecast(const experiments::Sweep& sweep, const Shard& shard) {
  Plan whole = make_plan(sweep);
  Forecast result;
  const double cost = cost_of(whole);
  const Plan plan = plan_of_shard(std::move(whole), shard);
  result.shard = shard;
  if (cost > 0) result.cost_share = cost_of(plan) / cost;
  result.steps.unique = plan.steps.size();
  result.collectives.unique = plan.collectives.size();
  for (const PlannedExperiment& experiment : plan.experiments) {
    if (experiment.in_other_shard) continue;
    ++result.experiments;
    result.out_of_memory += experiment.fits() ? 0 : 1;
  }
  for (const PlannedStep& step : plan.steps) {
    result.steps.naive += step.experiments;
    result.collectives.naive += step.instances * step.experiments;
    if (step.bound == kNoBound) continue;
    Forecast::Bounded& bounded = result.bounded;
    bounded.least_ps = bounded.experiments == 0 ? step.floor_ps : std::min(bounded.least_ps, step.floor_ps);
    bounded.greatest_ps = std::max(bounded.greatest_ps, step.floor_ps);
    ++bounded.experiments;
  }
  if (result.bounded.experiments == 0) result.kernels = kernels_of(sweep, plan);
  return result;
}

std::string dry_run_text(const experiments::Sweep& sweep, const Forecast& forecast, int ranks) {
  std::string text =
      fmt::format("{}: {} {} and {} combinations left out, ranked by {}\n\n", sweep.name, forecast.experiments,
                  core::plural(forecast.experiments, "experiment"), sweep.excluded.size(), sweep.objective);
  if (!forecast.shard.whole())
    text += fmt::format("shard {} of {}: {:.1f} % of the expected work of the whole sweep\n\n", forecast.shard.number,
                        forecast.shard.count, 100 * forecast.cost_share);
  text += experiments_text(sweep) + "\n";
  if (!sweep.excluded.empty()) text += "left out:\n";
  for (const auto& [rule, exclusion] : by_rule(sweep))
    text += fmt::format("  {:>6}  {}, as {}: {}\n", exclusion.count, rule, axes_text(sweep, exclusion.example->axes),
                        exclusion.example->reason);
  text += fmt::format("{} of {} experiments do not fit in memory (reported, not simulated)\n", forecast.out_of_memory,
                      forecast.experiments);
  if (const Forecast::Bounded& bounded = forecast.bounded; bounded.experiments > 0) {
    text += fmt::format(
        "by sums over one micro-batch a step of the others takes at least {:.4g} s (the least of {}) to {:.4g} s (the "
        "greatest)\n"
        "which steps {} shows while running: kernels and collectives of the others are not counted\n",
        core::seconds(bounded.least_ps), bounded.experiments, core::seconds(bounded.greatest_ps),
        sweep.front.empty() ? fmt::format("the best {} need", sweep.best)
                            : fmt::format("the front against {} needs", sweep.front));
  } else {
    text += "work known so far (overlap episodes are found while running):\n";
    const auto line = [&](const char* kind, const Forecast::Count& count) {
      text += fmt::format("  {:<12} {:>10} for {} uses\n", kind, count.unique, count.naive);
    };
    line("steps", forecast.steps);
    line("kernels", forecast.kernels);
    line("collectives", forecast.collectives);
  }
  if (forecast.pilot) text += pilot_text(*forecast.pilot, static_cast<std::int64_t>(forecast.steps.unique), ranks);
  if (forecast.pilot && sweep.best > 0)
    text += fmt::format("  that is all of the sweep; how few of the steps prove its {} shows only when they do\n",
                        sweep.front.empty() ? fmt::format("best {}", sweep.best) : "front");
  return text + io::assumed_text(sweep.assumed);
}

Json dry_run_json(const experiments::Sweep& sweep, const Forecast& forecast) {
  Json result{{"name", sweep.name},
              {"objective", sweep.objective},
              {"experiments", forecast.experiments},
              {"out_of_memory", forecast.out_of_memory},
              {"first", experiments::document(sweep.experiments.front().settings)},
              {"excluded", Json::object()},
              {"keys", Json::object()}};
  for (const auto& [rule, exclusion] : by_rule(sweep))
    result["excluded"][rule] = {{"count", exclusion.count},
                                {"example", axes_text(sweep, exclusion.example->axes)},
                                {"reason", exclusion.example->reason}};
  if (!forecast.shard.whole())
    result["shard"] = {
        {"number", forecast.shard.number}, {"count", forecast.shard.count}, {"cost_share", forecast.cost_share}};
  const auto add = [&](const char* kind, const Forecast::Count& count) {
    result["keys"][kind] = {{"unique", count.unique}, {"naive", count.naive}};
  };
  add("steps", forecast.steps);
  if (const Forecast::Bounded& bounded = forecast.bounded; bounded.experiments > 0) {
    result["bounds"] = {{"experiments", bounded.experiments},
                        {"least_s", core::seconds(bounded.least_ps)},
                        {"greatest_s", core::seconds(bounded.greatest_ps)}};
  } else {
    add("kernels", forecast.kernels);
    add("collectives", forecast.collectives);
  }
  result["keys"]["episodes"] = kEpisodes;
  if (const auto& pilot = forecast.pilot)
    result["pilot"] = {{"samples", pilot->samples},
                       {"steps", pilot->steps},
                       {"is_cut", pilot->is_cut},
                       {"cpu_s", json_of(pilot->cpu_s)},
                       {"longest_cpu_s", pilot->longest_s},
                       {"link_hops", json_of(pilot->link_hops)},
                       {"simulated_link_hops", json_of(pilot->simulated_link_hops)}};
  return result;
}

}  // namespace manyworlds::farm

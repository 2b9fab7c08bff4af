#include "farm/verbs/simulate/run_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "core/workload/build/measurement_coverage.hpp"
#include "experiments/kernels/aiob_file.hpp"
#include "experiments/kernels/measured_kernels.hpp"
#include "experiments/text/text.hpp"
#include "farm/explain/kernel_totals.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {
namespace {

using core::compute::CostLevel;
using core::compute::kCostLevelNames;
using core::workload::KernelCosts;
using experiments::import::AiobTime;
using experiments::import::KernelRow;

/// Returns the experiment's configuration, whose kernels are of a model and of GPUs of one kind.
core::step::Configuration modelled(const experiments::Sweep& sweep, const char* option) {
  core::step::Configuration configuration = sweep.experiments.front().config().configuration;
  if (configuration.programs)
    throw core::InputError(
        "the kernels of a given program are those in its file: `manyworlds program FILE --by-name` sums them", option);
  if (configuration.is_mixed()) throw core::InputError("needs GPUs of one kind, and this cluster has several", option);
  return configuration;
}

/// Returns the rows that a file of AIOB has times for, all of them forward, and says what of the two has no match.
std::vector<KernelRow> rows_of_aiob(const KernelCosts& costs, const std::string& file) {
  const std::vector<AiobTime> times = experiments::import::parse_aiob(experiments::import::read_text(file), file);
  std::vector<KernelRow> rows;
  std::set<std::string> unused, missing;
  std::set<const AiobTime*> used;
  for (const auto& [what, sources] : costs) {
    if (what.direction != core::compute::Direction::forward) continue;
    const auto found = std::find_if(times.begin(), times.end(), [&](const AiobTime& one) {
      return one.level == what.level && std::find(one.names.begin(), one.names.end(), what.name) != one.names.end();
    });
    if (found == times.end()) {
      if (what.level == CostLevel::submodule) missing.insert(what.name);
      continue;
    }
    used.insert(&*found);
    rows.push_back({what, core::round_half_up(found->us * static_cast<double>(core::kMicrosecond)),
                    fmt::format("AIOB {}:{}", file, found->line)});
  }
  for (const AiobTime& one : times)
    if (used.count(&one) == 0) unused.insert(one.operation);
  if (!unused.empty())
    print_message("{}: not used, as the experiment has no such forward pass of its own: {}\n", file,
                  fmt::join(unused, ", "));
  if (!missing.empty()) print_message("{}: has no time of {}\n", file, fmt::join(missing, ", "));
  print_message(
      "{}: does not say of which model, batch and GPU its times are: they are taken for this experiment's; it has "
      "none of backward passes\n",
      file);
  return rows;
}

std::string source_text(const core::workload::CostSources& sources) {
  return std::string(sources.measured ? "measured"
                                      : core::compute::kTimeBasisNames.at(static_cast<std::size_t>(sources.basis)));
}

}  // namespace

int show_kernels(const experiments::Sweep& sweep, const std::string& level, const std::string& aiob_file) {
  const auto* named = std::find(kCostLevelNames.begin() + 1, kCostLevelNames.end(), level);
  if (named == kCostLevelNames.end())
    throw core::InputError(fmt::format("must be one of {}, not '{}'",
                                       fmt::join(kCostLevelNames.begin() + 1, kCostLevelNames.end(), ", "), level),
                           "--kernels");
  core::step::Configuration configuration = modelled(sweep, "--kernels");
  configuration.gpu.measured = measured_times(sweep.experiments.front());
  const KernelCosts costs =
      core::workload::measurement_coverage(configuration.model, configuration.strategy, configuration.gpu).costs;
  std::vector<KernelRow> rows;
  if (!aiob_file.empty()) {
    if (level != "submodule") throw core::InputError("has times of submodules: give --kernels=submodule", "--aiob");
    rows = rows_of_aiob(costs, aiob_file);
  } else {
    for (const auto& [what, sources] : costs)
      if (kCostLevelNames.at(static_cast<std::size_t>(what.level)) == *named)
        rows.push_back({what, sources.ps(), source_text(sources)});
  }
  std::cout << experiments::import::measured_kernels_csv(rows);
  return kExitDone;
}

int show_totals(const experiments::Sweep& sweep, const std::optional<experiments::Sweep>& other, bool json) {
  const auto totals_of = [](const experiments::Sweep& one) {
    return kernel_totals(modelled(one, "--totals"), measured_times(one.experiments.front()));
  };
  const auto stack_of = [](const experiments::Sweep& one) {
    const std::string& name = one.experiments.front().settings.text("strategy.stack.name");
    return name.empty() ? std::string("of its own") : name;
  };
  const KernelTotals totals = totals_of(sweep);
  std::optional<KernelTotals> beside;
  if (other) beside = totals_of(*other);
  if (json) {
    nlohmann::ordered_json object = kernel_totals_json(totals);
    object["stack"] = stack_of(sweep);
    if (beside) object["beside"] = kernel_totals_json(*beside), object["beside"]["stack"] = stack_of(*other);
    std::cout << object.dump(1) << "\n";
  } else {
    std::cout << kernel_totals_text(totals, stack_of(sweep), beside ? &*beside : nullptr,
                                    other ? stack_of(*other) : "");
  }
  return kExitDone;
}

}  // namespace manyworlds::farm::commands

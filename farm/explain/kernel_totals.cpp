#include "farm/explain/kernel_totals.hpp"

#include <fmt/format.h>

#include "core/workload/build/build_program.hpp"
#include "core/workload/build/measurement_coverage.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using core::compute::CostLevel;
using core::compute::MeasuredTimes;
using core::workload::CostSources;
using core::workload::MeasurementCoverage;

constexpr std::array kLevels{CostLevel::layer, CostLevel::submodule, CostLevel::kernel, CostLevel::model};
constexpr std::array<const char*, kSources> kNames{"the model", "kernels", "submodules", "layers"};  // by CostLevel

std::size_t index_of(CostLevel level) {
  return static_cast<std::size_t>(level);
}

/// Returns what measurements of `level` alone say of an item, if they cover it.
std::optional<core::Time> time_of(const CostSources& sources, CostLevel item, CostLevel level) {
  if (level == CostLevel::model) return sources.model_ps;
  if (level == item) return sources.measured ? std::optional(sources.measured->time_ps) : std::nullopt;
  return level < item && sources.finer_measured ? std::optional(sources.finer_ps) : std::nullopt;
}

std::string us_text(std::optional<core::Time> ps) {
  return ps ? fmt::format("{:.2f} us", static_cast<double>(*ps) / core::kMicrosecond) : "-";
}

double seconds_of(core::Int128 ps) {
  return static_cast<double>(ps) / static_cast<double>(core::kSecond);
}

}  // namespace

KernelTotals kernel_totals(core::step::Configuration configuration, std::shared_ptr<const MeasuredTimes> measured) {
  KernelTotals totals;
  std::array<MeasurementCoverage, kSources> by_level;
  for (const CostLevel level : kLevels) {
    const std::size_t i = index_of(level);
    configuration.gpu.measured = nullptr;
    if (measured && level != CostLevel::model)
      configuration.gpu.measured = std::make_shared<const MeasuredTimes>(measured->only(level));
    by_level[i] = measurement_coverage(configuration.model, configuration.strategy, configuration.gpu);
    core::Int128 sum = 0;
    for (const core::Int128 ps : by_level[i].ps) sum += ps;
    totals.ps[i] = static_cast<core::Time>(sum);
    totals.measured_share[i] = level == CostLevel::model ? 0 : by_level[i].share(level);
    totals.has_rows[i] = level != CostLevel::model && rows_used(by_level[i].costs) > 0;
  }
  for (const CostLevel level : {CostLevel::layer, CostLevel::submodule})
    for (const auto& [key, ignored] : by_level[index_of(CostLevel::model)].costs) {
      if (key.level != level) continue;
      MeasuredItem item{
          level,
          fmt::format("{} {}", key.name, core::compute::kDirectionNames.at(static_cast<std::size_t>(key.direction))),
          {}};
      bool is_measured = false;
      for (const CostLevel source : kLevels) {
        const auto found = by_level[index_of(source)].costs.find(key);
        if (found == by_level[index_of(source)].costs.end()) continue;
        item.ps[index_of(source)] = time_of(found->second, level, source);
        is_measured |= source != CostLevel::model && item.ps[index_of(source)].has_value();
      }
      if (is_measured) totals.items.push_back(std::move(item));
    }
  for (const core::workload::RankClass& one : rank_classes(configuration.model, configuration.strategy))
    for (const core::workload::KernelUse& use :
         kernels_used(configuration.model, configuration.strategy, configuration.gpu, one))
      totals.launches += use.times;
  const core::workload::Stack& stack = configuration.strategy.stack;
  if (stack.cuda_graphs != core::workload::CudaGraphs::all) totals.launch_us = stack.host_kernel_us;
  return totals;
}

std::string kernel_totals_text(const KernelTotals& totals, const std::string& stack, const KernelTotals* other,
                               const std::string& other_stack) {
  std::string text = fmt::format("kernels of a step, on one rank of each kind, by one source alone\n{:<18}{:>14}{:>12}",
                                 "", "time", "measured");
  if (other != nullptr) text += fmt::format("{:>24}{:>10}", other_stack, "ratio");
  text += "\n";
  const auto beside = [&](double own, double others) {
    return other == nullptr ? "\n" : fmt::format("{:>24}{:>10.3f}\n", io::with_si_prefix(others, "s"), others / own);
  };
  for (const CostLevel level : kLevels) {
    const std::size_t i = index_of(level);
    if (level != CostLevel::model && !totals.has_rows[i]) {
      text += fmt::format("{:<18}{:>14}\n", kNames[i], "not measured");
      continue;
    }
    text += fmt::format("{:<18}{:>14}{:>10.1f} %", kNames[i], io::with_si_prefix(seconds_of(totals.ps[i]), "s"),
                        100 * totals.measured_share[i]);
    text += beside(seconds_of(totals.ps[i]), other == nullptr ? 0 : seconds_of(other->ps[i]));
  }
  const auto host_s = [](const KernelTotals& one) { return static_cast<double>(one.launches) * one.launch_us * 1e-6; };
  text += fmt::format("{:<18}{:>14}{:>12}", "host's launches", io::with_si_prefix(host_s(totals), "s"), "-");
  text += other == nullptr || host_s(totals) == 0 ? "\n" : beside(host_s(totals), host_s(*other));
  text += fmt::format("{} kernels, {} us of the host to launch each outside graphs (stack {})\n", totals.launches,
                      totals.launch_us, stack);
  if (other != nullptr)
    text += fmt::format("{} kernels, {} us each under {}\n", other->launches, other->launch_us, other_stack);
  if (totals.items.empty()) return text;
  text += fmt::format("\n{:<28}{:>14}{:>14}{:>14}{:>14}{:>12}\n", "one occurrence", "layers", "submodules", "kernels",
                      "the model", "residual");
  for (const MeasuredItem& item : totals.items) {
    text += fmt::format("{:<28}", item.name);
    for (const CostLevel level : kLevels) text += fmt::format("{:>14}", us_text(item.ps[index_of(level)]));
    const auto &whole = item.ps[index_of(item.level)], &parts = item.ps[index_of(item.level) - 1];
    text += whole && parts
                ? fmt::format("{:>10.1f} %\n", 100 * (1 - static_cast<double>(*parts) / static_cast<double>(*whole)))
                : fmt::format("{:>12}\n", "-");
  }
  return text + "residual: what is measured of the whole and not of its parts, as a share of the whole\n";
}

nlohmann::ordered_json kernel_totals_json(const KernelTotals& totals) {
  nlohmann::ordered_json object;
  for (const CostLevel level : kLevels) {
    const std::size_t i = index_of(level);
    const std::string name(core::compute::kCostLevelNames.at(i));
    if (level != CostLevel::model && !totals.has_rows[i]) {
      object[name] = nullptr;
      continue;
    }
    object[name] = {{"kernel_time_s", seconds_of(totals.ps[i])}, {"measured_share", totals.measured_share[i]}};
  }
  object["launches"] = totals.launches;
  object["launch_us"] = totals.launch_us;
  object["items"] = nlohmann::ordered_json::array();
  for (const MeasuredItem& item : totals.items) {
    nlohmann::ordered_json row{{"level", core::compute::kCostLevelNames.at(index_of(item.level))}, {"name", item.name}};
    for (const CostLevel level : kLevels)
      if (const auto& ps = item.ps[index_of(level)])
        row[fmt::format("{}_us", core::compute::kCostLevelNames.at(index_of(level)))] =
            static_cast<double>(*ps) / core::kMicrosecond;
    object["items"].push_back(std::move(row));
  }
  return object;
}

}  // namespace manyworlds::farm

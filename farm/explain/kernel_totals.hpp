// What the kernels of a step take by each source of their times alone: measured layers, submodules, kernels, the model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/measured.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::farm {

inline constexpr std::size_t kSources = core::compute::kCostLevelNames.size();

/// A layer or a submodule in one pass.
struct MeasuredItem {
  core::compute::CostLevel level = core::compute::CostLevel::layer;
  std::string name;  // "layer forward"
  /// By CostLevel: the time of one occurrence by measurements of that level that cover all of it; by the model, always.
  std::array<std::optional<core::Time>, kSources> ps;
};

struct KernelTotals {
  /// By CostLevel: the time of all kernels of a step, on one rank of every class, where the table's rows of that level
  /// count and nothing finer; and the share of it that they cover. By the model: without the table.
  std::array<core::Time, kSources> ps{};
  std::array<double, kSources> measured_share{};
  std::array<bool, kSources> has_rows{};  // of the table, for anything in the step
  std::vector<MeasuredItem> items;        // those that are measured at some level
  std::int64_t launches = 0;              // kernels in a step, on the same ranks
  double launch_us = 0;                   // of the host, for each that is in no graph
};

/// Returns the totals; `measured` may be null.
KernelTotals kernel_totals(core::step::Configuration configuration,
                           std::shared_ptr<const core::compute::MeasuredTimes> measured);

/// Returns them as a table, and beside those under another software stack, if one is given.
std::string kernel_totals_text(const KernelTotals& totals, const std::string& stack, const KernelTotals* other,
                               const std::string& other_stack);
nlohmann::ordered_json kernel_totals_json(const KernelTotals& totals);

}  // namespace manyworlds::farm

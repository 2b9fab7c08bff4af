// The row of an experiment in the results, and columns made of rows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/step/layout/memory_requirement.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/step/run/result.hpp"
#include "core/workload/build/measurement_coverage.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/plan/plan.hpp"
#include "farm/results/result_costs.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr std::int64_t kNoCount = -1;

/// The data of one experiment from which its row is made.
struct Row {
  const experiments::Experiment& experiment;
  const PlannedExperiment& planned;
  core::step::Configuration configuration;  // without its graph
  std::string status, reason;
  const core::step::StepResult* step = nullptr;                // null unless it ran
  experiments::Interval interval;                              // if the step was simulated by packets
  std::array<bool, core::compute::kKernelKinds> guessed{};     // kinds of kernels, if it ran
  std::optional<core::workload::MeasurementCoverage> kernels;  // if it ran with a table of measured times
  std::string tuner = {};  // the lines of its tuner's table that chose; empty without one, or where it did not run
  RowCosts costs;
  std::optional<core::Time> bound_ps = {};  // of a sweep that asks for its best
  std::string bounded_by = {};              // what that is: sums or analytic

  bool analytic() const { return configuration.transport.fidelity == core::network::Fidelity::analytic; }
  bool packets() const { return configuration.transport.fidelity == core::network::Fidelity::packet; }
  bool has_interval() const { return step != nullptr && !analytic() && !configuration.programs; }
  double gpus() const { return static_cast<double>(core::step::parallel_config_of(configuration).ranks()); }
  double tokens() const { return core::step::tokens_per_step(configuration); }
  double per_gpu_second(double total) const { return total / (core::seconds(step->step_ps) * gpus()); }
};

using Rows = std::vector<Row>;

/// Returns a column of texts.
io::Column text_column(std::string name, std::string description, const Rows& rows,
                       const std::function<std::string(const Row&)>& value);
/// Returns a column of numbers that experiments have only if they ran; NaN otherwise.
io::Column real_column(std::string name, std::string unit, std::string description, const Rows& rows,
                       const std::function<double(const Row&)>& value);
/// Returns a column of counts that experiments have only if they ran; -1 otherwise.
io::Column count_column(std::string name, std::string unit, std::string description, const Rows& rows,
                        const std::function<std::int64_t(const core::step::StepResult&)>& value);
/// Returns a column of integers that every experiment has, whether it ran or not.
io::Column integer_column(std::string name, std::string unit, std::string description, const Rows& rows,
                          const std::function<std::int64_t(const Row&)>& value);
/// Returns the column of one axis; `value(i)` is the value of row i.
io::Column axis_column(const experiments::AxisColumn& axis, std::size_t rows,
                       const std::function<const core::OptionValue&(std::size_t)>& value);

}  // namespace manyworlds::farm

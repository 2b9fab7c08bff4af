#include "farm/results/kernel_columns.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "core/workload/layer/kernel_costs.hpp"

namespace manyworlds::farm {
namespace {

using io::Column;

/// Returns the share of the kernels' time that is modelled, with guessed rates or with others.
double modelled_share(const Row& row, bool guessed) {
  double sum = 0;
  for (std::size_t kind = 0; kind < row.guessed.size(); ++kind)
    if (row.guessed[kind] == guessed) sum += row.step->kernel_shares.modelled[kind];
  return sum;
}

}  // namespace

void add_time_basis(std::vector<Column>& to, const Rows& rows) {
  to.push_back(real_column("time_measured", "",
                           "share of the kernels' time, over all ranks, with a measurement of the same shape", rows,
                           [](const Row& row) { return row.step->kernel_shares.measured; }));
  to.push_back(real_column("time_interpolated", "", "share of it with measurements of shapes that are near", rows,
                           [](const Row& row) { return row.step->kernel_shares.interpolated; }));
  to.push_back(real_column("time_modelled", "", "share of it by the model, with rates that are known, read or fitted",
                           rows, [](const Row& row) { return modelled_share(row, false); }));
  to.push_back(real_column("time_guessed", "", "share of it by the model, with a rate that is a guess", rows,
                           [](const Row& row) { return modelled_share(row, true); }));
}

void add_measured_kernels(std::vector<Column>& to, const Rows& rows) {
  using core::compute::CostLevel;
  using core::workload::Disagreement;
  using core::workload::MeasurementCoverage;
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.configuration.gpu.measured; })) return;
  const auto add_column = [&](std::string name, std::string description,
                              const std::function<double(const MeasurementCoverage&)>& value) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(row.kernels ? value(*row.kernels) : kNaN);
    to.push_back({std::move(name), "", std::move(description) + "; NaN without a table", std::move(values)});
  };
  struct Part {
    const char *name, *description;
    CostLevel level;
  };
  for (const Part& part :
       {Part{"time_by_layers", "share of kernel time taken from measured layers", CostLevel::layer},
        Part{"time_by_submodules", "share of kernel time taken from measured submodules", CostLevel::submodule},
        Part{"time_by_kernels", "share of kernel time taken from measured kernels", CostLevel::kernel},
        Part{"time_by_model", "share of kernel time computed by the cost model", CostLevel::model}})
    add_column(part.name, part.description,
               [&](const MeasurementCoverage& account) { return account.share(part.level); });
  std::vector<std::int64_t> used;
  for (const Row& row : rows) used.push_back(row.kernels ? core::workload::rows_used(row.kernels->costs) : kNoCount);
  to.push_back({"measured_rows", "", "rows of the table of measured times that fit; -1 without a table", used});
  const auto disagreement = [&](const std::string& name, const std::string& description,
                                Disagreement (*disagreement_of)(const core::workload::KernelCosts&)) {
    add_column(name, description,
               [&](const MeasurementCoverage& account) { return disagreement_of(account.costs).share; });
    to.push_back(text_column(name + "_at", "where that is; empty: no time has two sources", rows, [&](const Row& row) {
      return row.kernels ? disagreement_of(row.kernels->costs).at : std::string();
    }));
  };
  disagreement("levels_disagree",
               "of a layer or submodule that is measured as a whole and in parts, the sum of the parts over the whole, "
               "less 1, where that is farthest from 0",
               core::workload::level_disagreement);
  disagreement("model_disagrees", "of what is measured, the model's time over it, less 1, where farthest from 0",
               core::workload::model_disagreement);
}

}  // namespace manyworlds::farm

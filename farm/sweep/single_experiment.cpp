#include "farm/sweep/single_experiment.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/config/stage_split.hpp"
#include "farm/texts/step_text.hpp"

namespace manyworlds::farm {

namespace {

/// Returns the axes that --set can pin, without the leaf columns that an axis over mappings creates.
std::string axes_of(const experiments::Sweep& sweep) {
  std::string names;
  for (const auto& column : sweep.columns) {
    bool leaf = false;
    for (const auto& other : sweep.columns) leaf |= column.name.starts_with(other.name + ".");
    if (!leaf) names += (names.empty() ? "" : ", ") + column.name;
  }
  return names;
}

}  // namespace

experiments::Sweep single_experiment(experiments::Sweep sweep, std::optional<std::int64_t> id,
                                     const std::string& file) {
  const std::size_t count = sweep.experiments.size();
  std::size_t chosen = 0;
  if (id) {
    if (*id < 0 || static_cast<std::size_t>(*id) >= count)
      throw core::InputError(count == 0 ? std::string("no point of the sweep is valid")
                                        : fmt::format("the sweep's ids go from 0 to {}", count - 1),
                             fmt::format("--experiment {}", *id));
    chosen = static_cast<std::size_t>(*id);
  } else if (count + sweep.excluded.size() > 1) {
    throw core::InputError(
        fmt::format("has {} points; pin its axes ({}) with --set KEY=VALUE{}", count + sweep.excluded.size(),
                    axes_of(sweep), count > 0 ? fmt::format(", or pick one with --experiment 0 … {}", count - 1) : ""),
        file);
  } else if (count == 0) {
    if (sweep.refused.empty())
      throw core::InputError(fmt::format("its only point is left out by where '{}'", sweep.excluded.front().reason),
                             file);
    return sweep;
  }
  sweep.experiments = {sweep.experiments[chosen]};
  sweep.experiments.front().id = 0;
  sweep.excluded.clear();
  return sweep;
}

nlohmann::ordered_json experiment_json(const experiments::Sweep& sweep, const io::Results& results) {
  const ResultRow row{results.experiments};
  nlohmann::ordered_json object{{"name", sweep.name}, {"assumed", sweep.assumed}};
  for (const io::Column& column : row.table.columns)
    std::visit([&](const auto& values) { object[column.name] = values.at(0); }, column.values);
  const experiments::Experiment& experiment = sweep.experiments.front();
  if (const auto config = experiment.config(); !experiments::split_text(config, experiment.settings).empty())
    object["stage_layers"] = config.configuration.strategy.stage_layers;
  if (sweep.measured && row.ran())
    object["measured"] = {{"step_time_s", sweep.measured->step_time_s},
                          {"source", sweep.measured->source},
                          {"error_percent", 100 * (row.number("step_time_s") / sweep.measured->step_time_s - 1)}};
  return object;
}

}  // namespace manyworlds::farm

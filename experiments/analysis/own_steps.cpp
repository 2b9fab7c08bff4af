#include "experiments/analysis/own_steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "core/sharing/key.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using import::CsvRow;
using import::CsvTable;

/// Columns that a table of training steps has as well (experiments/measured/README.md).
constexpr const char* kStepColumns[] = {"id",       "source",        "model",        "gpu",
                                        "num_gpus", "gpus_per_node", "global_batch", "measured_step_s"};
/// Columns of a user's table only.
constexpr const char* kOwnColumns[] = {"predicted_step_s", "predicted_by", "experiment", "chip", "kind"};

using Cells = std::map<std::string, std::string>;

std::string value_text(const core::OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return to_json(value).dump();
}

/// Returns whether one of the columns that every table of steps has tells a setting of the strategy.
bool in_other_columns(const std::string& key) {
  static constexpr std::array kKeys{
      "tp",          "pp",           "cp",        "dp",   "ep",    "virtual_stages", "schedule", "sequence_parallel",
      "micro_batch", "global_batch", "recompute", "zero", "split", "stack"};
  return std::any_of(kKeys.begin(), kKeys.end(),
                     [&](const char* name) { return key == fmt::format("strategy.{}", name); });
}

/// Returns the cells of a row: the columns of a table of steps from the settings that they set when it is read.
Cells cells_of(const OwnStep& step, const Settings& settings, const ExperimentConfig& config) {
  const auto& strategy = config.configuration.strategy;
  const std::int64_t gpus = strategy.tp * strategy.cp * strategy.pp * strategy.dp;
  const auto text = [&](const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string() : value_text(found->second);
  };
  Cells cells{{"id", step.id},
              {"source", step.source},
              {"family", "own"},
              {"model", text("model.name").empty() ? "own" : text("model.name")},
              {"gpu", text("cluster.gpu.name")},
              {"num_gpus", std::to_string(gpus)},
              {"gpus_per_node", std::to_string(std::min<std::int64_t>(config.cluster.gpus_per_node, gpus))},
              {"intra_bw_GBps", text("cluster.gpu.scale_up_gb_per_s")},
              {"inter_bw_GBps_per_gpu", fmt::format("{}", std::get<double>(settings.at("cluster.nic_gbps")) / 8)},
              {"tp", std::to_string(strategy.tp)},
              {"pp", std::to_string(strategy.pp)},
              {"dp", std::to_string(strategy.dp)},
              {"cp", std::to_string(strategy.cp)},
              {"ep", std::to_string(strategy.ep)},
              {"vpp_interleave", text("strategy.virtual_stages")},
              {"schedule", text("strategy.schedule")},
              {"sequence_parallel", strategy.sequence_parallel ? "1" : "0"},
              {"micro_batch", std::to_string(strategy.micro_batch)},
              {"global_batch", std::to_string(strategy.global_batch)},
              {"recompute", text("strategy.recompute")},
              {"zero_stage", text("strategy.zero")},
              {"split", text("strategy.split")},
              {"stack", step.stack},
              {"dtype", text("strategy.stack.precision")},
              {"measured_step_s", fmt::format("{}", step.measured_s)},
              {"predicted_step_s", fmt::format("{}", step.predicted_s)},
              {"predicted_by", step.predicted_by},
              {"experiment", step.experiment},
              {"chip", step.chip},
              {"kind", step.kind}};
  // Columns of a strategy's own names take precedence over what is assumed of a source.
  constexpr std::string_view kStrategy = "strategy.";
  for (const auto& [key, value] : settings)
    if (key.starts_with(kStrategy) && key.find('.', kStrategy.size()) == std::string::npos && !in_other_columns(key))
      cells[key] = value_text(value);
  for (const core::OptionInfo& info : catalog_section("models").options) {
    const std::string column = info.name == "vocabulary" ? "vocab" : info.name == "sequence" ? "seq_len" : info.name;
    if (info.name != "name" && !is_file(info)) cells[column] = text("model." + info.name);
  }
  for (const core::OptionInfo& info : catalog_section("stacks").options)
    if (info.name != "name") cells["stack." + info.name] = text("strategy.stack." + info.name);
  return cells;
}

/// Writes rows under the columns that any of them has: the required ones first, the others by name.
std::string table_text(const std::vector<Cells>& rows) {
  std::vector<std::string> columns(std::begin(kStepColumns), std::end(kStepColumns));
  columns.insert(columns.end(), std::begin(kOwnColumns), std::end(kOwnColumns));
  const std::set<std::string> first(columns.begin(), columns.end());
  std::set<std::string> others;
  for (const Cells& row : rows)
    for (const auto& [column, value] : row)
      if (!value.empty() && !first.count(column)) others.insert(column);
  columns.insert(columns.end(), others.begin(), others.end());
  std::string text = fmt::format("{}\n", fmt::join(columns, ","));
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto cell = row.find(columns[i]);
      line += (i > 0 ? "," : "") + (cell == row.end() ? std::string() : core::csv_field(cell->second));
    }
    text += line + "\n";
  }
  return text;
}

double positive(const CsvRow& row, const char* column) {
  const auto value = row.real(column);
  if (!value || !(*value > 0) || !std::isfinite(*value))
    row.fail(fmt::format("{} must be a number above 0, not '{}'", column, row.text(column)));
  return *value;
}

}  // namespace

std::string prediction_mark() {
  core::sharing::KeyWriter writer("predictions");  // writes the build's fingerprint first
  for (const CatalogFile& one : compiled_catalog()) writer.text(one.kind).text(one.name).text(one.text);
  return writer.finish().hex();
}

std::string experiment_digest(const Settings& settings) {
  core::sharing::KeyWriter writer("experiment");
  for (const auto& [key, value] : settings) writer.text(key).text(to_json(value).dump());
  return writer.finish().hex();
}

std::vector<OwnStep> read_own_steps(const CsvTable& table) {
  for (const char* column : kOwnColumns)
    if (!table.header->has(column))
      throw core::InputError(
          fmt::format("has no column '{}', so that it is no table that `check --learn` wrote", column),
          table.header->file, 1);
  std::vector<OwnStep> steps;
  for (const CsvRow& row : table.rows) {
    const auto text = [&](const char* column) { return std::string(row.text(column)); };
    steps.push_back({text("id"), text("source"), text("experiment"), text("chip"), text("kind"), text("stack"),
                     text("predicted_by"), positive(row, "measured_step_s"), positive(row, "predicted_step_s")});
  }
  return steps;
}

std::string with_own_step(const std::string& table, const std::string& name, const OwnStep& step,
                          const Settings& settings, const ExperimentConfig& config) {
  std::vector<Cells> rows;
  if (!table.empty()) {
    const CsvTable before = import::parse_csv(table, name);
    read_own_steps(before);
    for (const CsvRow& row : before.rows) {
      if (row.text("id") == step.id) continue;
      Cells& cells = rows.emplace_back();
      for (const std::string& column : before.header->names) cells[column] = row.text(column);
    }
  }
  rows.push_back(cells_of(step, settings, config));
  return table_text(rows);
}

}  // namespace manyworlds::experiments

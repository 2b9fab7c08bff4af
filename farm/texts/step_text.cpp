#include "farm/texts/step_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/config/stage_split.hpp"
#include "io/ranking/top.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {

const io::Column& ResultRow::column(const std::string& name) const {
  const io::Column* found = table.find(name);
  MANYWORLDS_CHECK(found, "no column '{}'", name);
  return *found;
}

std::string gib_text(double bytes) {
  return fmt::format("{:.2f} GiB", core::gib(bytes));
}

std::string interval_text(const ResultRow& row) {
  if (row.text("step_time_basis").empty()) return "";
  return fmt::format("80 % interval     {}, from errors on published runs ({})\n",
                     io::format_interval(row.table, row.row), row.text("step_time_basis")) +
         guesses_text(row);
}

std::string guesses_text(const ResultRow& row) {
  if (row.text("step_time_guesses").empty()) return "";
  const std::string widens = io::format_guesses(row.table, {row.row});
  return fmt::format("guessed           {}{}{}\n", widens, widens.empty() ? "" : ": ", row.text("step_time_guesses"));
}

std::string breakdown_text(const ResultRow& row) {
  std::string text = "breakdown, mean over ranks\n";
  for (const core::workload::StepPartInfo& part : core::workload::kStepParts) {
    const double value = row.number(std::string(part.column));
    text +=
        fmt::format("  {:<16}{:>14.6f} s {:>6.1f} %\n", part.name(), value, 100 * value / row.number("step_time_s"));
  }
  return text;
}

std::string time_basis_text(const ResultRow& row) {
  return fmt::format(
      "kernel times      {:.1f} % measured, {:.1f} % interpolated, {:.1f} % modelled, {:.1f} % guessed\n",
      100 * row.number("time_measured"), 100 * row.number("time_interpolated"), 100 * row.number("time_modelled"),
      100 * row.number("time_guessed"));
}

std::string split_text(const experiments::Experiment& experiment) {
  const std::string split = experiments::split_text(experiment.config(), experiment.settings);
  return split.empty() ? "" : fmt::format("split             {}\n", split);
}

std::string throughput_text(const ResultRow& row) {
  const double tokens = row.number("tokens_per_s_per_gpu");
  if (std::isnan(tokens)) return "tokens/s/GPU      not known: the programs do not say tokens_per_step\n";
  std::string text = fmt::format("tokens/s/GPU      {:.1f}\n", tokens);
  if (const double mfu = row.number("mfu"); !std::isnan(mfu))
    text += fmt::format("MFU               {:.1f} % of {}\n", 100 * mfu, io::mfu_peak_text(row.table, row.row));
  return text;
}

std::string memory_text(const ResultRow& row, const experiments::Experiment& experiment) {
  const auto configuration = experiment.config().configuration;
  if (configuration.programs && row.number("memory_peak_bytes") == 0)
    return "peak memory       not known: the programs do not say what they allocate\n";
  std::string text = fmt::format("peak memory       {} of {:.2f} GiB\n", gib_text(row.number("memory_peak_bytes")),
                                 core::step::memory_requirement_of(configuration).memory_gib);
  for (const core::memory::FootprintPart& part : core::memory::footprint_parts())
    if (const double bytes = row.number(fmt::format("memory_{}_bytes", part.name)); bytes > 0)
      text += fmt::format("  {:<16}{:>14}\n", part.name, gib_text(bytes));
  return text;
}

}  // namespace manyworlds::farm

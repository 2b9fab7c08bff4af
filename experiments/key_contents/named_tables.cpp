#include "experiments/key_contents/named_tables.hpp"

#include <fmt/ranges.h>

#include <map>

#include "core/collective/algorithms/registry.hpp"
#include "experiments/import/schedule_file.hpp"
#include "experiments/kernels/measured_kernels.hpp"
#include "experiments/nccl/tuner_file.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments {
namespace {

constexpr const char* kMeasuredKernels = "cluster.gpu.measured_kernels";
constexpr const char* kMeasuredOnly = "cluster.gpu.measured_only";

/// Returns the path and the contents of a file.
const Inputs::value_type& input_of(const Inputs& inputs, const std::string& path) {
  const auto text = inputs.find(path);
  MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
  return *text;
}

/// Returns those of the file that a setting names; null if it names none.
const Inputs::value_type* named_input(const Settings& settings, const Inputs& inputs, const std::string& key) {
  const std::string& path = settings.text(key);
  return path.empty() ? nullptr : &input_of(inputs, path);
}

std::vector<core::collective::TunerRule> msccl_rules(const Settings& settings, const Inputs& inputs) {
  std::vector<core::collective::TunerRule> rules;
  for (const std::string& path : paths_in(settings.text(kMscclFiles)))
    rules.push_back(inputs.algorithms->get(path, input_of(inputs, path).second));
  return rules;
}

/// Returns ", from 1 to 2" for the sizes for which an algorithm is meant; empty if it is for all.
std::string bytes_text(std::int64_t least, std::int64_t most) {
  const bool has_most = most < std::numeric_limits<std::int64_t>::max();
  std::string text = least > 0 ? fmt::format(", from {}", least) : "";
  if (has_most) text += fmt::format("{} to {}", text.empty() ? "," : "", most);
  return text;
}

std::string lines_text(const std::vector<int>& lines) {
  return fmt::format("line{} {}", lines.size() == 1 ? "" : "s", fmt::join(lines, ", "));
}

}  // namespace

const core::OptionTable<KernelTable>& kernel_table_options() {
  static const core::OptionTable<KernelTable> table{
      core::option(
          "measured_kernels", &KernelTable::measured_kernels,
          "table of measured times of kernels, submodules and layers (docs/formats.md), which replace modelled ones",
          {}, "file"),
      core::option("measured_only", &KernelTable::measured_only,
                   "a kernel that the table of measured times does not cover is an error"),
  };
  return table;
}

const core::OptionTable<ScheduleFile>& schedule_file_options() {
  static const core::OptionTable<ScheduleFile> table{
      core::option("schedule_file", &ScheduleFile::schedule_file,
                   "the orders of schedule written, as PyTorch's pipeline schedules write them (docs/formats.md)", {},
                   "file"),
  };
  return table;
}

const core::OptionTable<TunerTable>& tuner_table_options() {
  static const core::OptionTable<TunerTable> table{
      core::option("tuner_file", &TunerTable::tuner_file,
                   "table that chooses algorithm and protocol by operation, bytes, nodes and ranks before the library "
                   "does, as NCCL's example tuner plugin reads it (docs/model/collectives.md)",
                   {}, "file"),
      core::option(
          "msccl_files", &TunerTable::msccl_files,
          "algorithms of MSCCL, which are taken before tuner_file and the library decide where they fit; paths "
          "with : between them (docs/msccl.md)",
          {}, "file"),
  };
  return table;
}

KernelTable kernel_table_of(const Settings& settings) {
  KernelTable result;
  result.measured_kernels = settings.text(kMeasuredKernels);
  if (const core::OptionValue* only = settings.value(kMeasuredOnly)) result.measured_only = std::get<bool>(*only);
  return result;
}

std::vector<std::string> paths_in(std::string_view text) {
  std::vector<std::string> paths;
  for (const std::string_view path : import::words_of(text, ":")) paths.emplace_back(path);
  return paths;
}

std::vector<core::collective::TunerRule> tuner_rules(const Settings& settings, const Inputs& inputs) {
  std::vector<core::collective::TunerRule> rules = msccl_rules(settings, inputs);
  const auto* file = named_input(settings, inputs, kTunerFile);
  if (file == nullptr) return rules;
  import::TunerFile table = import::parse_tuner_file(file->second, file->first);
  std::move(table.rules.begin(), table.rules.end(), std::back_inserter(rules));
  return rules;
}

std::string msccl_note(const Settings& settings, const Inputs& inputs) {
  std::string note;
  for (const core::collective::TunerRule& rule : msccl_rules(settings, inputs))
    note += fmt::format("{}{} is for {} of {} members, of bytes that {} divides{}", note.empty() ? "" : "; ", rule.file,
                        core::collective::name_of(rule.kind), rule.members, rule.given->chunks,
                        bytes_text(rule.min_bytes, rule.max_bytes));
  if (note.empty()) return "";
  return note +
         "; for all else the library chooses, as the column collectives_tuner tells; a step of an algorithm takes the "
         "latency of the library's rings, and what it copies and reduces takes no time";
}

std::string tuner_note(const Settings& settings, const Inputs& inputs) {
  const auto* file = named_input(settings, inputs, kTunerFile);
  if (file == nullptr) return "";
  const import::TunerFile table = import::parse_tuner_file(file->second, file->first);
  std::string note = fmt::format("which lines of {} chose is in the column collectives_tuner", file->first);
  std::map<std::string, std::vector<int>> idle;
  for (const auto& [line, why] : table.idle) idle[why].push_back(line);
  for (const auto& [why, lines] : idle)
    note += fmt::format("; its {} never match{} ({})", lines_text(lines), lines.size() == 1 ? "es" : "", why);
  std::vector<int> lines;
  for (const core::collective::TunerRule& rule : table.rules)
    if (rule.channels > 0) lines.push_back(rule.line);
  if (!lines.empty() && settings.text("collectives.protocol") == "calibrated")
    note += fmt::format("; the channels of its {} are not heeded: protocol calibrated has those that were measured",
                        lines_text(lines));
  return note;
}

std::shared_ptr<const core::workload::WrittenSchedule> written_schedule(const Settings& settings,
                                                                        const Inputs& inputs) {
  const auto path = settings.find(kScheduleFile);
  if (path == settings.end() || std::get<std::string>(path->second).empty()) return nullptr;
  const auto text = inputs.find(std::get<std::string>(path->second));
  MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", std::get<std::string>(path->second));
  return std::make_shared<const core::workload::WrittenSchedule>(import::parse_schedule(text->second, text->first));
}

std::shared_ptr<const core::compute::MeasuredTimes> measured_times(const Settings& settings, const Inputs& inputs) {
  const std::string path = kernel_table_of(settings).measured_kernels;
  if (path.empty()) return nullptr;
  const auto text = inputs.find(path);
  MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
  return std::make_shared<const core::compute::MeasuredTimes>(import::parse_measured_kernels(text->second, path));
}

}  // namespace manyworlds::experiments

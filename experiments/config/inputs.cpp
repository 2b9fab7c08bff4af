#include "experiments/config/inputs.hpp"

#include <fmt/ranges.h>

#include <map>

#include "core/collective/algorithms/registry.hpp"
#include "core/compute/measured.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/build/measurement_coverage.hpp"
#include "core/workload/layer/kernel_costs.hpp"
#include "experiments/clusters/fabric_file.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/edits/edit.hpp"
#include "experiments/import/document_lengths.hpp"
#include "experiments/import/measured_routing.hpp"
#include "experiments/import/schedule_file.hpp"
#include "experiments/import/topology.hpp"
#include "experiments/kernels/measured_kernels.hpp"
#include "experiments/msccl/given_algorithms.hpp"
#include "experiments/nccl/tuner_file.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments {
namespace {

constexpr const char* kMeasuredKernels = "cluster.gpu.measured_kernels";
constexpr const char* kMeasuredRouting = "routing.file";
constexpr const char* kMeasuredDocuments = "documents.file";
constexpr const char* kFabric = "cluster.fabric";
constexpr const char* kScheduleFile = "strategy.schedule_file";
constexpr const char* kTunerFile = "collectives.tuner_file";
constexpr const char* kMscclFiles = "collectives.msccl_files";
constexpr const char* kMeasuredOnly = "cluster.gpu.measured_only";

/// A section that has components, and where it is.
using ChoiceSection = std::pair<const Section*, std::string>;

/// Keys of all options that name files but those of components, and the sections of these.
struct FileKeys {
  std::vector<std::string> plain;
  std::vector<ChoiceSection> choices;
};

void collect(const Section& section, const std::string& path, FileKeys& to) {
  for (const core::OptionInfo& info : section.options)
    if (is_file(info)) to.plain.push_back(path + info.name);
  if (!section.choices.empty()) to.choices.emplace_back(&section, path);
  for (const Section& child : section.subsections) collect(child, path + child.name + ".", to);
}

const FileKeys& file_keys() {
  static const FileKeys all = [] {
    FileKeys keys;
    collect(config_schema(), "", keys);
    return keys;
  }();
  return all;
}

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

/// Returns the paths of a setting that names several files, as MSCCL_XML_FILES does.
std::vector<std::string> paths_in(std::string_view text) {
  std::vector<std::string> paths;
  for (const std::string_view path : import::words_of(text, ":")) paths.emplace_back(path);
  return paths;
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

KernelTable table_of(const Settings& settings) {
  KernelTable result;
  result.measured_kernels = settings.text(kMeasuredKernels);
  if (const core::OptionValue* only = settings.value(kMeasuredOnly)) result.measured_only = std::get<bool>(*only);
  return result;
}

}  // namespace

std::vector<NamedFile> named_files(const Settings& settings) {
  std::vector<NamedFile> files;
  for (const std::string& key : file_keys().plain) {
    const core::OptionValue* value = settings.value(key);
    if (value == nullptr) continue;
    const std::string& path = std::get<std::string>(*value);
    if (key != kMscclFiles)
      files.push_back({key, path, false});
    else
      for (std::string& one : paths_in(path)) files.push_back({key, std::move(one), false});
  }
  for (const auto& [section, path] : file_keys().choices) {
    const auto& chosen = std::get<std::string>(settings.at(path.substr(0, path.size() - 1)));
    for (const core::OptionInfo& info : find_choice(*section, chosen)->options)
      if (is_file(info)) files.push_back({path + info.name, settings.text(path + info.name), true});
  }
  return files;
}

void check_file(const NamedFile& file, const std::string& text) {
  if (file.key.ends_with("gpu.measured_kernels"))
    import::parse_measured_kernels(text, file.path);
  else if (file.key == kMeasuredRouting)
    import::parse_measured_routing(text, file.path);
  else if (file.key == kMeasuredDocuments)
    import::parse_document_lengths(text, file.path);
  else if (file.key == kScheduleFile)
    import::parse_schedule(text, file.path);
  else if (file.key == kTunerFile)
    import::parse_tuner_file(text, file.path);
  else if (file.key == kMscclFiles)
    msccl::rule_of(text, file.path);
  else if (file.key == kProgramFile)
    programs::parse_program_file(text, file.path);
  else if (file.key == kProgramEdits)
    edits::parse_edits(text, file.path);
  else if (file.key == kFabric || clusters::has_fabric(text))
    clusters::parse_fabric_file(text, file.path);
  else
    import::parse_topology(text, file.path);
}

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
  const std::string path = table_of(settings).measured_kernels;
  if (path.empty()) return nullptr;
  const auto text = inputs.find(path);
  MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
  return std::make_shared<const core::compute::MeasuredTimes>(import::parse_measured_kernels(text->second, path));
}

std::vector<std::string> unmeasured_kernels(const Settings& settings, const Inputs& inputs) {
  std::vector<std::string> missing;
  if (!table_of(settings).measured_only) return missing;
  core::step::Configuration configuration = config_of(settings, std::make_shared<const Inputs>(inputs)).configuration;
  const auto peak =
      static_cast<double>(core::memory::peak(configuration.model, configuration.strategy, configuration.gpu).total());
  if (peak > configuration.gpu.memory_gib * static_cast<double>(1 << 30))
    return missing;                              // out of memory, so it will not run
  if (configuration.is_mixed()) return missing;  // refused by a validity rule
  configuration.gpu.measured = measured_times(settings, inputs);
  for (const core::compute::Kernel& kernel :
       core::workload::measurement_coverage(configuration.model, configuration.strategy, configuration.gpu).modelled)
    missing.push_back(core::compute::describe(core::compute::measurement_key(kernel)));
  return missing;
}

}  // namespace manyworlds::experiments

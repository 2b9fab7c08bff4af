#include "experiments/config/inputs.hpp"

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
#include "experiments/key_contents/named_tables.hpp"
#include "experiments/msccl/given_algorithms.hpp"
#include "experiments/nccl/tuner_file.hpp"
#include "experiments/programs/program_file.hpp"

namespace manyworlds::experiments {
namespace {

constexpr const char* kMeasuredRouting = "routing.file";
constexpr const char* kMeasuredDocuments = "documents.file";
constexpr const char* kFabric = "cluster.fabric";

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

std::vector<std::string> unmeasured_kernels(const Settings& settings, const Inputs& inputs) {
  std::vector<std::string> missing;
  if (!kernel_table_of(settings).measured_only) return missing;
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

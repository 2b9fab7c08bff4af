// Files that settings name: their paths, and checks of their contents.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

struct NamedFile {
  std::string key;   // key of the setting
  std::string path;  // empty: not given
  bool required = false;
};
/// Returns the files that options of the chosen components name, which are required, and those of all other options.
std::vector<NamedFile> named_files(const Settings& settings);

/// Throws InputError with the file's path and line unless `text` is valid for the setting.
void check_file(const NamedFile& file, const std::string& text);

/// Measured kernels of a GPU.
struct KernelTable {
  std::string measured_kernels;  // path of a file; empty: none
  bool measured_only = false;
};
const core::OptionTable<KernelTable>& kernel_table_options();

/// A pipeline schedule that is read from a file.
struct ScheduleFile {
  std::string schedule_file;  // path of a file; empty: none
};
const core::OptionTable<ScheduleFile>& schedule_file_options();

/// Returns the schedule in that file; null if no file is named. The file must be among `inputs`.
std::shared_ptr<const core::workload::WrittenSchedule> written_schedule(const Settings& settings, const Inputs& inputs);

/// What chooses algorithms of collectives before the library does.
struct TunerTable {
  std::string tuner_file;   // path of a file; empty: none
  std::string msccl_files;  // paths of files, with colons between them
};
const core::OptionTable<TunerTable>& tuner_table_options();

/// Returns the rules of these files, those of MSCCL first; none if no file is named. The files must be among `inputs`.
std::vector<core::collective::TunerRule> tuner_rules(const Settings& settings, const Inputs& inputs);

/// Returns a note about what the algorithms of MSCCL are for, and what of them is left out; empty without one. The
/// files must be among `inputs`.
std::string msccl_note(const Settings& settings, const Inputs& inputs);

/// Returns a note about what of the table has no effect, whatever the collectives are, and where its effect is told;
/// empty without one. The file must be among `inputs`.
std::string tuner_note(const Settings& settings, const Inputs& inputs);

/// Returns the table of measured times that the GPU's settings name; null if none. The file must be among `inputs`.
std::shared_ptr<const core::compute::MeasuredTimes> measured_times(const Settings& settings, const Inputs& inputs);

/// Returns descriptions of the kernels that the experiment runs, that measured_only requires to be measured and that
/// its table lacks. Empty without measured_only, and if the experiment does not fit into memory.
std::vector<std::string> unmeasured_kernels(const Settings& settings, const Inputs& inputs);

}  // namespace manyworlds::experiments

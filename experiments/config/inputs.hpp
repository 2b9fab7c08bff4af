// The files that settings name: where, and what each of them has to be.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/world.hpp"

namespace manyworlds::experiments {

struct NamedFile {
  std::string key;   // of the setting
  std::string path;  // empty: none is given
  bool needed = false;
};
/// Those of the chosen topology, which needs them, and of every section, which may do without.
std::vector<NamedFile> named_files(const Settings& settings);

/// Throws InputError, with the file's path and line, unless `text` is what the setting wants.
void check_file(const NamedFile& file, const std::string& text);

/// Kernels that are measured, of a GPU.
struct KernelTable {
  std::string measured_kernels;  // a file's path; empty: none
  bool measured_only = false;
};
const core::OptionTable<KernelTable>& kernel_table_options();

/// A pipeline schedule that is read from a file.
struct ScheduleFile {
  std::string schedule_file;  // a path; empty: none
};
const core::OptionTable<ScheduleFile>& schedule_file_options();

/// What that file holds; null where none is named. It must be among `inputs`.
std::shared_ptr<const core::workload::WrittenSchedule> written_schedule(const Settings& settings, const Inputs& inputs);

/// The table that the GPU's settings name; null where they name none. It must be among `inputs`.
std::shared_ptr<const core::compute::MeasuredTimes> measured_times(const Settings& settings, const Inputs& inputs);

/// Kernels that the world with these settings runs on its own memory, that measured_only asks to be measured, and that
/// its table lacks, in words. Nothing without measured_only.
std::vector<std::string> unmeasured_kernels(const Settings& settings, const Inputs& inputs);

}  // namespace manyworlds::experiments

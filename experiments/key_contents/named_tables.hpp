// Tables of files that keys name: measured kernels of a GPU, a pipeline schedule, and what chooses algorithms of
// collectives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/collective/library/tuner_rules.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/schedule/written_schedule.hpp"
#include "experiments/key_contents/programs.hpp"

namespace manyworlds::experiments {

inline constexpr const char* kScheduleFile = "strategy.schedule_file";
inline constexpr const char* kTunerFile = "collectives.tuner_file";
inline constexpr const char* kMscclFiles = "collectives.msccl_files";

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

/// Returns the paths of a setting that names several files, as MSCCL_XML_FILES does.
std::vector<std::string> paths_in(std::string_view text);

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

/// Returns the table that the settings of `cluster.gpu` name.
KernelTable kernel_table_of(const Settings& settings);

}  // namespace manyworlds::experiments

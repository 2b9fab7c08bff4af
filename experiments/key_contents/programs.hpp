// Programs that an experiment names in place of a model and a strategy.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/options.hpp"
#include "core/compute/gpu.hpp"
#include "core/workload/build/given_programs.hpp"
#include "experiments/keys/settings_map.hpp"
#include "experiments/msccl/given_algorithms.hpp"
#include "experiments/programs/timed_programs.hpp"

namespace manyworlds::experiments {

/// Programs, timed on the GPUs of a cluster. Equal ones are read and timed once; may be used by several threads.
class ProgramCache {
 public:
  /// Programs of a file, `replicas` times, with the edits of another one; each file has its path and its text.
  struct Source {
    std::string path, edits_path;
    std::int64_t replicas = 1;
    const std::string *text = nullptr, *edits_text = nullptr;
  };
  /// `measured_on` is the GPU of their times, null if that is not known. Throws InputError as parse_program_file(),
  /// add_replicas(), make_edits() and timed_on() do.
  std::shared_ptr<const programs::TimedPrograms> get(const Source& source, const programs::ClusterGpus& gpus,
                                                     const core::compute::Gpu* measured_on);

  /// Returns the file's notes and what replicas and edits did to the programs, a line each; nothing of those that get()
  /// was not asked for.
  std::vector<std::string> account(const Source& source) const;

  /// Returns whether none were asked for so far.
  bool is_empty() const;

 private:
  struct Changed {
    programs::StreamPrograms programs;
    std::vector<std::string> account;
  };

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const programs::StreamPrograms>> read_;  // by path
  std::map<std::string, std::shared_ptr<const Changed>> changed_;                // by paths and replicas
  std::map<std::string, std::shared_ptr<const programs::TimedPrograms>> timed_;  // by these and the GPUs
};

/// Contents of the files that a sweep names, by path, and what was read from them. They are part of the sweep, so it
/// can run where the files are not.
struct Inputs : std::map<std::string, std::string> {
  using std::map<std::string, std::string>::map;
  std::shared_ptr<ProgramCache> programs = std::make_shared<ProgramCache>();
  std::shared_ptr<msccl::RuleCache> algorithms = std::make_shared<msccl::RuleCache>();
};

struct ProgramChoice {
  std::string file;           // path; empty: a model and a strategy
  std::int64_t replicas = 1;  // of all ranks
  std::string edits;          // path; empty: none
};
const core::OptionTable<ProgramChoice>& program_options();

inline constexpr const char* kProgramFile = "program.file";
inline constexpr const char* kProgramEdits = "program.edits";
inline constexpr const char* kProgramReplicas = "program.replicas";
inline constexpr const char* kMeasuredOn = "program.measured_on";

/// Returns whether an experiment's programs are given.
bool has_programs(const Settings& settings);

/// Returns the programs that the settings name, timed on `gpus`; null if they name none. The files must be
/// among `inputs`.
std::shared_ptr<const programs::TimedPrograms> timed_programs(const Settings& settings, const Inputs& inputs,
                                                              const programs::ClusterGpus& gpus);

/// Returns the notes of the programs that the settings name and timed_programs() has read, and what replicas and edits
/// did to them, for people; nothing if there are none.
std::vector<std::string> program_notes(const Settings& settings, const Inputs& inputs);

}  // namespace manyworlds::experiments

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

/// Returns descriptions of the kernels that the experiment runs, that measured_only requires to be measured and that
/// its table lacks. Empty without measured_only, and if the experiment does not fit into memory.
std::vector<std::string> unmeasured_kernels(const Settings& settings, const Inputs& inputs);

}  // namespace manyworlds::experiments

// Models of configuration files, which stand beside the catalog's: each file is read once.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "experiments/catalog/catalog_entry.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// The models of files that were asked for, as catalog entries. May be used by several threads.
class ModelFiles {
 public:
  /// Returns the model's name and entry. Throws InputError with the file's line and key.
  const std::pair<const std::string, CatalogEntry>& read(const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<const std::string, CatalogEntry>> entries_;  // by path
};

/// Returns the path if a model's name is that of a configuration file or its folder, relative to the document in which
/// it stands or, on the command line, to the working folder; otherwise empty. Throws InputError at `at` if a name that
/// can only be a path is none.
std::string model_file(const std::string& name, const import::Node& at);

}  // namespace manyworlds::experiments

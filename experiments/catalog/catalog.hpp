// Catalog of GPUs, communication libraries, models, clusters and software stacks: compiled in from catalog/*/*.yaml,
// plus a folder or a file of the user's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/gpu.hpp"
#include "experiments/catalog/catalog_entry.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

class ModelFiles;

/// The data files that CMake compiled in, sorted by kind and name.
struct CatalogFile {
  const char* kind;  // "gpus", "libraries", "models", "clusters", "stacks"
  const char* name;
  const char* text;
};
const std::vector<CatalogFile>& compiled_catalog();

/// Returns a GPU with the values of its entry.
core::compute::Gpu gpu_of(const CatalogEntry& entry);

/// Parses one entry's data file. Throws InputError with file and line.
CatalogEntry read_catalog_entry(const std::string& kind, const std::string& text, const std::string& file);

class Catalog {
 public:
  using Entries = std::map<std::string, CatalogEntry>;

  /// Loads the compiled catalog and what the user adds, if `path` is not empty: a folder with
  /// {gpus,libraries,models,clusters,stacks}/*.yaml, or one YAML file with mappings of these names to entries.
  explicit Catalog(const std::string& path = {});

  /// Adds the entries of a cluster file, whose only cluster is also called `name` then, unless it has been added.
  /// Throws InputError if the file is none.
  void add_cluster_file(const std::string& name, const std::string& path);

  const Entries& entries(const std::string& kind) const;
  /// Returns an entry by name or alias; of models also by the path of a Hugging Face configuration, or its folder,
  /// relative to the file of `at`. Throws InputError at `at`, with the nearest name, if there is none.
  const CatalogEntry& find(const std::string& kind, const std::string& name, const import::Node& at) const {
    return find_named(kind, name, at).second;
  }
  /// Returns the entry with its catalog name, which differs from `name` if that is an alias.
  const Entries::value_type& find_named(const std::string& kind, const std::string& name, const import::Node& at) const;

 private:
  void add_file(const std::string& path, const std::string& named);
  void finish();
  void add_folder(const std::string& folder);
  void check_gpus() const;
  void copy_constants(const std::string& kind, const std::string& name, CatalogEntry& entry);
  std::optional<GuessedRange> measured_span(const std::string& kind, const std::string& key) const;

  std::map<std::string, Entries> kinds_;
  std::shared_ptr<ModelFiles> model_files_;  // shared by copies
};

}  // namespace manyworlds::experiments

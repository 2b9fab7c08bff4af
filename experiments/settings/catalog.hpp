// GPUs, models and clusters as data: compiled in from catalog/*/*.yaml, and a folder of the user's own beside them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "experiments/text/yaml.hpp"

namespace manyworlds::experiments {

/// The data files that CMake compiled in, sorted by kind and name.
struct CatalogFile {
  const char* kind;  // "gpus", "models", "clusters", "stacks"
  const char* name;
  const char* text;
};
const std::vector<CatalogFile>& compiled_catalog();

struct Figure {
  core::OptionValue value;
  std::string source;
  std::string certainty;  // read, known, fitted or guess
};

struct CatalogEntry {
  std::string help;
  /// A GPU may take fitted figures that it lacks from another: the same chip, or the nearest in kind that was measured.
  std::string constants_of;
  bool same_chip = false;
  std::vector<std::string> also_called;   // names that people have for it, such as that of its files elsewhere
  std::map<std::string, Figure> figures;  // by option; a cluster also has "gpu", the name of one
  std::map<std::string, Figure> recipe;   // of a stack: options of the strategy that its own recipes set
  std::vector<std::string> schedules;     // of a stack: those of the pipeline that it offers; empty: nobody said
};

/// One data file of a kind of the catalog. Throws InputError with file and line.
CatalogEntry read_catalog_entry(const std::string& kind, const std::string& text, const std::string& file);

class Catalog {
 public:
  using Entries = std::map<std::string, CatalogEntry>;

  /// The compiled catalog and, where `folder` is not empty, its {gpus,models,clusters,stacks}/*.yaml beside it.
  explicit Catalog(const std::string& folder = {});

  const Entries& of(const std::string& kind) const;
  /// Throws InputError at `at`, with the nearest name, where there is none.
  const CatalogEntry& find(const std::string& kind, const std::string& name, const import::Node& at) const {
    return find_named(kind, name, at).second;
  }
  /// With the name that it has here, where `name` is another of its names.
  const Entries::value_type& find_named(const std::string& kind, const std::string& name, const import::Node& at) const;

 private:
  void add(const std::string& kind, const std::string& name, const std::string& text, const std::string& file);
  void add_folder(const std::string& folder);
  void check_gpus() const;
  void lend_constants();

  std::map<std::string, Entries> kinds_;
};

}  // namespace manyworlds::experiments

// Catalog of GPUs, communication libraries, models, clusters and software stacks: compiled in from catalog/*/*.yaml,
// plus a folder or a file of the user's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/compute/gpu.hpp"
#include "experiments/text/yaml.hpp"

namespace manyworlds::experiments {

/// The data files that CMake compiled in, sorted by kind and name.
struct CatalogFile {
  const char* kind;  // "gpus", "libraries", "models", "clusters", "stacks"
  const char* name;
  const char* text;
};
const std::vector<CatalogFile>& compiled_catalog();

/// What a guessed number may be, the value itself included.
struct GuessedRange {
  double low = 0, high = 0;
};

struct SourcedValue {
  core::OptionValue value;
  std::string source;
  std::string certainty;              // read, known, fitted or guess
  std::optional<GuessedRange> range;  // of a guess; none: nobody says how far off it may be
};
/// Returns the number that an option holds; nothing for texts and switches.
std::optional<double> number_of(const core::OptionValue& value);
/// Returns the value as text, with its range if it has one: "1800 (1555 to 2039)".
std::string figure_text(const core::OptionValue& value, const std::optional<GuessedRange>& range);

struct CatalogEntry {
  std::string help;
  /// The GPU or the stack from which another takes fitted constants that it lacks: the same chip, or the most similar
  /// one measured.
  std::string constants_of;
  bool same_chip = false;
  bool has_constants = false;                  // has been given those
  std::vector<std::string> also_called;        // aliases, such as the name of its published files
  std::map<std::string, SourcedValue> values;  // by option; a cluster also has "gpu", the name of its GPU
  std::map<std::string, SourcedValue> recipe;  // of a stack: strategy options that its own recipes set
  std::vector<std::string> schedules;          // of a stack: pipeline schedules that it offers; empty: not known
  std::string library;                         // of a stack: version of the communication library of its time
  std::vector<std::string> versions;           // of a library: the versions that its constants are of
  std::vector<std::string> gpus;               // of a library: the GPUs on which they were measured
};

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

  const Entries& entries(const std::string& kind) const;
  /// Returns an entry by name or alias. Throws InputError at `at`, with the nearest name, if there is none.
  const CatalogEntry& find(const std::string& kind, const std::string& name, const import::Node& at) const {
    return find_named(kind, name, at).second;
  }
  /// Returns the entry with its catalog name, which differs from `name` if that is an alias.
  const Entries::value_type& find_named(const std::string& kind, const std::string& name, const import::Node& at) const;

 private:
  void add(const std::string& kind, const std::string& name, const import::Node& entry);
  void add_file(const std::string& path);
  void add_folder(const std::string& folder);
  void check_gpus() const;
  void copy_constants(const std::string& kind, const std::string& name, CatalogEntry& entry);
  std::optional<GuessedRange> measured_span(const std::string& kind, const std::string& key) const;

  std::map<std::string, Entries> kinds_;
};

}  // namespace manyworlds::experiments

// Settings of a phase before it is an experiment: what a document and --set say of them, where, and what follows from
// the phase itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/keys/settings_map.hpp"
#include "experiments/phase_files/phases_file.hpp"

namespace manyworlds::experiments::phases {

/// Returns the integer that a key has; `otherwise` if it is not there.
std::int64_t integer_of(const Settings& settings, const std::string& key, std::int64_t otherwise);

/// Returns the same mapping with keys inside sections as dotted keys, so that it changes these alone: `model:
/// {sequence: 4096}` is `model.sequence: 4096`. Sections that name an entry of the catalog or a component are left as
/// they are.
import::Node with_dotted_keys(const import::Node& mapping);

/// Returns what --set says as a mapping of dotted keys, without `assume`. Throws InputError for what is no key=value.
import::Node overrides_node(const std::vector<std::string>& overrides);

/// What a user wrote of a phase: `base` of all phases, what the phase changes of it, and --set, each over what is
/// before it.
class WrittenSettings {
 public:
  /// `change` is a mapping as `base`, `set` is of overrides_node(). Throws InputError for keys that do not exist.
  WrittenSettings(const PhasesFile& file, const import::Node& change, const import::Node& set, const Catalog& catalog);

  /// Returns mappings that are assigned over `base`, one after the other.
  const std::vector<import::Node>& changes() const { return changes_; }
  /// Returns all settings with defaults; what is missing is not told.
  const Settings& settings() const { return settings_; }

  /// Returns whether a key is given, alone or inside a section.
  bool say(const std::string& key) const;
  /// The same in what the phase itself changes.
  bool change_says(const std::string& key) const { return places_[kChange].contains(key); }

  /// The places of keys, without content: of `base`, of the phase's changes and of --set.
  using Places = std::map<std::string, import::Node>;
  const std::vector<Places>& places() const { return places_; }
  /// Returns where one of these keys is given: by --set, else by the phase, else by `base`; `otherwise` if by none.
  const import::Node& place_of(const std::vector<std::string>& keys, const import::Node& otherwise) const;

 private:
  static constexpr std::size_t kChange = 1;

  std::vector<import::Node> changes_;
  std::vector<Places> places_;
  Settings settings_;
};

/// Settings that a phase decides: a mapping of dotted keys, all at one place, and from what each of them follows.
class DerivedSettings {
 public:
  explicit DerivedSettings(const import::Node& place);
  /// `origin` is said behind "follows from".
  DerivedSettings& set(const std::string& key, const std::string& value, const std::string& origin);
  DerivedSettings& set(const std::string& key, std::int64_t value, const std::string& origin) {
    return set(key, std::to_string(value), origin);
  }

  const import::Node& node() const { return node_; }
  bool empty() const { return node_.entries.empty(); }
  /// Returns the origin of a key; null if it is not among these.
  const std::string* origin_of(const std::string& key) const;

 private:
  import::Node node_;
  std::map<std::string, std::string> origins_;
};

}  // namespace manyworlds::experiments::phases

// Settings of a phase before it is an experiment, and changes of them as a document has them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/config/settings_map.hpp"
#include "experiments/phases/phases_file.hpp"

namespace manyworlds::experiments::phases {

/// Returns the same mapping with keys inside sections as dotted keys, so that it changes these alone: `model:
/// {sequence: 4096}` is `model.sequence: 4096`. Sections that name an entry of the catalog or a component are left as
/// they are.
import::Node with_dotted_keys(const import::Node& mapping);

/// Returns the keys that a mapping of with_dotted_keys() sets, as Settings has them; sections that are set as a whole
/// are their own key. Throws InputError for keys that do not exist.
std::set<std::string> keys_of(const import::Node& mapping);

/// A mapping that grows by dotted keys, all at one place.
class Change {
 public:
  explicit Change(const import::Node& place);
  Change& set(const std::string& key, const std::string& value);
  Change& set(const std::string& key, std::int64_t value) { return set(key, std::to_string(value)); }
  const import::Node& node() const { return node_; }

 private:
  import::Node node_;
};

/// Returns what --set says as a mapping of dotted keys, without `assume`. Throws InputError for what is no key=value.
import::Node overrides_node(const std::vector<std::string>& overrides);

/// Returns what `base` and `changes` say, with defaults; what is missing is not told.
Settings settings_of(const PhasesFile& file, const std::vector<import::Node>& changes, const Catalog& catalog);

}  // namespace manyworlds::experiments::phases

// Cluster files that a document names in the place of a catalog's cluster, and lists of their hosts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/keys/settings_map.hpp"

namespace manyworlds::experiments {

/// Returns whether the name of a cluster is that of a file: it ends in .yaml or .yml.
bool is_cluster_file(const std::string& name);

/// A catalog, with the cluster files added that the text of a document or an override names.
class ExtendedCatalog {
 public:
  /// A relative path starts from the folder of `file`. Throws InputError for a file that is none.
  ExtendedCatalog(const Catalog& catalog, const std::string& text, const std::string& file,
                  const std::vector<std::string>& overrides);
  const Catalog& get() const { return own_ ? *own_ : catalog_; }

 private:
  const Catalog& catalog_;
  std::optional<Catalog> own_;  // a copy, if files are added
};

/// Sets the number of nodes to that of cluster.node_list, if there is one. Throws InputError if it is no list.
void count_listed_nodes(Settings& settings);

}  // namespace manyworlds::experiments

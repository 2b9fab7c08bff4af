// Sweeps whose documents are made of others, as those of `manyworlds phases` are: nodes know where they stand in these.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

struct ComposedDocument {
  std::string text;                          // of the document that it was made of, verbatim
  import::Node root;                         // what the file of a sweep would have
  std::vector<import::Node> changes;         // mappings as `base`, each of which is assigned over what is before it
  std::map<std::string, std::string> files;  // texts of files that settings name, by path, which are not on the disk
};

/// Returns its sweep as parse_sweep() does; `file` is the name of the other document, whose cluster files are in
/// `catalog`.
Sweep compose_sweep(const ComposedDocument& document, const std::string& file,
                    const std::vector<std::string>& overrides, const Catalog& catalog, const ReadOptions& options = {});

}  // namespace manyworlds::experiments

// The files of one cluster, told apart by their content: one fabric, and the inside of its nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/clusters/fabric.hpp"
#include "experiments/discovery/node_inside.hpp"

namespace manyworlds::experiments::clusters {

struct ClusterFiles {
  std::optional<Fabric> fabric;
  std::string fabric_file;  // its name
  std::optional<NodeInside> node;
  std::string node_file;
  std::int64_t gpus_per_host = 0;  // 0: the files do not tell
};

/// Reads files, which may be compressed by gzip. Throws InputError, with file and line, for one that is damaged or of
/// no known kind, and for two of one kind.
ClusterFiles read_cluster_files(const std::vector<std::string>& paths);

/// Reads one text as whatever it is; `name` is the file name in messages.
void read_cluster_text(ClusterFiles& files, const std::string& text, const std::string& name);

}  // namespace manyworlds::experiments::clusters

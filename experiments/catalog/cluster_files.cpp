#include "experiments/catalog/cluster_files.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/clusters/node_list.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {
namespace {

using import::Entry;
using import::Node;

constexpr const char *kNodeList = "cluster.node_list", *kNodes = "cluster.nodes";

/// Collects the scalars below `node` that are names of cluster files.
void collect_files(const Node& node, bool names_cluster, std::vector<std::string>& to) {
  if (node.kind == Node::Kind::scalar && names_cluster && is_cluster_file(node.text)) to.push_back(node.text);
  for (const Node& item : node.items) collect_files(item, names_cluster, to);
  for (const Entry& entry : node.entries)
    collect_files(entry.value, entry.key == "cluster" || (names_cluster && entry.key == "like"), to);
}

bool mentions_yaml(const std::string& text) {
  return text.find(".yaml") != std::string::npos || text.find(".yml") != std::string::npos;
}

std::vector<std::string> named_cluster_files(const std::string& text, const std::string& file,
                                             const std::vector<std::string>& overrides) {
  std::vector<std::string> files;
  if (mentions_yaml(text)) collect_files(import::parse_yaml(text, file), false, files);
  for (const std::string& one : overrides)
    if (one.starts_with("cluster=") && mentions_yaml(one))
      collect_files(import::parse_yaml(one.substr(one.find('=') + 1), "--set " + one), true, files);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

bool is_cluster_file(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

ExtendedCatalog::ExtendedCatalog(const Catalog& catalog, const std::string& text, const std::string& file,
                                 const std::vector<std::string>& overrides)
    : catalog_(catalog) {
  for (const std::string& name : named_cluster_files(text, file, overrides)) {
    if (!own_) own_ = catalog;
    own_->add_cluster_file(name, (std::filesystem::path(file).parent_path() / name).string());
  }
}

void count_listed_nodes(Settings& settings) {
  const std::string list = settings.text(kNodeList);
  if (list.empty()) return;
  settings[kNodes] = static_cast<std::int64_t>(clusters::expand_node_list(list).size());
}

}  // namespace manyworlds::experiments

#include "experiments/discovery/cluster_files.hpp"

#include "core/base/error.hpp"
#include "experiments/discovery/ibnetdiscover.hpp"
#include "experiments/discovery/infragraph.hpp"
#include "experiments/discovery/netq.hpp"
#include "experiments/discovery/slurm_topology.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;

void set_fabric(ClusterFiles& files, Fabric fabric, const std::string& name) {
  if (files.fabric) throw InputError(fmt::format("is a second fabric beside {}; give one", files.fabric_file), name, 1);
  files.fabric = std::move(fabric);
  files.fabric_file = name;
}

void set_node(ClusterFiles& files, NodeInside node, const std::string& name) {
  if (files.node) throw InputError(fmt::format("is a second node beside {}; give one", files.node_file), name, 1);
  files.gpus_per_host = node.gpus;
  files.node = std::move(node);
  files.node_file = name;
}

}  // namespace

void read_cluster_text(ClusterFiles& files, const std::string& text, const std::string& name) {
  if (is_ibnetdiscover(text)) return set_fabric(files, parse_ibnetdiscover(text, name), name);
  if (is_iblinkinfo(text)) return set_fabric(files, parse_iblinkinfo(text, name), name);
  if (is_nccl_topology(text)) return set_node(files, parse_nccl_topology(text, name), name);
  if (is_netq_topology(text)) return set_fabric(files, parse_netq_topology(text, name), name);
  if (is_netq_nodes(text)) return set_node(files, parse_netq_nodes(text, name), name);
  if (is_slurm_topology(text)) return set_fabric(files, parse_slurm_topology(text, name), name);
  if (is_nvidia_smi_matrix(text)) return set_node(files, parse_nvidia_smi_matrix(text, name), name);
  throw InputError(
      "is of no kind that is known: output of ibnetdiscover, iblinkinfo or nvidia-smi topo -m, NCCL's topology XML, "
      "Slurm's topology.conf, NetQ's topology or nodes as JSON, InfraGraph",
      name, 1);
}

ClusterFiles read_cluster_files(const std::vector<std::string>& paths) {
  ClusterFiles files;
  std::vector<std::pair<std::string, std::string>> infragraph;
  for (const std::string& path : paths) {
    std::string text = import::read_table_text(path);
    if (is_infragraph(text))
      infragraph.emplace_back(path, std::move(text));
    else
      read_cluster_text(files, text, path);
  }
  if (infragraph.empty()) return files;
  InfraGraph graph = parse_infragraph(infragraph);
  set_fabric(files, std::move(graph.fabric), infragraph.front().first);
  if (files.gpus_per_host == 0) files.gpus_per_host = graph.gpus_per_host;
  return files;
}

}  // namespace manyworlds::experiments::clusters

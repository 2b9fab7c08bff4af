// A graph from a file: the FabricSpec contains the graph that was read; this file checks it against the cluster.
#include "topologies/parts/nodes.hpp"

namespace manyworlds::topologies {

namespace {

struct FromFile {
  std::string file;
};

const core::OptionTable<FromFile>& options() {
  static const core::OptionTable<FromFile> table{
      core::option("file", &FromFile::file,
                   "cluster file with a fabric, or SimAI topology; a relative path starts from the sweep's folder. "
                   "Rates and latencies are the file's, "
                   "and those of the cluster and its GPU are not used",
                   {}, "file"),
  };
  return table;
}

/// Returns the sum of the rates of a GPU's network links, in bits per second.
std::int64_t nic_rate(const core::network::Graph& graph, std::uint32_t gpu) {
  std::int64_t rate = 0;
  for (const core::network::Link& link : graph.links)
    if (link.from == gpu && link.kind == core::network::LinkKind::network) rate += link.bits_per_second;
  return rate;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const FromFile from = options().make(values);
  if (!spec.loaded_graph) throw core::InputError("topology 'graph' needs a file: give {graph: {file: PATH}}");
  const LoadedGraph& loaded_graph = *spec.loaded_graph;
  if (loaded_graph.graph.gpus != spec.nodes * spec.gpus_per_node || loaded_graph.gpus_per_node != spec.gpus_per_node)
    throw core::InputError(fmt::format(
        "{} has {} GPUs, {} per node, but the cluster has {}, {} per node; set cluster.nodes to {} and "
        "cluster.gpus_per_node to {}",
        from.file, loaded_graph.graph.gpus, loaded_graph.gpus_per_node, spec.nodes * spec.gpus_per_node,
        spec.gpus_per_node, loaded_graph.graph.gpus / loaded_graph.gpus_per_node, loaded_graph.gpus_per_node));
  const std::int64_t rate = nic_rate(loaded_graph.graph, 0);
  if (spec.nic_bits_per_second > 0 && rate > 0 && rate != spec.nic_bits_per_second)
    throw core::InputError(
        fmt::format("a GPU of {} has {} Gb/s of network, but cluster.nic_gbps is {}; omit it, or set the same rate",
                    from.file, static_cast<double>(rate) * 1e-9, static_cast<double>(spec.nic_bits_per_second) * 1e-9));
  return loaded_graph.graph;
}

}  // namespace

Topology graph() {
  return {"graph",
          "a graph from a file: the fabric of a cluster file (`manyworlds cluster`), or a topology of SimAI",
          options().infos(),
          build,
          {.from_file = true}};
}

}  // namespace manyworlds::topologies

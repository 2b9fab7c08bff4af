// A graph from a file: whoever reads the file hands the graph over with the site; here it is held against the cluster.
#include "topologies/parts/nodes.hpp"

namespace manyworlds::topologies {

namespace {

struct FromFile {
  std::string file;
};

const core::OptionTable<FromFile>& options() {
  static const core::OptionTable<FromFile> table{
      core::option(
          "file", &FromFile::file,
          "SimAI topology; a relative path starts from the sweep's folder. Rates and latencies are the file's, "
          "and those of the cluster and its GPU are not used",
          {}, "file"),
  };
  return table;
}

std::int64_t nic_rate(const core::network::Graph& graph, std::uint32_t gpu) {
  std::int64_t rate = 0;
  for (const core::network::Link& link : graph.links)
    if (link.from == gpu && link.kind == core::network::LinkKind::network) rate += link.bits_per_second;
  return rate;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  const FromFile from = options().make(values);
  if (!site.given) throw core::InputError("topology 'graph' needs a file: give {graph: {file: PATH}}");
  const GivenGraph& given = *site.given;
  if (given.graph.gpus != site.nodes * site.gpus_per_node || given.gpus_per_node != site.gpus_per_node)
    throw core::InputError(
        fmt::format("{} has {} GPUs, {} to a node, but the cluster {}, {} to a node; cluster.nodes {} "
                    "and cluster.gpus_per_node {} would be right",
                    from.file, given.graph.gpus, given.gpus_per_node, site.nodes * site.gpus_per_node,
                    site.gpus_per_node, given.graph.gpus / given.gpus_per_node, given.gpus_per_node));
  const std::int64_t rate = nic_rate(given.graph, 0);
  if (site.nic_bits_per_second > 0 && rate > 0 && rate != site.nic_bits_per_second)
    throw core::InputError(
        fmt::format("a GPU of {} has {} Gb/s of network, but cluster.nic_gbps is {}; leave it out, or "
                    "make them agree",
                    from.file, static_cast<double>(rate) * 1e-9, static_cast<double>(site.nic_bits_per_second) * 1e-9));
  return given.graph;
}

}  // namespace

Topology graph() {
  return {
      "graph", "a graph from a file, in the form of SimAI's topologies", options().infos(), build, {.from_file = true}};
}

}  // namespace manyworlds::topologies

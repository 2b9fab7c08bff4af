// Alibaba HPN (Qian et al., SIGCOMM 2024): every NIC has two ports of half its rate on the two top-of-rack switches of
// its rail in its segment, one in each of two planes that never meet above; a plane's ToRs all join its aggregation
// switches, and core switches join pods. The defaults are the paper's 400 Gb/s system, spare ports left out.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

constexpr std::int64_t kPlanes = 2;

struct Hpn {
  std::int64_t segment_nodes = 128;
  std::int64_t aggregations = 60;
  std::int64_t pod_segments = 15;
  std::int64_t core_uplinks = 8;
};

const core::OptionTable<Hpn>& options() {
  static const core::OptionTable<Hpn> table{
      core::option("segment_nodes", &Hpn::segment_nodes, "NIC ports of a top-of-rack switch", {1, 4096}),
      core::option("aggregations", &Hpn::aggregations, "aggregation switches of a plane, and uplinks of a ToR",
                   {1, 4096}),
      core::option("pod_segments", &Hpn::pod_segments, "segments of a pod", {1, 4096}),
      core::option("core_uplinks", &Hpn::core_uplinks, "uplinks of an aggregation switch, with several pods",
                   {1, 4096}),
  };
  return table;
}

/// The switches of one plane; `first` is its first ToR, and those of a segment follow each other by rail.
void add_plane(core::network::Graph& graph, const Site& site, const Hpn& given, const Tier& tors, std::int64_t plane) {
  const std::int64_t pod_tors = given.pod_segments * site.gpus_per_node;
  const auto count = static_cast<std::int64_t>(tors.size());
  if (count == 1) return;
  const std::int64_t pods = (count + pod_tors - 1) / pod_tors;
  const Tier aggregations = add_tier(graph, pods * given.aggregations, fmt::format("plane{}_agg", plane));
  for (std::int64_t pod = 0; pod < pods; ++pod)
    join(graph, site, part(tors, pod, pod_tors), part(aggregations, pod, given.aggregations), 1);
  if (pods == 1) return;
  // Core switches [i * core_uplinks, …) of the plane join aggregation switch i of every pod.
  const Tier cores = add_tier(graph, given.aggregations * given.core_uplinks, fmt::format("plane{}_core", plane));
  for (std::size_t i = 0; i < aggregations.size(); ++i)
    join(graph, site, {aggregations[i]},
         part(cores, static_cast<std::int64_t>(i) % given.aggregations, given.core_uplinks), 1);
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  const Hpn given = options().make(values);
  core::network::Graph graph = place_nodes(site);
  if (site.nic_bits_per_second < kPlanes)
    throw core::InputError("hpn splits a NIC's rate over two ports; give a cluster.nic_gbps that can be split");
  const std::int64_t segments = (site.nodes + given.segment_nodes - 1) / given.segment_nodes;
  for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
    const Tier tors = add_tier(graph, segments * site.gpus_per_node, fmt::format("plane{}_tor", plane));
    for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
      const std::int64_t segment = gpu / site.gpus_per_node / given.segment_nodes, rail = gpu % site.gpus_per_node;
      graph.add_cable(gpu, tors[static_cast<std::size_t>(segment * site.gpus_per_node + rail)],
                      core::network::LinkKind::network, site.nic_bits_per_second / kPlanes, site.nic_latency_ps);
    }
    add_plane(graph, site, given, tors, plane);
  }
  return graph;
}

}  // namespace

Topology hpn() {
  return {"hpn",
          "Alibaba HPN: two ports per NIC, two planes, rails of segments",
          options().infos(),
          build,
          {.nic_cables = kPlanes,
           .small = {{"segment_nodes", std::int64_t{2}},
                     {"aggregations", std::int64_t{2}},
                     {"pod_segments", std::int64_t{1}},
                     {"core_uplinks", std::int64_t{2}}}}};
}

}  // namespace manyworlds::topologies

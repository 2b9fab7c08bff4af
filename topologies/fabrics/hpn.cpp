// Alibaba HPN (Qian et al., SIGCOMM 2024): every NIC has two ports of half its rate, on the two top-of-rack switches
// (ToRs) of its rail in its segment, one in each of two planes that are not connected above; all ToRs of a plane and
// pod are connected to its aggregation switches, and core switches connect pods. The defaults are the paper's 400 Gb/s
// system without spare ports.
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

/// Adds the aggregation and core switches of one plane. `tors` has its ToRs: those of a segment are consecutive, by
/// rail.
void add_plane(core::network::Graph& graph, const FabricSpec& spec, const Hpn& parameters, const Tier& tors,
               std::int64_t plane) {
  const std::int64_t pod_tors = parameters.pod_segments * spec.gpus_per_node;
  const auto count = static_cast<std::int64_t>(tors.size());
  if (count == 1) return;
  const std::int64_t pods = (count + pod_tors - 1) / pod_tors;
  const Tier aggregations = add_tier(graph, pods * parameters.aggregations, fmt::format("plane{}_agg", plane));
  for (std::int64_t pod = 0; pod < pods; ++pod)
    connect_tiers(graph, spec, subtier(tors, pod, pod_tors), subtier(aggregations, pod, parameters.aggregations), 1);
  if (pods == 1) return;
  // Core switches [i * core_uplinks, (i + 1) * core_uplinks) of the plane are connected to aggregation switch i of
  // every pod.
  const Tier cores =
      add_tier(graph, parameters.aggregations * parameters.core_uplinks, fmt::format("plane{}_core", plane));
  for (std::size_t i = 0; i < aggregations.size(); ++i)
    connect_tiers(graph, spec, {aggregations[i]},
                  subtier(cores, static_cast<std::int64_t>(i) % parameters.aggregations, parameters.core_uplinks), 1);
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const Hpn parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  if (spec.nic_bits_per_second < kPlanes)
    throw core::InputError("hpn splits a NIC's rate over two ports; give a cluster.nic_gbps that can be split");
  const std::int64_t segments = (spec.nodes + parameters.segment_nodes - 1) / parameters.segment_nodes;
  for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
    const Tier tors = add_tier(graph, segments * spec.gpus_per_node, fmt::format("plane{}_tor", plane));
    for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
      const std::int64_t segment = gpu / spec.gpus_per_node / parameters.segment_nodes, rail = gpu % spec.gpus_per_node;
      graph.add_cable(gpu, tors[static_cast<std::size_t>(segment * spec.gpus_per_node + rail)],
                      core::network::LinkKind::network, spec.nic_bits_per_second / kPlanes, spec.nic_latency_ps);
    }
    add_plane(graph, spec, parameters, tors, plane);
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
           .small_options = {{"segment_nodes", std::int64_t{2}},
                             {"aggregations", std::int64_t{2}},
                             {"pod_segments", std::int64_t{1}},
                             {"core_uplinks", std::int64_t{2}}}}};
}

}  // namespace manyworlds::topologies

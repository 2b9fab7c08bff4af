// Ring collectives: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 2009, section 3. Transfers on a connection are serialized; with chunks, two are in flight (DagBuilder::add).
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/mesh_orders.hpp"
#include "core/collective/transfers/ring_generator.hpp"
#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::uint32_t kMaxMembersInRings = 64;  // with one channel per NIC

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(shape.members);
  const std::uint32_t count = slice_count(shape, chunk_bytes(shape.bytes, shape.members, 0));
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    dag.set_channel(channel);
    Ring ring{ring_order(shape, channel), {}};
    for (const std::uint32_t member : ring.members) ring.blocks.push_back({member});
    std::vector<Frontier> frontiers(count, Frontier(shape.members));
    add_ring_rounds(dag, ring, {shape.kind != Kind::all_gather, shape.kind != Kind::reduce_scatter}, channel * count,
                    shape.channels * count, frontiers);
  }
}

/// With several nodes, the slowest connections are those between nodes; channels use separate NICs there, as many as a
/// node has members. On a full mesh channels use separate links inside a node.
CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  std::int64_t bytes = s.passes * (s.bytes - s.bytes / s.members);
  if (s.nodes > 1)
    bytes /= std::min(s.channels, s.per_node);
  else
    bytes = bytes * channels_per_link(shape) / s.channels;
  const std::int64_t steps = s.passes * (s.members - 1);
  // Of per_node steps one crosses nodes, rounded up.
  const std::int64_t inter_node = s.nodes > 1 ? (steps + s.per_node - 1) / s.per_node : 0;
  CostTerms terms{steps - inter_node, inter_node, 0, 0};
  (s.nodes > 1 ? terms.inter_node_bytes : terms.intra_node_bytes) = bytes;
  terms.two_in_flight = shape.chunk_bytes > 0;
  return terms;
}

/// Rings through all members with one channel per NIC have members^2 x NICs transfers. If that is too many, the
/// two-level algorithm replaces them: it sends as many bytes over every NIC, with NICs^2 times fewer transfers.
void use_every_nic(Shape& shape) {
  if (shape.per_node == shape.members) {
    if (shape.node_mesh) shape.channels = std::max(shape.channels, mesh_rings(shape.per_node));
    return;
  }
  if (shape.per_node > 1 && shape.members > kMaxMembersInRings)
    shape.algorithm = Algorithm::two_level, shape.channels = 1;
  else
    shape.channels = std::max(shape.channels, shape.node_mesh ? mesh_paths(shape.per_node) : shape.per_node);
}

/// Between nodes LL's chunks are whole blocks, but two of them are in flight: the next does not wait for the NIC.
void calibrate(Shape& shape) {
  use_every_nic(shape);
  const bool between_nodes = shape.algorithm == Algorithm::ring && shape.per_node < shape.members;
  if (between_nodes && shape.protocol == Protocol::calibrated_ll && shape.chunk_bytes == 0)
    shape.chunk_bytes = std::max<std::int64_t>(1, shape.bytes);
}

/// A single ring inside a node visits the members in order, as if each were in a node of its own.
bool ignores_nodes(const Shape& shape) {
  return shape.channels == 1 && shape.per_node == shape.members;
}

}  // namespace

AlgorithmInfo ring_algorithm() {
  return {
      .help =
          "every member passes chunks on to the next; rings snake through nodes along rails, and over every link of a "
          "full mesh",
      .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter},
      .add = add,
      .cost = cost,
      .generator = ring_generator,
      .pipelined = true,
      .multi_channel = true,
      .considered_if_calibrated = everywhere,
      .ignores_nodes = ignores_nodes,
      .uses_mesh = spreads_over_mesh,
      .use_every_nic = use_every_nic,
      .calibrate = calibrate};
}

}  // namespace manyworlds::core::collective

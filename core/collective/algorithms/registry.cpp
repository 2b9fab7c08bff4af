#include "core/collective/algorithms/registry.hpp"

#include <algorithm>
#include <array>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {

const std::vector<AlgorithmInfo>& algorithms() {
  static const std::vector<Kind> reductions{Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter};
  static const std::vector<AlgorithmInfo> all{
      // in the order of Algorithm
      {.algorithm = Algorithm::ring,
       .name = "ring",
       .help = "every member passes chunks on to the next; rings snake through nodes along rails",
       .kinds = reductions,
       .add = add_ring,
       .pipelined = true,
       .multi_channel = true,
       .in_nccl = true},
      {.algorithm = Algorithm::two_level,
       .name = "two_level",
       .help = "rings inside each node, and between nodes one ring per rail",
       .kinds = reductions,
       .add = add_two_level,
       .pipelined = true,
       .multi_channel = true},
      {.algorithm = Algorithm::node_leaders,
       .name = "node_leaders",
       .help = "one member of each node speaks for it: between nodes one ring over one NIC each, inside chains",
       .kinds = reductions,
       .add = add_node_leaders},
      {.algorithm = Algorithm::halving_doubling,
       .name = "halving_doubling",
       .help = "recursive halving and doubling (Rabenseifner): as many bytes as a ring in 2 log n steps",
       .kinds = reductions,
       .add = add_halving_doubling},
      {.algorithm = Algorithm::recursive_doubling,
       .name = "recursive_doubling",
       .help = "whole vectors exchanged in log n steps: for small ones",
       .kinds = {Kind::all_reduce},
       .add = add_recursive_doubling},
      {.algorithm = Algorithm::double_tree,
       .name = "double_tree",
       .help = "two binary trees over the nodes, each for half of the vector, with a chain inside each node",
       .kinds = {Kind::all_reduce},
       .add = add_double_tree,
       .pipelined = true,
       .multi_channel = true,
       .in_nccl = true},
      {.algorithm = Algorithm::direct,
       .name = "direct",
       .help = "every member sends to every other at once; auto takes it inside a node alone",
       .kinds = reductions,
       .add = add_direct,
       .intra_node_only = true},
      {.algorithm = Algorithm::in_switch,
       .name = "in_switch",
       .help = "switches reduce and replicate (NVLS in the node; SHARP where a rail is one switch, else rings)",
       .kinds = reductions,
       .add = add_in_switch,
       .pipelined = true,
       .in_nccl = true},
      {.algorithm = Algorithm::pairwise,
       .name = "pairwise",
       .help = "one partner after the other",
       .kinds = {Kind::all_to_all},
       .add = add_pairwise,
       .in_nccl = true},
      {.algorithm = Algorithm::node_aware,
       .name = "node_aware",
       .help = "inside the node to the member of the destination's rail, then along the rail",
       .kinds = {Kind::all_to_all},
       .add = add_node_aware},
      {.algorithm = Algorithm::hybrid_ep,
       .name = "hybrid_ep",
       .help = "along the rail to each node, and inside it on to its members while more arrives (DeepEP, HybridEP)",
       .kinds = {Kind::all_to_all},
       .add = add_hybrid_ep},
      {.algorithm = Algorithm::chain,
       .name = "chain",
       .help = "from member to member along the ring's order",
       .kinds = {Kind::broadcast, Kind::reduce},
       .add = add_chain,
       .pipelined = true,
       .multi_channel = true,
       .in_nccl = true},
      {.algorithm = Algorithm::binomial_tree,
       .name = "binomial_tree",
       .help = "those who have it send to those who have not: log n steps",
       .kinds = {Kind::broadcast},
       .add = add_binomial_tree,
       .pipelined = true},
  };
  return all;
}

const AlgorithmInfo& info_of(Algorithm algorithm) {
  return algorithms().at(static_cast<std::size_t>(algorithm));
}

bool supports(Algorithm algorithm, Kind kind) {
  const std::vector<Kind>& kinds = info_of(algorithm).kinds;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

const char* name_of(Kind kind) {
  static constexpr std::array kNames{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                     "broadcast",  "send",       "reduce"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string Shape::text() const {
  std::string text = fmt::format("{} {} n={} {} B", name_of(kind),
                                 kind == Kind::send ? "direct" : info_of(algorithm).name, members, bytes);
  if (protocol != Protocol::none) text += fmt::format(" {}", name_of(protocol));
  if (channels > 1) text += fmt::format(" channels={}", channels);
  if (chunk_bytes > 0) text += fmt::format(" chunks={} B", chunk_bytes);
  if (node_bytes > 0) text += fmt::format(" to each node {} B", node_bytes);
  if (split.even()) return text;
  if (kind == Kind::broadcast || kind == Kind::reduce) return text + fmt::format(" root={}", root());
  const auto [min_bytes, max_bytes] = std::minmax_element(split.bytes.begin(), split.bytes.end());
  return text + fmt::format(" {} {}-{} B", split.by_source ? "each from" : "each to", *min_bytes, *max_bytes);
}

std::uint32_t Shape::root() const {
  if (split.even()) return 0;
  return static_cast<std::uint32_t>(std::max_element(split.bytes.begin(), split.bytes.end()) - split.bytes.begin());
}

ProtocolCosts costs_of(const Shape& shape) {
  const bool calibrated = shape.protocol == Protocol::calibrated_ll || shape.protocol == Protocol::calibrated_simple;
  return calibrated ? shape.calibrated : costs_of(shape.protocol, shape.algorithm);
}

Dag build(const Shape& shape, Trace* trace) {
  DagBuilder dag(shape, trace);
  if (shape.members < 2) return dag.finish();
  if (shape.kind == Kind::send) {
    dag.add(0, 1, {}, Effect::copy);
  } else {
    MANYWORLDS_CHECK(supports(shape.algorithm, shape.kind), "{} cannot do {}", info_of(shape.algorithm).name,
                     name_of(shape.kind));
    info_of(shape.algorithm).add(dag, shape);
  }
  return dag.finish();
}

}  // namespace manyworlds::core::collective

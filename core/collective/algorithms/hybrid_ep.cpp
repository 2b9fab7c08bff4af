// All-to-all of tokens as in expert-parallel libraries: the data for another node is sent once, along the sender's
// rail, to the member with the same local index on that node, which forwards it to the members of its node while more
// data arrives (DeepEP's normal kernels, github.com/deepseek-ai/DeepEP, section "Design"; HybridEP in the same
// repository). Data for the sender's own node is sent first. Results return along the same paths and are added up on
// the way, with equally many bytes, so the combine step uses the same DAG.
#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/token_chunks.hpp"

namespace manyworlds::core::collective {
namespace {

/// A serialized resource per member (its NIC, or its links inside the node): tracks the last send and receive of each.
class SerializedLinks {
 public:
  SerializedLinks(DagBuilder& dag, std::uint32_t members, bool at_once)
      : dag_(dag), at_once_(at_once), sent_(members, kNoNode), received_(members, kNoNode) {}

  /// Adds a transfer of the current round; it waits for `predecessor` and, unless all start at once, for the previous
  /// round of both members.
  std::uint32_t send(std::uint32_t from, std::uint32_t to, const BlockSet& block_set, std::uint32_t predecessor) {
    const std::uint32_t transfer = dag_.add(from, to, block_set, Effect::copy,
                                            {sent_[from], received_[from], sent_[to], received_[to], predecessor});
    round_.push_back({from, to, transfer});
    return transfer;
  }
  void end_round() {
    for (const auto& [from, to, transfer] : round_)
      if (!at_once_) sent_[from] = received_[to] = transfer;
    round_.clear();
  }

 private:
  struct Sent {
    std::uint32_t from, to, transfer;
  };
  DagBuilder& dag_;
  bool at_once_;
  std::vector<std::uint32_t> sent_, received_;
  std::vector<Sent> round_;
};

void add(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members, p = shape.per_node, nodes = n / p, chunks = token_chunks(nodes);
  dag.set_block_partition(n, n);
  // On a full mesh each other member of the node has a link of its own.
  SerializedLinks rails(dag, n, shape.at_once), intra_node(dag, n, shape.at_once || shape.node_mesh);
  // By member: transfers from the member at distance 1, 2, … nodes before it, chunk by chunk.
  std::vector<std::vector<std::uint32_t>> arrivals(n);
  for (std::uint32_t nodes_ahead = 1; nodes_ahead < nodes; ++nodes_ahead)
    for (std::uint32_t share = 0; share < chunks; ++share) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t to = (i + nodes_ahead * p) % n;
        BlockSet block_set{i * n + to / p * p, p, 1, share, chunks};
        if (shape.node_bytes > 0) block_set.bytes = chunk_bytes(shape.node_bytes, chunks, share);
        arrivals[to].push_back(rails.send(i, to, block_set, kNoNode));
      }
      rails.end_round();
    }
  const auto forward_inside_node = [&](std::uint32_t nodes_back, std::uint32_t share, std::uint32_t shares) {
    for (std::uint32_t local_offset = 1; local_offset < p; ++local_offset) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t to = i / p * p + (i + local_offset) % p, source = (i + n - nodes_back * p) % n;
        const std::uint32_t predecessor = nodes_back == 0 ? kNoNode : arrivals[i][(nodes_back - 1) * chunks + share];
        intra_node.send(i, to, {source * n + to, 1, 1, share, shares}, predecessor);
      }
      intra_node.end_round();
    }
  };
  forward_inside_node(0, 0, 1);
  for (std::uint32_t nodes_back = 1; nodes_back < nodes; ++nodes_back)
    for (std::uint32_t share = 0; share < chunks; ++share) forward_inside_node(nodes_back, share, chunks);
}

/// The data of the last node is forwarded after all other data.
CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t to_node = shape.node_bytes > 0 ? shape.node_bytes : s.bytes / s.nodes;
  const auto latencies = [&](std::int64_t rounds) {
    return shape.at_once ? std::min<std::int64_t>(rounds, 1) : rounds;
  };
  const std::int64_t to_member = s.bytes / s.members;
  if (shape.node_mesh)
    return {std::min<std::int64_t>(s.per_node - 1, 1), latencies(s.nodes - 1), to_member, to_node * (s.nodes - 1)};
  return {latencies(s.per_node - 1), latencies(s.nodes - 1), to_member * (s.per_node - 1), to_node * (s.nodes - 1)};
}

}  // namespace

AlgorithmInfo hybrid_ep_algorithm() {
  return {.help = "along the rail to each node, and inside it on to its members while more arrives (DeepEP, HybridEP)",
          .kinds = {Kind::all_to_all},
          .add = add,
          .cost = cost,
          .latency_group = LatencyGroup::token_exchange,
          .considered = nowhere,  // not for tensors: it needs the routing of tokens
          .uses_mesh = always};
}

}  // namespace manyworlds::core::collective

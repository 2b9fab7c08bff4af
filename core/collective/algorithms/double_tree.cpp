// Double binary trees, each for half of the vector, such that no node has children in both: Sanders, Speck and Träff,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009; NCCL 2.4. The trees
// connect nodes; inside a node, the members form a chain that ends at the node's head. Each chunk is reduced on the way
// up and broadcast on the way down.
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::int64_t kMaxChunks = 64;     // of a calibrated library, in each tree
constexpr std::int64_t kPartsOfAChunk = 4;  // of Simple

/// Returns the longest part that NCCL's trees forward in one channel: a chunk, of Simple's 512 KiB a quarter, because a
/// member forwards the first part of a chunk while the rest arrives.
std::int64_t longest_part(Protocol protocol) {
  if (protocol == Protocol::calibrated_ll) return 32 << 10;
  return protocol == Protocol::calibrated_ll128 ? 60 << 10 : 128 << 10;
}

/// Returns the parent of node i in an in-order binary tree over [0, n) with root 0. The level of i is its lowest set
/// bit.
std::uint32_t in_order_parent(std::uint32_t i, std::uint32_t n) {
  const std::uint32_t level = i & (~i + 1);
  const std::uint32_t parent_node = (i & 2 * level) != 0 ? i - level : i + level;
  return parent_node < n ? parent_node : i - level;
}

/// Returns the parent of a node in tree 0 or 1. The second tree is the first one mirrored, or shifted by one if `nodes`
/// is odd, so that its leaves are inner nodes of the first tree.
std::uint32_t tree_parent(std::uint32_t tree, std::uint32_t node, std::uint32_t nodes) {
  if (tree == 0) return node == 0 ? kNoNode : in_order_parent(node, nodes);
  const bool odd = nodes % 2 == 1;
  const std::uint32_t position = odd ? (node + nodes - 1) % nodes : nodes - 1 - node;
  if (position == 0) return kNoNode;
  const std::uint32_t parent_node = in_order_parent(position, nodes);
  return odd ? (parent_node + 1) % nodes : nodes - 1 - parent_node;
}

struct Tree {
  std::vector<std::uint32_t> parents;                // by member; kNoNode for the root
  std::vector<std::vector<std::uint32_t>> children;  // by member
  std::vector<std::uint32_t> top_down;               // all members, parents before their children
};

/// Returns tree `tree` (0 or 1) of a channel. Both trees of a channel have the same heads, so that its NIC carries
/// both: where a node is an inner one of a tree it is a leaf of the other, and every NIC has equally many bytes. The
/// local index of the heads depends on the channel, which spreads them over the rails.
Tree make_tree(const Shape& shape, std::uint32_t tree, std::uint32_t channel) {
  const std::uint32_t p = shape.per_node, nodes = shape.members / p;
  const std::uint32_t head = shape.channels <= p ? channel * (p / shape.channels) : channel % p;
  Tree binary_tree;
  binary_tree.parents.resize(shape.members);
  binary_tree.children.resize(shape.members);
  std::uint32_t root = 0;
  for (std::uint32_t i = 0; i < shape.members; ++i) {
    const std::uint32_t node = i / p, local = i % p;
    std::uint32_t& parent = binary_tree.parents[i];
    if (local == head) {
      const std::uint32_t parent_node = tree_parent(tree, node, nodes);
      parent = parent_node == kNoNode ? kNoNode : parent_node * p + head;
      if (parent == kNoNode) root = i;
    } else {
      parent = node * p + (local + p - 1) % p;
    }
    if (parent != kNoNode) binary_tree.children[parent].push_back(i);
  }
  binary_tree.top_down = {root};
  for (std::size_t i = 0; i < binary_tree.top_down.size(); ++i)
    for (const std::uint32_t child : binary_tree.children[binary_tree.top_down[i]])
      binary_tree.top_down.push_back(child);
  return binary_tree;
}

void reduce_and_broadcast(DagBuilder& dag, const Tree& tree, const BlockSet& block_set) {
  std::vector<std::vector<std::uint32_t>> received(tree.parents.size());  // by member: what it must receive first
  for (auto i = tree.top_down.rbegin(); i != tree.top_down.rend(); ++i)
    if (const std::uint32_t parent = tree.parents[*i]; parent != kNoNode)
      received[parent].push_back(dag.add(*i, parent, block_set, Effect::reduce, received[*i]));
  for (const std::uint32_t i : tree.top_down)
    for (const std::uint32_t child : tree.children[i])
      received[child] = {dag.add(i, child, block_set, Effect::copy, received[i])};
}

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(1);
  const std::uint32_t count = slice_count(shape, (shape.bytes + 1) / 2);
  const std::uint32_t shares = 2 * shape.channels * count;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel)
    for (const std::uint32_t tree : {0u, 1u}) {
      // The two trees of a channel use separate connections, even between the same members.
      dag.set_channel(2 * channel + tree);
      const Tree binary_tree = make_tree(shape, tree, channel);
      for (std::uint32_t slice = 0; slice < count; ++slice)
        reduce_and_broadcast(dag, binary_tree, {0, 1, 1, (2 * channel + tree) * count + slice, shares});
    }
}

CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t intra_node = 2 * (s.per_node - 1), inter_node = 2 * log2_up(s.nodes);
  // Half of the vector goes up each tree and down to two children: per direction, a connection carries all of it.
  if (s.nodes == 1)
    return {intra_node, inter_node, pipelined_bytes(s.bytes, intra_node + inter_node, 2 * shape.chunk_bytes), 0};
  // The head of a node receives from two children and its parent in one tree, from its parent in the other, and sends
  // as much. With two nodes it would be less, but libraries ignore that (NCCL's src/graph/tuning.cc).
  const std::int64_t share = s.bytes / (2 * std::min(s.channels, s.per_node));
  const std::int64_t chunk = shape.chunk_bytes > 0 ? std::min(share, shape.chunk_bytes) : share;
  return {intra_node, inter_node, intra_node * chunk, 4 * share + (inter_node - 1) * chunk};
}

void use_every_nic(Shape& shape) {
  shape.channels = std::max(shape.channels, shape.per_node);
}

void calibrate(Shape& shape) {
  use_every_nic(shape);
  if (shape.chunk_bytes > 0) return;
  const std::int64_t share = shape.bytes / (2 * shape.channels);
  const std::int64_t part = shape.protocol == Protocol::calibrated_simple ? share / kPartsOfAChunk : share;
  shape.chunk_bytes = std::max({std::min(part, longest_part(shape.protocol)), share / kMaxChunks, std::int64_t{1}});
}

}  // namespace

AlgorithmInfo double_tree_algorithm() {
  return {.help = "two binary trees over the nodes, each for half of the vector, with a chain inside each node",
          .kinds = {Kind::all_reduce},
          .add = add,
          .cost = cost,
          .pipelined = true,
          .multi_channel = true,
          .latency_group = LatencyGroup::tree,
          .considered_if_calibrated = across_nodes,
          .use_every_nic = use_every_nic,
          .calibrate = calibrate};
}

}  // namespace manyworlds::core::collective

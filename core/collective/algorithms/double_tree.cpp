// Two binary trees, each for half of the vector, such that no node has children in both: Sanders, Speck and Träff,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009; NCCL 2.4. Trees join
// the nodes; inside a node a chain leads to its head. Vectors go up reduced and come down whole, chunk by chunk.
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/algorithms/rounds.hpp"

namespace manyworlds::core::collective {
namespace {

/// Parent of node i in a binary tree in order over [0, n), 0 being the root: i is at the level of its lowest set bit.
std::uint32_t parent_in_order(std::uint32_t i, std::uint32_t n) {
  const std::uint32_t level = i & (~i + 1);
  const std::uint32_t above = (i & 2 * level) != 0 ? i - level : i + level;
  return above < n ? above : i - level;
}

/// The second tree is the first one mirrored, or turned by one where n is odd: its leaves are inner nodes of the first.
std::uint32_t parent_of_node(std::uint32_t tree, std::uint32_t node, std::uint32_t nodes) {
  if (tree == 0) return node == 0 ? kNoNode : parent_in_order(node, nodes);
  const bool odd = nodes % 2 == 1;
  const std::uint32_t place = odd ? (node + nodes - 1) % nodes : nodes - 1 - node;
  if (place == 0) return kNoNode;
  const std::uint32_t above = parent_in_order(place, nodes);
  return odd ? (above + 1) % nodes : nodes - 1 - above;
}

struct Tree {
  std::vector<std::uint32_t> parents;                // of members; kNoNode for the root
  std::vector<std::vector<std::uint32_t>> children;  // of members
  std::vector<std::uint32_t> downwards;              // members, parents before children
};

/// Heads spread over the local indices of a node, so that trees and channels use different rails.
Tree make_tree(const Shape& shape, std::uint32_t tree, std::uint32_t channel) {
  const std::uint32_t p = shape.per_node, nodes = shape.members / p, trees = 2 * shape.channels;
  const std::uint32_t index = 2 * channel + tree;
  const std::uint32_t head = trees <= p ? index * (p / trees) : index % p;
  Tree made;
  made.parents.resize(shape.members);
  made.children.resize(shape.members);
  std::uint32_t root = 0;
  for (std::uint32_t i = 0; i < shape.members; ++i) {
    const std::uint32_t node = i / p, local = i % p;
    std::uint32_t& parent = made.parents[i];
    if (local == head) {
      const std::uint32_t above = parent_of_node(tree, node, nodes);
      parent = above == kNoNode ? kNoNode : above * p + head;
      if (parent == kNoNode) root = i;
    } else {
      parent = node * p + (local + p - 1) % p;
    }
    if (parent != kNoNode) made.children[parent].push_back(i);
  }
  made.downwards = {root};
  for (std::size_t i = 0; i < made.downwards.size(); ++i)
    for (const std::uint32_t child : made.children[made.downwards[i]]) made.downwards.push_back(child);
  return made;
}

void reduce_and_broadcast(DagBuilder& dag, const Tree& tree, const Part& part) {
  std::vector<std::vector<std::uint32_t>> arrived(tree.parents.size());  // what a member must have before it sends
  for (auto i = tree.downwards.rbegin(); i != tree.downwards.rend(); ++i)
    if (const std::uint32_t parent = tree.parents[*i]; parent != kNoNode)
      arrived[parent].push_back(dag.add(*i, parent, part, Effect::reduce, arrived[*i]));
  for (const std::uint32_t i : tree.downwards)
    for (const std::uint32_t child : tree.children[i])
      arrived[child] = {dag.add(i, child, part, Effect::copy, arrived[i])};
}

}  // namespace

void add_double_tree(DagBuilder& dag, const Shape& shape) {
  dag.cut(1);
  const std::uint32_t count = slices(shape, (shape.bytes + 1) / 2);
  const std::uint32_t shares = 2 * shape.channels * count;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel)
    for (const std::uint32_t tree : {0u, 1u}) {
      // Trees of a channel have connections of their own where they join the same members.
      dag.set_channel(2 * channel + tree);
      const Tree made = make_tree(shape, tree, channel);
      for (std::uint32_t slice = 0; slice < count; ++slice)
        reduce_and_broadcast(dag, made, {0, 1, 1, (2 * channel + tree) * count + slice, shares});
    }
}

}  // namespace manyworlds::core::collective

// The form with node leaders: what a node has goes through its first member, so that between nodes there is one ring of
// leaders and one NIC for each node; inside, a chain takes blocks to the leader or away from it while the next
// ones come (Karonis et al. 2000, MPICH-G2's multi-level collectives). A single ring through all members, as a
// library with one channel makes it, puts the same bytes on the same NICs with many more transfers.
#include <algorithm>

#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::uint32_t kRuns = 32;

class NodeLeaders {
 public:
  NodeLeaders(DagBuilder& dag, const Shape& shape)
      : dag_(dag), per_node_(shape.per_node), nodes_(shape.members / shape.per_node), here_(nodes_ * nodes_, kNoNode) {}

  /// Each leader ends with the sum of its node's blocks.
  void reduce() {
    for (std::uint32_t node = 0; node < nodes_; ++node)
      for (std::uint32_t round = 1; round <= nodes_;) {
        const Run run = run_from((node + nodes_ - round) % nodes_, nodes_ + 1 - round);  // as the ring wants them
        std::uint32_t before = kNoNode;
        for (std::uint32_t local = per_node_ - 1; local > 0; --local)
          before = dag_.add(member(node, local), member(node, local - 1), part_of(run), Effect::reduce, {before});
        for (std::uint32_t i = 0; i < run.count; ++i) here(node, run.lowest + i) = before;
        round += run.count;
      }
    for (std::uint32_t round = 1; round < nodes_; ++round)
      for (std::uint32_t node = 0; node < nodes_; ++node)
        pass_on(node, (node + nodes_ - round) % nodes_, Effect::reduce);
  }

  void scatter() {
    for (std::uint32_t node = 0; node < nodes_; ++node)
      for (std::uint32_t local = 1; local < per_node_; ++local)
        dag_.add(leader(node), member(node, local), {member(node, local)}, Effect::copy, {here(node, node)});
  }

  /// Leaders have all of their node's blocks.
  void collect() {
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      std::vector<std::uint32_t> all;
      for (std::uint32_t local = 1; local < per_node_; ++local)
        all.push_back(dag_.add(member(node, local), leader(node), {member(node, local)}, Effect::copy));
      if (!all.empty()) here(node, node) = dag_.join(leader(node), all);
    }
  }

  void gather() {
    for (std::uint32_t round = 0; round + 1 < nodes_; ++round)
      for (std::uint32_t node = 0; node < nodes_; ++node) pass_on(node, (node + nodes_ - round) % nodes_, Effect::copy);
    if (per_node_ == 1) return;
    for (std::uint32_t node = 0; node < nodes_; ++node)
      for (std::uint32_t round = 0; round < nodes_;) {
        const Run run = run_from((node + nodes_ - round) % nodes_, nodes_ - round);  // as the ring brings them
        // The lowest comes last, but for the node's own, which do not come by the ring.
        std::uint32_t before = dag_.add(leader(node), member(node, 1), part_of(run), Effect::copy,
                                        {here(node, run.lowest), here(node, node)});
        for (std::uint32_t local = 1; local + 1 < per_node_; ++local)
          before = dag_.add(member(node, local), member(node, local + 1), part_of(run), Effect::copy, {before});
        round += run.count;
      }
  }

 private:
  std::uint32_t member(std::uint32_t node, std::uint32_t local) const { return node * per_node_ + local; }
  std::uint32_t leader(std::uint32_t node) const { return member(node, 0); }
  /// Nodes whose blocks go along a chain together: consecutive ones, of which the highest comes or is wanted first.
  struct Run {
    std::uint32_t lowest = 0, count = 1;
  };
  /// From `highest` down to where a run begins, at most `most`. Chains take some dozens, so that they begin and end
  /// early without a transfer for every node and member.
  Run run_from(std::uint32_t highest, std::uint32_t most) const {
    const std::uint32_t length = (nodes_ + kRuns - 1) / kRuns, count = std::min(highest % length + 1, most);
    return {highest + 1 - count, count};
  }
  Part part_of(const Run& nodes) const { return {member(nodes.lowest, 0), nodes.count * per_node_}; }
  /// After which `node`'s leader has what it passes on of the blocks of node `block`.
  std::uint32_t& here(std::uint32_t node, std::uint32_t block) { return here_[node * nodes_ + block]; }

  /// The ring: a node's blocks go on to the next leader.
  void pass_on(std::uint32_t node, std::uint32_t block, Effect effect) {
    const std::uint32_t next = (node + 1) % nodes_;
    const std::uint32_t moved = dag_.add(leader(node), leader(next), part_of({block}), effect, {here(node, block)});
    const std::uint32_t both[] = {moved, here(next, block)};
    here(next, block) = effect == Effect::copy ? moved : dag_.join(leader(next), both);
  }

  DagBuilder& dag_;
  std::uint32_t per_node_, nodes_;
  std::vector<std::uint32_t> here_;
};

}  // namespace

void add_node_leaders(DagBuilder& dag, const Shape& shape) {
  dag.cut(shape.members);
  NodeLeaders form(dag, shape);
  if (shape.kind == Kind::all_gather)
    form.collect();
  else
    form.reduce();
  if (shape.kind == Kind::reduce_scatter)
    form.scatter();
  else
    form.gather();
}

}  // namespace manyworlds::core::collective

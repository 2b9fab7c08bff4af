// Reduction in switches: members send what is to be reduced up to their switch, which sends the sum down to whom it is
// for, replicated if that is everybody. In the node as NVLink SHARP does (NVLS, NCCL 2.17), shard by shard; between
// nodes as SHARP does (Graham et al., COMHPC 2016) where the members of a rail share one switch, otherwise by rings.
// In chunks, sums come down and are sent on while others are still to be made.
#include <algorithm>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/algorithms/rounds.hpp"

namespace manyworlds::core::collective {
namespace {

class InSwitch {
 public:
  InSwitch(DagBuilder& dag, const Shape& shape)
      : dag_(dag), shape_(shape), nodes_(shape.members / shape.per_node), has_(1, Frontier(shape.members)) {
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      Ring& made = inside_.emplace_back();
      for (std::uint32_t rail = 0; rail < shape.per_node; ++rail) {
        made.members.push_back(node * shape.per_node + rail);
        made.blocks.push_back({rail, nodes_, shape.per_node});  // the blocks of the rail's members
      }
    }
    for (std::uint32_t rail = 0; rail < shape.per_node; ++rail) {
      Ring& made = rails_.emplace_back();
      for (std::uint32_t node = 0; node < nodes_; ++node) {
        made.members.push_back(node * shape.per_node + rail);
        made.blocks.push_back({made.members.back()});
      }
    }
    if (shape.per_node > 1)
      for (const Ring& node : inside_) node_switches_.push_back(dag.add_switch(node.members[0], node.members[1]));
    if (shape.rail_switches)
      for (const Ring& rail : rails_) rail_switches_.push_back(dag.add_switch(rail.members[0], rail.members[1]));
  }

  /// From now on share `share` of `shares` of every block.
  void begin_slice(std::uint32_t share, std::uint32_t shares) {
    share_ = share, shares_ = shares;
    has_.assign(1, Frontier(shape_.members));
  }

  void inside(Rounds rounds) {
    for (std::size_t node = 0; node < node_switches_.size(); ++node)
      exchange(node_switches_[node], inside_[node], rounds);
  }

  void between(Rounds rounds) {
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
      if (shape_.rail_switches)
        exchange(rail_switches_[rail], rails_[rail], rounds);
      else
        add_rounds(dag_, rails_[rail], rounds, share_, shares_, has_);
    }
  }

 private:
  /// Each member's block is reduced in the switch `at`, or sent there by its member, and goes down to that member, or
  /// to all who lack it.
  void exchange(std::uint32_t at, const Ring& who, Rounds rounds) {
    Frontier& has = has_[0];
    std::vector<std::vector<std::uint32_t>> got(who.members.size());
    for (std::size_t owner = 0; owner < who.members.size(); ++owner) {
      Part block = who.blocks[owner];
      block.share = share_, block.shares = shares_;
      std::vector<std::uint32_t> up;
      for (std::size_t i = 0; i < who.members.size(); ++i)
        if (rounds.reduce || i == owner)
          up.push_back(
              dag_.add(who.members[i], at, block, rounds.reduce ? Effect::reduce : Effect::copy, has[who.members[i]]));
      if (up.size() > 1) up = {dag_.join(at, up)};
      for (std::size_t i = 0; i < who.members.size(); ++i)
        if (i == owner ? rounds.reduce : rounds.gather)
          got[i].push_back(dag_.add(at, who.members[i], block, Effect::copy, up));
    }
    for (std::size_t i = 0; i < who.members.size(); ++i)
      has[who.members[i]] = {got[i].size() == 1 ? got[i][0] : dag_.join(who.members[i], got[i])};
  }

  DagBuilder& dag_;
  const Shape& shape_;
  std::uint32_t nodes_, share_ = 0, shares_ = 1;
  std::vector<Ring> inside_, rails_;
  std::vector<std::uint32_t> node_switches_, rail_switches_;
  std::vector<Frontier> has_;  // after which nodes each member holds what it goes on with
};

}  // namespace

void add_in_switch(DagBuilder& dag, const Shape& shape) {
  dag.cut(shape.members);
  InSwitch form(dag, shape);
  const bool reduce = shape.kind != Kind::all_gather, gather = shape.kind != Kind::reduce_scatter;
  Shape block = shape;  // a transfer inside a node carries a block of every node
  const std::uint32_t nodes = shape.members / shape.per_node;
  if (shape.chunk_bytes > 0) block.chunk_bytes = std::max<std::int64_t>(1, shape.chunk_bytes / nodes);
  block.channels = 1;
  const std::uint32_t count = slices(block, chunk_bytes(shape.bytes, shape.members, 0));
  for (std::uint32_t slice = 0; slice < count; ++slice) {
    form.begin_slice(slice, count);
    dag.set_channel(0);
    if (reduce) form.inside({true, false});
    if (shape.members > shape.per_node) form.between({reduce, gather});
    if (count > 1) dag.set_channel(1);  // what is gathered does not wait for all that is to be reduced
    if (gather) form.inside({false, true});
  }
}

}  // namespace manyworlds::core::collective

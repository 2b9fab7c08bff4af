// A compiled step: the program of every rank of a configuration, and every collective that ranks enter. Equivalent
// ranks (rank_symmetry.hpp) may be reduced to one representative and equivalent groups to one group; counts still
// include all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/sharing/key.hpp"
#include "core/step/layout/dag_cache.hpp"
#include "core/step/layout/ids.hpp"
#include "core/step/layout/step_programs.hpp"
#include "core/step/symmetry/link_pools.hpp"
#include "core/step/symmetry/rank_symmetry.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::step {

/// A collective operation of a group, with everything that its instances have in common.
struct CollectiveOp {
  GroupId group;
  collective::Shape shape;
  std::shared_ptr<const collective::Dag> dag;      // contains one of each set of equivalent members
  std::shared_ptr<const Connections> connections;  // routes of that DAG
  std::uint32_t connectivity = 0;                  // RankLayout::connectivity_number() of the whole DAG
  sharing::Key key;                                // of an isolated instance, which all members enter at once
  /// How equivalent groups cross links that stand for others; null if every link stands for itself.
  const std::vector<LinkUse>* link_uses = nullptr;
  // Totals over all equivalent groups:
  std::vector<std::pair<sharing::Key, std::int64_t>> keys;  // (key, number of groups with it)
  std::int64_t groups = 1;
  std::int64_t link_hops = 0;  // packets times links
  std::int64_t transfers = 0;
  std::vector<std::pair<std::uint32_t, Time>> busy;  // (network link or pool, time for which an instance occupies it)
  /// Returns the number of group members that each member of `dag` represents.
  std::int64_t ranks_per_member() const { return dag->members == 0 ? 1 : shape.members / dag->members; }
  /// Returns how many connections, and packet by packet also links, each of `connections` stands for.
  std::int64_t copies() const { return groups * ranks_per_member(); }
};

/// The load of one instance of a collective operation on its links.
struct InstanceLoad {
  std::int64_t link_hops = 0;                                         // packets times links
  std::vector<std::pair<std::uint32_t, std::int64_t>> network_bytes;  // (network link or pool, bytes with headers)
};
/// The load of a DAG on one of its pairs.
struct PairLoad {
  std::int64_t packets = 0, bytes = 0;  // bytes include headers
};
/// Returns the load of a DAG on each of its pairs.
std::vector<PairLoad> pair_loads_of(const collective::Dag& dag, const network::Transport& transport);

/// Computes link loads, with buffers that are reused between operations. `transport`, `graph` and `pools` must outlive
/// this. With pools the loads are those of pools, over their rates.
class LinkLoads {
 public:
  LinkLoads(const network::Transport& transport, const network::Graph& graph, const LinkPools* pools = nullptr);
  InstanceLoad of(const CollectiveOp& collective_op);
  /// `representative`, if given, has for each connection the index of the equivalent entry of `loads`.
  InstanceLoad of(const std::vector<PairLoad>& loads, const Connections& connections,
                  const std::vector<std::uint32_t>* representative = nullptr);

 private:
  InstanceLoad of_spreads(const std::vector<PairLoad>& loads, const Connections& connections,
                          const std::vector<std::uint32_t>* representative);

  const network::Transport& transport_;
  const network::Graph& graph_;
  const LinkPools* pools_;
  std::vector<std::int64_t> on_link_;  // bytes, while they are added up
};

/// Which ranks are simulated: all, or one representative of each class of equivalent ranks (rank_symmetry.hpp),
/// which may be all.
enum class Ranks : std::uint8_t { all, representatives };
/// Whether representatives may be simulated: in a composed step, without skipping by rate, which is not exact, of
/// packets and fluids only on pinned paths, and if no cable fails on the way, which tells apart what was alike.
bool can_deduplicate_ranks(const Configuration& configuration);

class CompiledStep {
 public:
  /// `layout` must be the layout of `configuration`.
  CompiledStep(const Configuration& configuration, std::shared_ptr<RankLayout> layout, DagCache& dags,
               Ranks ranks = Ranks::all);

  const Configuration& configuration() const { return configuration_; }
  const RankLayout& layout() const { return *layout_; }
  const network::Transport& transport() const { return configuration_.transport; }
  const std::vector<workload::Program>& programs() const { return programs_; }  // by class of ranks
  /// Returns the representatives and the equivalent groups. With Ranks::all every rank is its own representative.
  const RankSymmetry& symmetry() const { return symmetry_; }
  /// Returns the routes of an operation in a group that is equivalent to its own, of the whole DAG's pairs.
  const Connections& connections_of(const CollectiveOp& op, GroupId group) const {
    return *layout_->connections_of(group, op.connectivity);
  }
  /// Returns the route of a connection of an operation by another routing, in its numbering. One with a switch that
  /// reduces keeps its link; throws InputError if that is missing.
  network::Route route_by(network::Router& router, CollectiveOpId id, std::uint32_t pair) const;
  /// Returns the pools of links over which packets spread; null if paths are pinned.
  const LinkPools* pools() const { return pools_.get(); }
  /// Returns the number of links and pools.
  std::size_t link_numbers() const { return pools_ ? pools_->size() : layout_->graph().links.size(); }
  bool has_all_ranks() const { return symmetry_.representative_rank.size() == layout_->ranks(); }
  const IdVector<CollectiveOpId, CollectiveOp>& collective_ops() const { return collective_ops_; }
  std::size_t instances() const { return collective_op_of_.size(); }
  /// Returns all instances; their order also breaks ties.
  IdRange<InstanceId> instance_ids() const { return collective_op_of_.ids(); }
  const CollectiveOp& collective_op_of(InstanceId instance) const {
    return collective_ops_[collective_op_of_[instance]];
  }
  CollectiveOpId collective_op_id(InstanceId instance) const { return collective_op_of_[instance]; }
  /// Returns the communicator that runs it.
  GroupId group_of(InstanceId instance) const { return group_of_instance_[instance]; }

  /// Returns the instance that operation `op` of a representative enters, and the member as which it does.
  Member instance_entered_by(RepresentativeId representative, std::uint32_t op) const;
  /// Returns the representative and its operation for a member of an instance.
  std::pair<RepresentativeId, std::uint32_t> operation_of(const Member& member) const;

 private:
  struct MemberSlot {
    InstanceId first_instance;
    std::uint32_t member = 0;
  };
  std::size_t member_slot(RepresentativeId representative, workload::Role role) const {
    return representative.value() * layout_->roles() + static_cast<std::size_t>(role);
  }
  void add_programs();
  void add_pools(const std::vector<ShapedOperations>& by_kind, DagCache& dags);
  std::vector<ShapedOperations> shapes_by_kind() const;
  std::vector<KindCollectives> collectives_of(const std::vector<ShapedOperations>& by_kind, DagCache& dags) const;
  void check_members(GroupId group) const;
  void add_group(GroupId group, const std::vector<GroupId>& equivalent_groups, const ShapedOperations& operations,
                 DagCache& dags, LinkLoads& link_loads);
  void add_collective_op(const std::vector<GroupId>& equivalent_groups, const collective::Shape& shape, DagCache& dags,
                         LinkLoads& link_loads);
  /// Returns connections of a quotient, or all, with representative links. Equal arguments give the same object.
  std::shared_ptr<const Connections> merged_connections(const std::shared_ptr<const Connections>& all,
                                                        const collective::QuotientDag* quotient);
  workload::Role role_of(GroupId group, std::uint32_t member) const;
  const OperationSequence& sequence(RankId rank, workload::Role role) const {
    return sequences_[layout_->class_of(rank)][static_cast<std::size_t>(role)];
  }

  Configuration configuration_;
  std::shared_ptr<RankLayout> layout_;
  RankSymmetry symmetry_;
  std::vector<std::uint32_t> representative_link_;       // by link; empty if every link represents itself
  std::shared_ptr<const FluidSymmetry> fluid_symmetry_;  // null but for representatives of fluids
  std::map<std::pair<const Connections*, const collective::QuotientDag*>, std::shared_ptr<const Connections>>
      merged_connections_;
  sharing::Key transport_key_;
  std::shared_ptr<LinkPools> pools_;
  std::vector<workload::Program> programs_;
  std::vector<SequencesByRole> sequences_;                    // by class
  std::vector<std::vector<std::uint32_t>> position_in_role_;  // by class and op: its index in the sequence of its role
  IdVector<CollectiveOpId, CollectiveOp> collective_ops_;
  IdVector<InstanceId, CollectiveOpId> collective_op_of_;
  IdVector<InstanceId, GroupId> group_of_instance_;
  std::vector<MemberSlot> member_slots_;  // by representative and role: member_slot()
  IdVector<GroupId, InstanceId> first_instance_;
};

}  // namespace manyworlds::core::step

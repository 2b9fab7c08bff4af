// The placement of ranks on GPUs, the communicators (groups) that they form, and the routes of these communicators.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/network/fabric/path_spread.hpp"
#include "core/network/fabric/router.hpp"
#include "core/sharing/key.hpp"
#include "core/step/layout/configuration.hpp"
#include "core/step/layout/ids.hpp"
#include "core/workload/build/given_programs.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::step {

/// Writes routes into a key with links numbered by first occurrence; a link's rate, latency and kind are written where
/// it first occurs. Consecutive routes share one numbering, until restart_numbering().
class RouteWriter {
 public:
  explicit RouteWriter(const network::Graph& graph);
  void write(sharing::KeyWriter& writer, const network::Route& route);
  void restart_numbering();

 private:
  const network::Graph& graph_;
  std::uint32_t generation_ = 1, next_ = 0;
  struct Name {
    std::uint32_t generation = 0, name = 0;
  };
  std::vector<Name> names_;  // by link; valid only in the current numbering
};

/// Returns the key of a list of routes that share one numbering of links.
sharing::Key route_signature_of(RouteWriter& names, const std::vector<network::Route>& routes);

/// Everything that determines where ranks are placed and which communicators they form.
struct ParallelConfig {
  std::int64_t tp = 1, cp = 1, dp = 1, pp = 1;
  std::int64_t ep = 1, etp = 1;  // within a stage: etp adjacent ranks share an expert, ep such sets hold all experts
  std::int64_t gpus_per_node = 8;
  bool tied_embeddings = false;  // the first and the last stage have copies of one token table
  bool has_experts = false;
  bool context_ring = true;          // cp ranks exchange in a ring
  bool context_group = false;        // cp ranks exchange collectively
  bool ring_pipeline = false;        // interleaved virtual stages: the last rank sends to the first
  bool depends_on_network = false;   // the library's choices depend on paths and switches, so these split kinds
  bool expert_ranks_differ = false;  // ranks of an expert-parallel group run different programs
  workload::StagePlacement stage_placement = workload::StagePlacement::loop;
  Placement placement = Placement::tp_dp_pp;
  std::int64_t zero_groups = 1;
  std::vector<std::uint32_t> kind_of_gpu;  // by GPU: the kind of its machine; empty: there is one kind
  /// If programs are given: the ranks that run them, the classes of which are the programs. All sizes above are 1 then.
  std::shared_ptr<const workload::GivenRanks> given;
  auto operator<=>(const ParallelConfig&) const = default;
  std::int64_t ranks() const {
    return given ? static_cast<std::int64_t>(given->program_of_rank.size()) : tp * cp * dp * pp;
  }
};
ParallelConfig parallel_config_of(const Configuration& configuration);

/// Returns the classes of the ranks, ascending, and the number of ranks in each.
std::map<workload::RankClass, std::uint32_t> classes_of(const ParallelConfig& parallel);
/// Returns the GPU that a rank is placed on.
GpuId gpu_of(const ParallelConfig& parallel, RankId rank);

/// A communicator. Sends have two members: sender, receiver.
struct Group {
  workload::Role role = workload::Role::tensor;  // role of the first member
  std::vector<RankId> ranks;
  std::uint32_t per_node = 1;  // members on each node; 1 if nodes hold unequal numbers
  std::uint32_t kind = 0;      // index in RankLayout::kinds(); groups of one kind run the same collectives
};

/// The properties of a group that, with the configuration, determine the shapes of its collectives.
struct GroupKind {
  std::uint32_t rank_class = 0;  // class of the first member: index in RankLayout::classes()
  workload::Role role = workload::Role::tensor;
  collective::Communicator communicator;  // paths and switches are set only if ParallelConfig::depends_on_network
  auto operator<=>(const GroupKind&) const = default;
};

/// Returns whether the members of such a group exchange tokens by kernels of their own, and not by the library's
/// all-to-all.
bool has_token_kernels(const Configuration& configuration, const GroupKind& group, collective::Kind kind);

/// Returns the shape of a collective of such a group.
collective::Shape shape_of(const Configuration& configuration, const GroupKind& group, collective::Kind kind,
                           std::int64_t bytes, const collective::Split& split = {});

/// Routes of a communicator's connections, over the graph's links.
struct Connections {
  std::vector<network::Route> routes;         // by pair of the DAG; if packets spread, one of the fastest ways of each
  std::vector<network::Spread> spreads = {};  // by pair of the DAG; empty if paths are pinned
  /// By pair and hop: the rate in bit/s of all links that its packets may take there. Empty for pairs that are not
  /// faster by several ways than by one, and if there are no others.
  std::vector<std::vector<std::int64_t>> rates = {};
  std::vector<std::uint32_t> links;    // the links of all routes, ascending, without repetition
  sharing::Key route_signature;        // the key of `routes`, independent of the numbers of links
  std::uint32_t signature_number = 0;  // equal signatures of a layout have equal numbers, from 0
};

/// Classes of paths: the paths of two pairs have equal numbers if their links have equal rates and latencies in the
/// same order, whichever links these are and whatever else uses them; if messages have parts, also whether the queue
/// pairs of one connection share them.
struct PathClasses {
  std::vector<std::uint32_t> class_of_pair;
  std::uint32_t number = 0;  // number of the vector `class_of_pair`: equal vectors of a layout have equal numbers
};

/// The connectivity of a DAG: its pairs of members, and the switches among the ends of these pairs.
struct Connectivity {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs, switches;
  bool operator==(const Connectivity&) const = default;
};

/// Returns the route of a pair between members on `gpus`. A switch is identified by two members, whose path crosses it.
network::Route route_of(network::Router& router, const Connectivity& connectivity,
                        const std::vector<std::uint32_t>& gpus, std::size_t pair, std::uint64_t entropy);

/// Describes the communicator of `gpus`, `per_node` of them in each node, with the paths between its first members.
collective::Communicator communicator_of(network::Router& router, const std::vector<std::uint32_t>& gpus,
                                         std::uint32_t per_node);

/// How packets spread over the paths of a fabric.
struct Spreading {
  std::shared_ptr<network::PathSpreads> paths;  // null: paths are pinned
  bool in_packets = false;  // every packet is simulated, so that results depend on each path of the fabric
  bool operator==(const Spreading&) const = default;
};

struct FluidSymmetry;
/// The collectives that groups of one kind run.
struct KindCollectives {
  std::vector<std::shared_ptr<const collective::Dag>> dags;
  /// Members may be rotated by multiples of this; UINT32_MAX if by none, as where the DAGs do not hold the unequal
  /// bytes of some transfers.
  std::uint32_t rotation_unit = 1;
  auto operator<=>(const KindCollectives&) const = default;
};

/// The ranks of a configuration on a fabric. Not thread-safe: connections are built on first use and kept.
class RankLayout {
 public:
  /// Throws core::InputError if a pair of ranks has no path, when their connection is first requested.
  RankLayout(const ParallelConfig& parallel, std::shared_ptr<network::Router> router, Spreading spreading = {});

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(gpu_of_.size()); }
  IdRange<RankId> rank_ids() const { return gpu_of_.ids(); }
  GpuId gpu_of(RankId rank) const { return gpu_of_[rank]; }
  std::uint32_t stage_of(RankId rank) const { return rank.value() / per_stage_; }
  std::uint32_t ranks_per_stage() const { return per_stage_; }
  const std::vector<workload::RankClass>& classes() const { return classes_; }  // ascending
  std::uint32_t class_of(RankId rank) const { return class_of_[rank]; }
  std::uint32_t class_size(std::uint32_t number) const { return class_sizes_[number]; }  // number of ranks
  const IdVector<GroupId, Group>& groups() const { return groups_; }
  const std::vector<GroupKind>& kinds() const { return kinds_; }
  /// Returns the group in which `rank` has `role`, or kNoGroup if there is none; member_of() is its index in that
  /// group, if there is one.
  GroupId group_of(RankId rank, workload::Role role) const { return places_[place_of(rank, role)].group; }
  std::uint32_t member_of(RankId rank, workload::Role role) const { return places_[place_of(rank, role)].member; }
  /// Returns the number of roles that ranks may have.
  std::size_t roles() const { return roles_; }

  /// Returns a number for the connectivity of `dag`, equal for all DAGs with the same pairs and switches.
  std::uint32_t connectivity_number(const collective::Dag& dag);
  /// Returns the routes of those pairs between the members of `group`.
  const std::shared_ptr<const Connections>& connections_of(GroupId group, std::uint32_t pairs);
  /// Returns the path class of each pair of `dag` between the members of `group`.
  const PathClasses& path_classes(GroupId group, const collective::Dag& dag);
  /// Returns collective::rotation_period() of `dag` on these paths, cached.
  std::uint32_t rotation_period(const std::shared_ptr<const collective::Dag>& dag, const PathClasses& path_classes);
  std::size_t signature_count() const {
    return signature_numbers_.size();
  }  // number of distinct signatures of the connections so far
  /// Returns the key of every route that groups use for the pairs of their kind in `pairs_of_kind`, under one common
  /// numbering of links.
  const sharing::Key& full_route_signature(const std::vector<std::vector<std::uint32_t>>& pairs_of_kind);
  const network::Graph& graph() const { return router_->graph(); }
  /// Returns the key of all vertices and links.
  const sharing::Key& fabric_key();
  /// The symmetries under fluid fidelity of steps on this layout, by the collectives of each of kinds(); a cache.
  std::map<std::vector<KindCollectives>, std::shared_ptr<const FluidSymmetry>>& fluid_symmetries() {
    return fluid_symmetries_;
  }
  /// Returns the spreads of its connections; null if their paths are pinned.
  const std::shared_ptr<network::PathSpreads>& spreads() const { return spreading_.paths; }

  static constexpr GroupId kNoGroup{UINT32_MAX};

 private:
  struct RouteTable {
    Connectivity connectivity;
    IdVector<GroupId, std::shared_ptr<const Connections>> by_group;
    std::map<std::pair<GroupId, bool>, PathClasses> path_classes = {};  // and whether messages have parts
  };
  /// The group in which a rank has a role, and its place there.
  struct Place {
    GroupId group = kNoGroup;
    std::uint32_t member = 0;
  };
  std::size_t place_of(RankId rank, workload::Role role) const {
    return rank.value() * roles_ + static_cast<std::size_t>(role);
  }
  void add_given(const workload::GivenRanks& given);
  void add_groups(const ParallelConfig& parallel);
  void add_expert_groups(const ParallelConfig& parallel, const std::vector<RankId>& first_ranks);
  /// Adds the groups of ranks that hold replicas of the same parameters: the groups among which ZeRO shards them, and
  /// the groups across those. With `groups` = 1, also without ZeRO, all ranks are one group.
  void add_replicas(workload::Role role, workload::Role across, std::int64_t groups, std::vector<RankId> ranks);
  void add_group(workload::Role role, std::vector<RankId> ranks, workload::Role role_of_others);
  void number_kinds(bool by_network);
  std::vector<std::uint32_t> gpus_of(const Group& group) const;
  void add_spreads(Connections& connections, const Connectivity& connectivity, const std::vector<std::uint32_t>& gpus);

  std::int64_t gpus_per_node_;
  std::uint32_t per_stage_;
  std::shared_ptr<network::Router> router_;
  Spreading spreading_;
  std::optional<sharing::Key> fabric_key_;
  IdVector<RankId, GpuId> gpu_of_;
  std::vector<workload::RankClass> classes_;
  IdVector<RankId, std::uint32_t> class_of_;
  std::vector<std::uint32_t> class_sizes_;  // by class
  IdVector<GroupId, Group> groups_;
  std::vector<GroupKind> kinds_;
  std::size_t roles_ = workload::kRoles;
  std::vector<Place> places_;  // by rank and role: place_of()
  RouteWriter writer_;
  std::vector<RouteTable> route_tables_;
  std::map<sharing::Key, std::uint32_t> signature_numbers_;
  std::map<std::vector<std::int64_t>, std::uint32_t> path_numbers_;          // by rates and latencies of the links
  std::map<std::vector<std::uint32_t>, std::uint32_t> path_vector_numbers_;  // by the numbers of the paths
  std::map<std::pair<std::shared_ptr<const collective::Dag>, std::uint32_t>, std::uint32_t> rotation_periods_;
  std::map<std::vector<std::vector<std::uint32_t>>, sharing::Key> full_signatures_;
  std::map<std::vector<KindCollectives>, std::shared_ptr<const FluidSymmetry>> fluid_symmetries_;
};

}  // namespace manyworlds::core::step

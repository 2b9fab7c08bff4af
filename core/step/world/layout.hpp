// Where the ranks of a world sit, which communicators they form, and the routes those use.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/collective/dag/rotation.hpp"
#include "core/network/fabric/fabric.hpp"
#include "core/sharing/key.hpp"
#include "core/step/world/configuration.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::step {

/// DAGs by shape, shared by the worlds of one process (not thread-safe).
class Dags {
 public:
  std::shared_ptr<const collective::Dag> get(const collective::Shape& shape);
  /// One with the transfers, connections and order of get(shape), which may carry other bytes: shapes that differ in
  /// these alone have it together where bytes decide nothing else, as in rings that are not cut into chunks.
  std::shared_ptr<const collective::Dag> like(const collective::Shape& shape);
  /// Of a DAG that this gave.
  const collective::Turned& turned(const std::shared_ptr<const collective::Dag>& dag, std::uint32_t turn);

 private:
  std::map<collective::Shape, std::shared_ptr<const collective::Dag>> dags_;
  std::map<std::pair<const collective::Dag*, std::uint32_t>, collective::Turned> turned_;
};

/// Whether like(shape) is of all shapes that differ in bytes alone; their transfers have few sizes then.
bool bytes_decide_nothing(const collective::Shape& shape);
/// What each of its transfers carries on the wire, where like(shape) leaves that open; -1: not all the same.
std::int64_t bytes_of_each(const collective::Shape& shape);

/// Writes routes with their links renamed by first occurrence, and each link's figures where it first occurs.
/// Routes written one after another share one naming, until it is forgotten.
class RouteWriter {
 public:
  explicit RouteWriter(const network::Graph& graph);
  void write(sharing::Writer& writer, const network::Route& route);
  void forget();

 private:
  const network::Graph& graph_;
  std::uint32_t naming_ = 1, next_ = 0;
  struct Name {
    std::uint32_t naming = 0, name = 0;
  };
  std::vector<Name> names_;  // by link; of an older naming: none
};

/// The key of routes that share one naming.
sharing::Key form_of(RouteWriter& names, const std::vector<network::Route>& routes);

/// All that decides where ranks sit and which communicators they form.
struct Arrangement {
  std::int64_t tp = 1, cp = 1, dp = 1, pp = 1;
  std::int64_t ep = 1, etp = 1;  // of the ranks of a stage: etp neighbours share an expert, ep of these all experts
  std::int64_t gpus_per_node = 8;
  bool tied_embeddings = false;
  bool has_experts = false;
  bool context_ring = true;          // cp ranks pass on in a ring, else all of them communicate
  bool closed_pipeline = false;      // virtual stages: the last rank hands on to the first
  bool looks_at_network = false;     // as the library does: groups with other paths or switches are of other kinds
  bool expert_ranks_differ = false;  // the ranks that share experts run programs of their own
  workload::Folding folding = workload::Folding::loop;
  Placement placement = Placement::tp_dp_pp;
  std::int64_t zero_groups = 1;
  std::vector<std::uint32_t> machines;  // their kinds by GPU; empty: there is one
  auto operator<=>(const Arrangement&) const = default;
};
Arrangement arrangement_of(const Configuration& configuration);

/// The classes of its ranks, ascending, and how many ranks are in each.
std::map<workload::RankClass, std::uint32_t> classes_of(const Arrangement& arrangement);
/// The GPU that a rank sits on.
std::uint32_t gpu_of(const Arrangement& arrangement, std::uint32_t rank);

/// A communicator. Sends have two members: sender, receiver.
struct Group {
  workload::Role role = workload::Role::tensor;  // as the first member names it
  std::vector<std::uint32_t> ranks;
  std::uint32_t per_node = 1;  // members that share a node, 1 if nodes hold unequal numbers
  std::uint32_t kind = 0;      // groups of one kind run the same collectives: in Layout::kinds()
};

/// What decides on the shapes of a group's collectives, beside the configuration.
struct GroupKind {
  std::uint32_t rank_class = 0;  // of its first member: in Layout::classes()
  workload::Role role = workload::Role::tensor;
  collective::Communicator who;  // its paths and switches only where an Arrangement looks at the network
  auto operator<=>(const GroupKind&) const = default;
};

collective::Shape shape_of(const Configuration& configuration, const GroupKind& group, collective::Kind kind,
                           std::int64_t bytes, const collective::Split& split = {});

/// Routes of a communicator's connections, over the graph's links.
struct Connections {
  std::vector<network::Route> routes;  // by pair of the DAG
  std::vector<std::uint32_t> links;    // every link of them once, ascending
  sharing::Key form;                   // what they are whatever their links are called: form_of(routes)
  std::uint32_t form_number = 0;       // equal forms of a layout have equal numbers, from 0
};

/// What transfers find on the way: equal numbers stand for links of equal figures one after another, whatever these
/// are called and whoever else uses them.
struct Paths {
  std::vector<std::uint32_t> of_pair;
  std::uint32_t number = 0;  // of `of_pair`: equal ones of a layout have equal numbers
};

/// The connections of a DAG: its pairs, and the switches among their ends.
struct Wires {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs, switches;
  bool operator==(const Wires&) const = default;
};

/// The links of a pair between `gpus`. A switch is that on the path of the two members that name it.
network::Route route_of(network::Router& router, const Wires& wires, const std::vector<std::uint32_t>& gpus,
                        std::size_t pair, std::uint64_t entropy);

/// GPUs that communicate, `per_node` of them in each node, and the paths between the first of them.
collective::Communicator communicator_of(network::Router& router, const std::vector<std::uint32_t>& gpus,
                                         std::uint32_t per_node);

/// Not thread-safe: connections are made when they are first asked for, and kept.
class Layout {
 public:
  /// Throws InputError where a pair of ranks has no path, when its connection is asked for.
  Layout(const Arrangement& arrangement, std::shared_ptr<network::Router> router);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(gpu_of_.size()); }
  std::uint32_t gpu_of(std::uint32_t rank) const { return gpu_of_[rank]; }
  std::uint32_t stage_of(std::uint32_t rank) const { return rank / per_stage_; }
  std::uint32_t ranks_of_stage() const { return per_stage_; }
  const std::vector<workload::RankClass>& classes() const { return classes_; }  // ascending
  std::uint32_t class_of(std::uint32_t rank) const { return class_of_[rank]; }
  std::uint32_t class_size(std::uint32_t number) const { return class_sizes_[number]; }  // in ranks
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<GroupKind>& kinds() const { return kinds_; }
  /// The group in which `rank` plays `role`, and its place there; kNoGroup if it does not.
  std::uint32_t group_of(std::uint32_t rank, workload::Role role) const {
    return group_of_[rank][static_cast<std::size_t>(role)];
  }
  std::uint32_t member_of(std::uint32_t rank, workload::Role role) const {
    return member_of_[rank][static_cast<std::size_t>(role)];
  }

  /// A number for the pairs of `dag`, the same for every DAG with these pairs.
  std::uint32_t pairs_number(const collective::Dag& dag);
  /// Routes for those pairs between the members of `group`.
  const std::shared_ptr<const Connections>& connect(std::uint32_t group, std::uint32_t pairs);
  const Paths& paths(std::uint32_t group, const collective::Dag& dag);
  /// As collective::least_turn(), of a DAG that lasts as long as this.
  std::uint32_t least_turn(const std::shared_ptr<const collective::Dag>& dag, const Paths& paths);
  std::size_t forms() const { return forms_.size(); }  // that connections made so far have
  /// Every route that groups use for the pairs which their kind has in `pairs_of_kind`, links renamed throughout.
  const sharing::Key& whole_form(const std::vector<std::vector<std::uint32_t>>& pairs_of_kind);
  const network::Graph& graph() const { return router_->graph(); }

  static constexpr std::uint32_t kNoGroup = UINT32_MAX;

 private:
  struct Wired {
    Wires wires;
    std::vector<std::shared_ptr<const Connections>> by_group;
    std::map<std::uint32_t, Paths> paths = {};  // by group
  };
  void add_groups(const Arrangement& arrangement);
  void add_expert_groups(const Arrangement& arrangement, const std::vector<std::uint32_t>& firsts);
  /// Of ranks that hold the same: the groups that share it out, and those across them. Without ZeRO all are one group.
  void add_replicas(workload::Role role, workload::Role across, std::int64_t groups, std::vector<std::uint32_t> ranks);
  void add_group(workload::Role role, std::vector<std::uint32_t> ranks, workload::Role role_of_others);
  void number_kinds(bool by_network);
  std::vector<std::uint32_t> gpus_of(const Group& group) const;

  std::int64_t gpus_per_node_;
  std::uint32_t per_stage_;
  std::shared_ptr<network::Router> router_;
  std::vector<std::uint32_t> gpu_of_;
  std::vector<workload::RankClass> classes_;
  std::vector<std::uint32_t> class_of_;     // by rank
  std::vector<std::uint32_t> class_sizes_;  // by class
  std::vector<Group> groups_;
  std::vector<GroupKind> kinds_;
  std::vector<std::array<std::uint32_t, workload::kRoles>> group_of_, member_of_;
  RouteWriter writer_;
  std::vector<Wired> wired_;
  std::map<sharing::Key, std::uint32_t> forms_;
  std::map<std::vector<std::int64_t>, std::uint32_t> path_numbers_;    // by figures of the links
  std::map<std::vector<std::uint32_t>, std::uint32_t> paths_numbers_;  // by numbers of the paths
  std::map<std::pair<std::shared_ptr<const collective::Dag>, std::uint32_t>, std::uint32_t> turns_;
  std::map<std::vector<std::vector<std::uint32_t>>, sharing::Key> whole_forms_;
};

void write_transport(sharing::Writer& writer, const network::Transport& transport);
void write_options(sharing::Writer& writer, const OptionSet& values);
void write_shape(sharing::Writer& writer, const collective::Shape& shape);

/// What write_transport() writes, for keys of many things on one transport.
sharing::Key transport_key(const network::Transport& transport);

/// The key of a collective of this shape on connections of this form, entered by all members at once and alone.
sharing::Key collective_key(const collective::Shape& shape, const sharing::Key& form, const sharing::Key& transport);

}  // namespace manyworlds::core::step

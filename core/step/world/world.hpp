// A configuration turned into what runs: the program of every rank, and every collective any of them enters. Ranks
// that go alike (likeness.hpp) may be one player, and groups that do one group: what counts is counted for all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/sharing/key.hpp"
#include "core/step/world/likeness.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::step {

/// A collective operation of a group: what every instance of it has in common.
struct Use {
  std::uint32_t group = 0;
  collective::Shape shape;
  std::shared_ptr<const collective::Dag> dag;      // of members that go alike one is in it
  std::shared_ptr<const Connections> connections;  // of that DAG
  sharing::Key key;                                // of an isolated instance, all members entering at once
  // Of all groups that it stands for together:
  std::vector<std::pair<sharing::Key, std::int64_t>> keys;  // how many of them have which
  std::int64_t groups = 1;
  std::int64_t link_hops = 0;  // packets times links
  std::int64_t transfers = 0;
  std::vector<std::pair<std::uint32_t, Time>> busy;  // network links and how long one instance occupies them
  /// How many members of each group each of its DAG's stands for.
  std::int64_t turns() const { return dag->members == 0 ? 1 : shape.members / dag->members; }
};

/// What one instance of a use puts on its links.
struct Carried {
  std::int64_t link_hops = 0;                                      // packets times links
  std::vector<std::pair<std::uint32_t, std::int64_t>> on_network;  // network links and bytes, headers included
};
/// What a DAG puts on one of its connections.
struct PairLoad {
  std::int64_t packets = 0, bytes = 0;  // headers included
};
/// Adds up what connections carry, of one use after another; `transport` and `graph` outlive this.
class LinkLoads {
 public:
  LinkLoads(const network::Transport& transport, const network::Graph& graph);
  Carried of(const Use& use);
  /// `stand_in`, where it is given, names for each connection the one in `loads` that is like it.
  Carried of(const std::vector<PairLoad>& loads, const Connections& connections,
             const std::vector<std::uint32_t>* stand_in = nullptr);

 private:
  const network::Transport& transport_;
  const network::Graph& graph_;
  std::vector<std::int64_t> on_link_;  // bytes, while they are added up
};

/// Who is simulated: every rank, or of those that go alike one. The second is for fidelity analytic.
enum class Ranks : std::uint8_t { all, unlike };
/// Whether that one says it all: where collectives do not touch each other.
bool one_of_alike_is_enough(const Configuration& of);

class World {
 public:
  /// `layout` must be that of the configuration.
  World(const Configuration& configuration, std::shared_ptr<Layout> layout, Dags& dags, Ranks ranks = Ranks::all);

  const Configuration& configuration() const { return configuration_; }
  const Layout& layout() const { return *layout_; }
  const network::Transport& transport() const { return configuration_.transport; }
  const std::vector<workload::Program>& programs() const { return programs_; }  // by class of ranks
  /// Players, the ranks they stand for, and groups that go alike. With Ranks::all a player is its rank.
  const Likeness& likeness() const { return likeness_; }
  bool has_all_ranks() const { return likeness_.first.size() == layout_->ranks(); }
  const std::vector<Use>& uses() const { return uses_; }
  std::size_t instances() const { return use_of_.size(); }
  /// Instances are numbered by group, then by the order in which the group runs them; this order ranks ties.
  const Use& use_of(std::uint32_t instance) const { return uses_[use_of_[instance]]; }
  std::uint32_t use_number(std::uint32_t instance) const { return use_of_[instance]; }
  /// The communicator that runs it: in Layout::groups().
  std::uint32_t group_of(std::uint32_t instance) const { return group_of_instance_[instance]; }

  /// The instance that operation `op` of a player enters, and as which member.
  std::pair<std::uint32_t, std::uint32_t> entered_by(std::uint32_t player, std::uint32_t op) const;
  /// The player and operation behind a member of an instance.
  std::pair<std::uint32_t, std::uint32_t> operation_of(std::uint32_t instance, std::uint32_t member) const;

 private:
  struct Sequence {  // of a role in a program
    std::vector<std::uint32_t> ops;
  };
  struct Seat {
    std::uint32_t first_instance = 0, member = 0;
  };
  /// Distinct operations of a kind of groups, and which of them each one in the sequence is.
  struct Repertoire {
    std::vector<collective::Shape> shapes;
    std::vector<std::uint32_t> sequence;
  };
  void add_programs();
  std::vector<Repertoire> repertoires() const;
  static std::vector<Collectives> collectives_of(const std::vector<Repertoire>& by_kind, Dags& dags);
  void check_members(std::uint32_t group) const;
  void add_group(std::uint32_t group, const std::vector<std::uint32_t>& alike, const Repertoire& runs, Dags& dags,
                 LinkLoads& carried);
  void add_use(const std::vector<std::uint32_t>& alike, const collective::Shape& shape, Dags& dags, LinkLoads& carried);
  workload::Role role_of(std::uint32_t group, std::uint32_t member) const;
  const Sequence& sequence(std::uint32_t rank, workload::Role role) const {
    return sequences_[layout_->class_of(rank)][static_cast<std::size_t>(role)];
  }

  Configuration configuration_;
  std::shared_ptr<Layout> layout_;
  Likeness likeness_;
  sharing::Key transport_key_;
  std::vector<workload::Program> programs_;
  std::vector<std::array<Sequence, workload::kRoles>> sequences_;  // by class
  std::vector<std::vector<std::uint32_t>> place_;                  // by class and op: its place in its role's sequence
  std::vector<Use> uses_;
  std::vector<std::uint32_t> use_of_, group_of_instance_;  // by instance
  std::vector<std::array<Seat, workload::kRoles>> seats_;  // by player
  std::vector<std::uint32_t> first_instance_;              // by group
};

}  // namespace manyworlds::core::step

// A configuration turned into what runs: the program of every rank, and every collective any of them enters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/collective/dag.hpp"
#include "core/sharing/key.hpp"
#include "core/step/layout.hpp"
#include "core/workload/program.hpp"

namespace manyworlds::core::step {

/// A collective operation of a group: what every instance of it has in common.
struct Use {
  std::uint32_t group = 0;
  collective::Shape shape;
  std::shared_ptr<const collective::Dag> dag;
  std::shared_ptr<const Connections> connections;
  sharing::Key key;                                  // of an isolated instance, all members entering at once
  std::int64_t link_hops = 0;                        // packets times links
  std::vector<std::pair<std::uint32_t, Time>> busy;  // network links and how long one instance occupies them
};

/// What one instance of a use puts on its links.
struct Carried {
  std::int64_t link_hops = 0;                                      // packets times links
  std::vector<std::pair<std::uint32_t, std::int64_t>> on_network;  // network links and bytes, headers included
};
Carried carried_by(const Use& use, const network::Transport& transport, const network::Graph& graph);

class World {
 public:
  /// `layout` must be that of the configuration.
  World(const Configuration& configuration, std::shared_ptr<Layout> layout, Dags& dags);

  const Configuration& configuration() const { return configuration_; }
  const Layout& layout() const { return *layout_; }
  const network::Transport& transport() const { return configuration_.transport; }
  const std::vector<workload::Program>& programs() const { return programs_; }  // by class of ranks
  const std::vector<Use>& uses() const { return uses_; }
  std::size_t instances() const { return use_of_.size(); }
  /// Instances are numbered by group, then by the order in which the group runs them; this order ranks ties.
  const Use& use_of(std::uint32_t instance) const { return uses_[use_of_[instance]]; }
  std::uint32_t use_number(std::uint32_t instance) const { return use_of_[instance]; }
  /// The communicator that runs it: in Layout::groups().
  std::uint32_t group_of(std::uint32_t instance) const { return group_of_instance_[instance]; }

  /// The instance that operation `op` of `rank` enters, and as which member.
  std::pair<std::uint32_t, std::uint32_t> entered_by(std::uint32_t rank, std::uint32_t op) const;
  /// The rank and operation behind a member of an instance.
  std::pair<std::uint32_t, std::uint32_t> operation_of(std::uint32_t instance, std::uint32_t member) const;

 private:
  struct Sequence {  // of a role in a program
    std::vector<std::uint32_t> ops;
  };
  std::uint32_t add_use(std::uint32_t group, const workload::Op& op, const collective::Split& split, Dags& dags,
                        std::map<std::pair<std::uint32_t, collective::Shape>, std::uint32_t>& known);
  workload::Role role_of(std::uint32_t group, std::uint32_t member) const;
  const Sequence& sequence(std::uint32_t rank, workload::Role role) const {
    return sequences_[layout_->class_of(rank)][static_cast<std::size_t>(role)];
  }

  Configuration configuration_;
  std::shared_ptr<Layout> layout_;
  sharing::Key transport_key_;
  std::vector<workload::Program> programs_;
  std::vector<std::array<Sequence, workload::kRoles>> sequences_;  // by class
  std::vector<std::vector<std::uint32_t>> place_;                  // by class and op: its place in its role's sequence
  std::vector<Use> uses_;
  std::vector<std::uint32_t> use_of_, group_of_instance_;  // by instance
  std::vector<std::uint32_t> first_instance_;              // by group
};

}  // namespace manyworlds::core::step

// Where the ranks of a world sit, which communicators they form, and the routes those use.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/collective/dag.hpp"
#include "core/network/fabric.hpp"
#include "core/sharing/key.hpp"
#include "core/step/configuration.hpp"
#include "core/workload/program.hpp"

namespace manyworlds::core::step {

/// DAGs by shape, shared by the worlds of one process (not thread-safe).
class Dags {
 public:
  std::shared_ptr<const collective::Dag> get(const collective::Shape& shape);

 private:
  std::map<collective::Shape, std::shared_ptr<const collective::Dag>> dags_;
};

/// A communicator. Sends have two members: sender, receiver.
struct Group {
  workload::Role role = workload::Role::tensor;  // as the first member names it
  std::vector<std::uint32_t> ranks;
  std::uint32_t per_node = 1;  // for the two-level form: members that share a node, 1 if nodes hold unequal numbers
};

/// Routes of a communicator's connections, over the graph's links.
struct Connections {
  std::vector<network::Route> routes;  // by pair of the DAG
  std::vector<std::uint32_t> links;    // every link of them once, ascending
};

class Layout {
 public:
  /// `router` must belong to configuration.graph. Throws InputError where a pair of ranks has no path.
  Layout(const Configuration& configuration, std::shared_ptr<network::Router> router);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(gpu_of_.size()); }
  std::uint32_t gpu_of(std::uint32_t rank) const { return gpu_of_[rank]; }
  std::uint32_t stage_of(std::uint32_t rank) const { return rank / per_stage_; }
  const std::vector<Group>& groups() const { return groups_; }
  /// The group in which `rank` plays `role`, and its place there; kNoGroup if it does not.
  std::uint32_t group_of(std::uint32_t rank, workload::Role role) const {
    return group_of_[rank][static_cast<std::size_t>(role)];
  }
  std::uint32_t member_of(std::uint32_t rank, workload::Role role) const {
    return member_of_[rank][static_cast<std::size_t>(role)];
  }

  collective::Shape shape(std::uint32_t group, collective::Kind kind, std::int64_t bytes) const;
  /// Routes for the pairs of `dag`, which must be that of a shape of this group.
  Connections connect(std::uint32_t group, const collective::Dag& dag) const;
  const network::Graph& graph() const { return router_->graph(); }
  const network::Transport& transport() const { return transport_; }

  static constexpr std::uint32_t kNoGroup = UINT32_MAX;

 private:
  void add_group(workload::Role role, std::vector<std::uint32_t> ranks, workload::Role role_of_others);

  network::Transport transport_;
  collective::Algorithm all_reduce_;
  std::int64_t gpus_per_node_;
  std::uint32_t per_stage_;
  std::shared_ptr<network::Router> router_;
  std::vector<std::uint32_t> gpu_of_;
  std::vector<Group> groups_;
  std::vector<std::array<std::uint32_t, workload::kRoles>> group_of_, member_of_;
};

/// Writes routes with their links renamed by first occurrence, and each link's figures where it first occurs.
/// Routes written one after another share one naming.
class RouteWriter {
 public:
  RouteWriter(sharing::Writer& writer, const network::Graph& graph) : writer_(writer), graph_(graph) {}
  void write(const network::Route& route);

 private:
  sharing::Writer& writer_;
  const network::Graph& graph_;
  std::map<std::uint32_t, std::int64_t> names_;
};

void write_transport(sharing::Writer& writer, const network::Transport& transport);
void write_options(sharing::Writer& writer, const OptionSet& values);
void write_shape(sharing::Writer& writer, const collective::Shape& shape);

/// The key of a collective of this shape on these connections, entered by all members at once and alone.
sharing::Key collective_key(const collective::Shape& shape, const Connections& connections, const network::Graph& graph,
                            const network::Transport& transport);

/// The key of the whole step: what its programs are made from, and every route its communicators may use, renamed.
/// Two configurations with one key are one world, whatever the rest of their fabrics looks like.
sharing::Key step_key(const Configuration& configuration, const Layout& layout, Dags& dags);

}  // namespace manyworlds::core::step

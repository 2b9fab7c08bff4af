// The program of a rank class: operations on named streams with CUDA's semantics. An operation starts when the previous
// operation on its stream and every operation that it waits for have finished. Programs are built from a model and a
// strategy (core/workload/build), or given (given_programs.hpp): these have streams and communicators of their own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/units.hpp"
#include "core/collective/dag/kind.hpp"
#include "core/collective/dag/split.hpp"
#include "core/workload/program/step_parts.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// Those from kStreams on are a given program's own (Program::own_streams).
enum class Stream : std::uint16_t {
  compute,
  tensor,
  data,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  offload,       // copies to the host's memory
  send_context,  // context-parallel communication, except receives on a context ring
  recv_context,
  expert,
  expert_data,
  send_forward_reverse,
  recv_forward_reverse,
  send_backward_reverse,
  recv_backward_reverse,
  data_inter_group,
  expert_data_inter_group,
  reload,  // copies back from the host's memory
  host     // the host's thread that launches kernels and collectives
};
inline constexpr std::size_t kStreams = 20;
constexpr bool is_own(Stream stream) {
  return static_cast<std::size_t>(stream) >= kStreams;
}
inline constexpr std::array<const char*, kStreams> kStreamNames{"compute",
                                                                "tensor",
                                                                "data",
                                                                "send_forward",
                                                                "recv_forward",
                                                                "send_backward",
                                                                "recv_backward",
                                                                "offload",
                                                                "send_context",
                                                                "recv_context",
                                                                "expert",
                                                                "expert_data",
                                                                "send_forward_reverse",
                                                                "recv_forward_reverse",
                                                                "send_backward_reverse",
                                                                "recv_backward_reverse",
                                                                "data_inter_group",
                                                                "expert_data_inter_group",
                                                                "reload",
                                                                "host"};

/// Which communicator of the rank a collective runs on. A send has a two-member communicator: (sender, receiver). Those
/// from kRoles on are a given program's own: role_in_dimension().
enum class Role : std::uint16_t {
  tensor,
  data,  // replicas of the dense parameters, or with hybrid sharding one sharding group of them
  embedding,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  send_context,  // to the next rank of a context ring
  recv_context,
  expert,         // ranks that share a layer's experts
  expert_tensor,  // ranks that one expert is sharded over
  expert_data,    // replicas of the same experts
  // Transfers of chunks whose forward passes go to the previous rank: V-shaped pipelines and DualPipe.
  send_forward_reverse,
  recv_forward_reverse,
  send_backward_reverse,
  recv_backward_reverse,
  data_inter_group,  // ranks with the same shard in all sharding groups (hybrid sharding)
  expert_data_inter_group,
  context  // ranks that share the tokens of a sample and exchange them without a ring
};
inline constexpr std::size_t kRoles = 19;
inline constexpr std::array<const char*, kRoles> kRoleNames{"tensor",
                                                            "data",
                                                            "embedding",
                                                            "send_forward",
                                                            "recv_forward",
                                                            "send_backward",
                                                            "recv_backward",
                                                            "send_context",
                                                            "recv_context",
                                                            "expert",
                                                            "expert_tensor",
                                                            "expert_data",
                                                            "send_forward_reverse",
                                                            "recv_forward_reverse",
                                                            "send_backward_reverse",
                                                            "recv_backward_reverse",
                                                            "data_inter_group",
                                                            "expert_data_inter_group",
                                                            "context"};

/// How the ranks of a dimension of given programs communicate: in groups of two or more; in pairs that do not slow
/// kernels, as between pipeline ranks; or in pairs that do, as on the ring of a context.
enum class DimensionKind : std::uint8_t { groups, pairs, slowing_pairs };
/// The roles in a dimension: member of a group, then sender and receiver of pairs of either kind.
inline constexpr std::size_t kRolesOfDimension = 5;
constexpr Role role_in_dimension(std::size_t dimension, DimensionKind kind, bool receives = false) {
  const std::size_t end = kind == DimensionKind::groups ? 0 : kind == DimensionKind::pairs ? 1 : 3;
  return static_cast<Role>(kRoles + kRolesOfDimension * dimension + end + (receives ? 1 : 0));
}
constexpr bool is_of_dimension(Role role) {
  return static_cast<std::size_t>(role) >= kRoles;
}
constexpr std::size_t dimension_of(Role role) {
  return (static_cast<std::size_t>(role) - kRoles) / kRolesOfDimension;
}
constexpr std::size_t end_in_dimension(Role role) {
  return (static_cast<std::size_t>(role) - kRoles) % kRolesOfDimension;
}

/// Whether the role is a transfer between pipeline ranks, or in a dimension's pairs that do not slow kernels.
constexpr bool is_pipeline_transfer(Role role) {
  if (is_of_dimension(role)) return end_in_dimension(role) == 1 || end_in_dimension(role) == 2;
  return (role >= Role::send_forward && role <= Role::recv_backward) ||
         (role >= Role::send_forward_reverse && role <= Role::recv_backward_reverse);
}
/// Returns the role of the second member in a sending role's communicator; all other roles apply to every member.
constexpr Role receiver_of(Role role) {
  if (is_of_dimension(role))
    return end_in_dimension(role) % 2 == 1 ? static_cast<Role>(static_cast<std::uint16_t>(role) + 1) : role;
  switch (role) {
    case Role::send_forward:
      return Role::recv_forward;
    case Role::send_backward:
      return Role::recv_backward;
    case Role::send_context:
      return Role::recv_context;
    case Role::send_forward_reverse:
      return Role::recv_forward_reverse;
    case Role::send_backward_reverse:
      return Role::recv_backward_reverse;
    default:
      return role;
  }
}

/// Returns what waiting for the communication of a role counts as, which is not a dimension's.
constexpr StepPart exposed_part(Role role) {
  if (role == Role::tensor) return StepPart::exposed_tp;
  if (role == Role::send_context || role == Role::recv_context || role == Role::context) return StepPart::exposed_cp;
  if (role == Role::expert || role == Role::expert_tensor) return StepPart::exposed_ep;
  return is_pipeline_transfer(role) ? StepPart::exposed_pp : StepPart::exposed_dp;
}
/// Whether the role receives beside a send of the same rank that takes what both take of the GPU.
constexpr bool is_ring_receiver(Role role) {
  return role == Role::recv_context || (is_of_dimension(role) && end_in_dimension(role) == 4);
}

/// Kernels that were merged into one operation, a copy between GPU and host, or launches of the host.
struct KernelOp {
  StepPart category = StepPart::forward;  // on a program's own stream: what waiting for it counts as
  Time duration_ps = 0;
};

/// The rank's call of a collective.
struct CollectiveCall {
  Role role = Role::tensor;
  collective::Kind kind = collective::Kind::all_reduce;
  std::uint32_t split = 0;  // index into Program::splits
  std::int64_t bytes = 0;   // per rank (see collective::Kind)
};

struct Op {
  using Action = std::variant<KernelOp, CollectiveCall>;

  Stream stream = Stream::compute;
  std::uint32_t label = 0;                       // index into Program::labels, for display
  std::uint32_t waits_begin = 0, waits_end = 0;  // range in Program::waits
  Action action;

  const KernelOp* kernel() const { return std::get_if<KernelOp>(&action); }
  const CollectiveCall* collective() const { return std::get_if<CollectiveCall>(&action); }
};

struct Program {
  std::vector<Op> ops;                        // in issue order, so that every wait points to a smaller index
  std::vector<std::uint32_t> waits;           // indices of ops
  std::vector<collective::Split> splits{{}};  // distinct splits, the even one first
  std::vector<std::string> labels;
  std::vector<std::optional<PipelinePass>>
      passes;  // by label: the pass that its operations belong to, if any; may be shorter than `labels`
  std::vector<std::string> own_streams = {};      // names of the streams from kStreams on
  std::vector<StepPart> exposed_dimensions = {};  // by dimension: what waiting for its communication counts as

  std::string name_of(Stream stream) const {
    const auto number = static_cast<std::size_t>(stream);
    return number < kStreams ? kStreamNames[number] : own_streams.at(number - kStreams);
  }
  const collective::Split& split_of(const CollectiveCall& call) const { return splits[call.split]; }
  const PipelinePass* pass_of(const Op& op) const {
    return op.label < passes.size() && passes[op.label] ? &*passes[op.label] : nullptr;
  }
};

/// Returns the number of roles that a program may know: the named ones, and those of its dimensions.
inline std::size_t roles_of(const Program& program) {
  return kRoles + kRolesOfDimension * program.exposed_dimensions.size();
}

}  // namespace manyworlds::core::workload

// The program of a rank class: operations on named streams, with CUDA's semantics. An operation starts when the one
// before it on its stream and every operation it waits for have finished.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/collective/dag/kind.hpp"
#include "core/collective/dag/split.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

enum class Stream : std::uint8_t {
  compute,
  tensor,
  data,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  offload,       // copies to the host's memory, and back
  send_context,  // all communication of context parallelism but what comes round a ring
  recv_context,
  expert,
  expert_data,
  send_forward_back,
  recv_forward_back,
  send_backward_on,
  recv_backward_on,
  data_across,
  expert_data_across,
  reload
};
inline constexpr std::size_t kStreams = 19;
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
                                                                "send_forward_back",
                                                                "recv_forward_back",
                                                                "send_backward_on",
                                                                "recv_backward_on",
                                                                "data_across",
                                                                "expert_data_across",
                                                                "reload"};

/// Which communicator of the rank a collective runs on. Sends are two-member communicators: (sender, receiver).
enum class Role : std::uint8_t {
  tensor,
  data,  // replicas of the dense parameters, or those of them that share out
  embedding,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  send_context,  // to the next rank of a context ring
  recv_context,
  expert,         // ranks that share a layer's experts
  expert_tensor,  // ranks that one expert is cut over
  expert_data,    // replicas of the same experts
  // Of chunks whose forward passes go to the rank before: V-shaped pipelines, DualPipe.
  send_forward_back,
  recv_forward_back,
  send_backward_on,
  recv_backward_on,
  data_across,  // replicas of the same share
  expert_data_across,
  context  // ranks that share the tokens of a sample, where these do not go round a ring
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
                                                            "send_forward_back",
                                                            "recv_forward_back",
                                                            "send_backward_on",
                                                            "recv_backward_on",
                                                            "data_across",
                                                            "expert_data_across",
                                                            "context"};

/// Between pipeline ranks.
constexpr bool is_pipeline_transfer(Role role) {
  return (role >= Role::send_forward && role <= Role::recv_backward) ||
         (role >= Role::send_forward_back && role <= Role::recv_backward_on);
}
/// What the second member of a sending role's communicator plays; other roles are played by all.
constexpr Role receiver_of(Role role) {
  switch (role) {
    case Role::send_forward:
      return Role::recv_forward;
    case Role::send_backward:
      return Role::recv_backward;
    case Role::send_context:
      return Role::recv_context;
    case Role::send_forward_back:
      return Role::recv_forward_back;
    case Role::send_backward_on:
      return Role::recv_backward_on;
    default:
      return role;
  }
}

/// What time of the compute stream is booked under in the breakdown. `host`: no kernel runs, the next is not launched
/// yet.
enum class Booking : std::uint8_t { forward, backward, recompute, optimizer, host };
inline constexpr std::size_t kBookings = 5;
inline constexpr std::array<const char*, kBookings> kBookingNames{"forward", "backward", "recompute", "optimizer",
                                                                  "host"};

struct Op {
  bool is_collective = false;
  Stream stream = Stream::compute;
  Booking booking = Booking::forward;                    // kernels
  Role role = Role::tensor;                              // collectives
  collective::Kind kind = collective::Kind::all_reduce;  // collectives
  std::uint32_t label = 0;                               // index into Program::labels, for people
  std::uint32_t waits_begin = 0, waits_end = 0;          // into Program::waits
  std::uint32_t split = 0;                               // collectives: in Program::splits
  Time duration_ps = 0;                                  // kernels: the sum of what runs back to back
  std::int64_t bytes = 0;                                // collectives, per rank (see collective::Kind)
};

struct Program {
  std::vector<Op> ops;                        // in issue order: every wait points to a smaller index
  std::vector<std::uint32_t> waits;           // indices of ops
  std::vector<collective::Split> splits{{}};  // distinct ones, the even one first
  std::vector<std::string> labels;
  std::vector<std::optional<Slot>> passes;  // by label: the pass its operations belong to, if any; may be shorter

  const collective::Split& split_of(const Op& op) const { return splits[op.split]; }
  const Slot* pass_of(const Op& op) const {
    return op.label < passes.size() && passes[op.label] ? &*passes[op.label] : nullptr;
  }
};

}  // namespace manyworlds::core::workload

// The format of saved state that Saver and Loader share. Both visit the fields of a sender through one function, so
// that neither can omit a field or change the order.
#pragma once

#include <cstdint>

#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

/// Flags in the third word of a link.
inline constexpr std::uint64_t kLeavesGpu = 1, kEntersGpu = 2, kScaleUp = 4, kPaused = 8, kPauseWanted = 16;
/// Flags of a flow, in the word after its number of remaining packets.
inline constexpr std::uint64_t kAtNic = 1, kOffered = 2;

/// Visits the fields of a congestion-controlled flow that has packets left. The visitor distinguishes plain values
/// (`scalar`), deadlines (`deadline`; kNever if there is none), times that matter only while in the future
/// (`future_time`), past times that are equivalent beyond an age (`age`), and byte counts of a link (`link_bytes`), of
/// which only the difference to the current count matters.
template <SenderProtocol P, class FlowState, class Visitor>
void visit_sender_state(FlowState& flow, Visitor& visitor) {
  P::visit_state(flow.sender, visitor);
  visitor.future_time(flow.next_packet_at);
  if (P::kNeeds.cnps) visitor.age(flow.last_cnp, kCnpInterval);
}

}  // namespace manyworlds::core::network

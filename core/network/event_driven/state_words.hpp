// The words of a saved state, for the two who know them: the saver and the loader. Both show a flow's fields to a
// visitor in one order, below, so that neither can forget one.
#pragma once

#include <cstdint>

#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

/// Flags in a link's third word.
inline constexpr std::uint64_t kLeavesGpu = 1, kEntersGpu = 2, kScaleUp = 4, kPaused = 8, kPauseWanted = 16;
/// Flags in a flow's fourth.
inline constexpr std::uint64_t kAtNic = 1, kOffered = 2;

/// The fields of a flow whose sender has packets left and follows its protocol. The visitor takes plain values
/// (`counted`), deadlines (`due`; kNever: none), instants that matter only while they are to come (`ahead`), instants
/// in the past from some age on all alike (`age`), and a link's count of bytes (`sent_by`), of which only the
/// difference to now means anything.
template <Protocol P, class FlowState, class Visitor>
void sender_words(FlowState& flow, Visitor& visitor) {
  P::words(flow.sender, visitor);
  visitor.ahead(flow.next_packet_at);
  if (P::kWants.notices) visitor.age(flow.last_notice, kCnpInterval);
}

}  // namespace manyworlds::core::network

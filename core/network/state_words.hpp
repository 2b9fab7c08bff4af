// The words of a saved state, for the two who know them: the saver and the loader.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/network/dcqcn.hpp"

namespace manyworlds::core::network {

inline constexpr std::uint64_t kOrderMask = (1ull << 56) - 1;  // of an event's order: what is below its kind

/// Flags in a link's third word.
inline constexpr std::uint64_t kLeavesGpu = 1, kEntersGpu = 2, kScaleUp = 4, kSending = 8, kPaused = 16,
                               kPauseWanted = 32;

/// The fields of a rate control that can still change anything, in the order of their words. `counted` takes plain
/// values, `due` deadlines (kNever: none), `ahead` an instant that matters only while it is to come, and `age` how
/// long ago the receiver last told the sender, of which anything beyond the interval is alike.
template <class Rate, class Counted, class Due, class Ahead, class Age>
void rate_words(Rate& rate, Counted counted, Due due, Ahead ahead, Age age) {
  counted(rate.rate), counted(rate.target), counted(rate.alpha), counted(rate.bytes);
  counted(rate.timer_stage), counted(rate.byte_stage);
  due(rate.alpha_at), due(rate.rate_at);
  ahead(rate.next_packet_at);
  age(rate.last_cnp);
}

}  // namespace manyworlds::core::network

// How long the chunks of a collective take when its members come to it at one time: one member stands for all, as every
// other one does the same at the same time.
#pragma once

#include <cstdint>

#include "experiments/astra_sim/collectives/phases.hpp"
#include "experiments/astra_sim/files/network_file.hpp"

namespace manyworlds::experiments::astra_sim {

/// The two analytical backends: messages do not see each other, and take all latencies and one serialisation; or every
/// link takes whole messages, one after the other, and passes them on when it has them.
enum class Congestion : std::uint8_t { unaware, aware };

/// Returns whether the messages of every round have the same way for all members, of `phase` alone.
bool is_symmetric(const Phase& phase, const Network& network);

/// Returns the nanoseconds from the common begin to the end of the last chunk; up to `active_chunks` are in one
/// dimension at a time. Phases must be symmetric. Throws InputError with the network's file for what one member cannot
/// stand for: aware messages of more than one link on a ring, or to all others at once and twice over a switch; and for
/// more than 20,000,000 messages of a member.
std::int64_t chunks_ns(const Chunks& chunks, std::int64_t active_chunks, const Network& network, Congestion congestion);

}  // namespace manyworlds::experiments::astra_sim

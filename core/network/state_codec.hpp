// The state of a packet engine as canonical words, relative in time and free of slots: links are numbered by first
// occurrence along the flows' paths, flows by their order, packets by how many are still to come. Two engines whose
// words are equal go on alike for ever. What cannot change anything any more (acks of a window that no longer binds,
// rate control of a flow that has sent its last packet, timers that were overtaken) is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/network/packet_engine.hpp"

namespace manyworlds::core::network {

using Words = std::vector<std::uint64_t>;

/// A part of an engine that shares no link with the rest, as canonical words and the slots behind its numbers.
struct SavedPart {
  Words words;
  std::vector<std::uint32_t> flows;  // slot of each flow number
  std::vector<std::uint32_t> links;  // slot of each link number
};

class StateCodec {
 public:
  /// Connected parts of what is live in the engine, flows ascending by order inside each, parts by their first flow;
  /// what only waits for pause frames comes last. Empty if the engine is drained.
  static std::vector<SavedPart> save(const PacketEngine& engine);

  /// Adds a saved part to an engine at the engine's time. `orders` ranks its flows there (ascending), and
  /// `link_slots` receives the engine's slot of each link number. Returns the slot of its first flow; the others
  /// follow.
  static std::uint32_t load(PacketEngine& engine, std::span<const std::uint64_t> words,
                            std::span<const std::uint64_t> orders, std::vector<std::uint32_t>& link_slots);
};

}  // namespace manyworlds::core::network

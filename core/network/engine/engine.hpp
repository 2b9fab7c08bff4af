// What every packet engine for pinned paths offers: links and flows in, completions out, and its state as canonical
// words. One call serves many packets, so this is a plain interface; inside, engines are templates over the protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/network/fabric/fabric.hpp"
#include "core/network/fabric/pause_cycle.hpp"
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

/// What happened on the way, besides completions.
struct Counters {
  std::int64_t link_hops = 0;  // packets times links, simulated here
  std::int64_t ecn_marks = 0;
  std::int64_t pauses = 0;
  std::int64_t drops = 0, trims = 0, retransmissions = 0;
  Counters& operator+=(const Counters& other) {
    link_hops += other.link_hops, ecn_marks += other.ecn_marks, pauses += other.pauses;
    drops += other.drops, trims += other.trims, retransmissions += other.retransmissions;
    return *this;
  }
  Counters operator+(const Counters& other) const { return Counters(*this) += other; }
  Counters operator*(std::int64_t times) const {
    return {link_hops * times, ecn_marks * times, pauses * times,
            drops * times,     trims * times,     retransmissions * times};
  }
  Counters operator-(const Counters& other) const {
    return {link_hops - other.link_hops, ecn_marks - other.ecn_marks, pauses - other.pauses,
            drops - other.drops,         trims - other.trims,         retransmissions - other.retransmissions};
  }
};

/// What a link carried.
struct LinkLoad {
  std::int64_t packets = 0;
  std::int64_t bytes = 0;  // headers included
  Time busy_ps = 0;        // its packets' serialisation
};

using Words = std::vector<std::uint64_t>;

/// A part of an engine that shares no link with the rest, as canonical words and the slots behind its numbers. The
/// words are relative in time and free of slots: links are numbered by first occurrence along the flows' paths, flows
/// by their order, packets by how many are still to come. Two engines whose words are equal go on alike for ever. What
/// cannot change anything any more (acks of a window that no longer binds, timers that were overtaken) is left out.
struct SavedPart {
  Words words;
  std::vector<std::uint32_t> flows;  // slot of each flow number
  std::vector<std::uint32_t> links;  // slot of each link number
};

/// An engine that can be told to pass over what would only repeat itself.
class Repeatable {
 public:
  /// Packets that a live flow has not offered to its NIC yet.
  virtual std::uint32_t left(std::uint32_t flow_slot) const = 0;
  /// Links on its path.
  virtual std::uint32_t links(std::uint32_t flow_slot) const = 0;
  /// Engine::run() stops also at the instant at which this flow has all but `left` of its packets offered; once.
  virtual void watch(std::uint32_t flow_slot, std::uint32_t left) = 0;
  /// As the words of save(), all parts in one, but free of how much flows have left, as long as they have any: two
  /// equal ones go on alike until the first flow offers its last packet.
  virtual Words recurring() = 0;
  /// Live flows are from now on as if they had offered so many packets more (by slot; less than left() each), and
  /// everything else as it is.
  virtual void pass_over(std::span<const std::uint32_t> packets) = 0;

 protected:
  ~Repeatable() = default;
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// Forgets every link and flow, and starts again at time 0; what memory it has it keeps.
  virtual void reset() = 0;

  /// A link for flows to use; returns its slot.
  virtual std::uint32_t add_link(const LinkSpec& spec) = 0;

  /// Starts a transfer of `bytes` (>= 0; an empty one is a single header) at time now(). `order` ranks it
  /// against other flows in ties and must be unique among live flows. Returns its slot, which is used again after it
  /// ends.
  virtual std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t order) = 0;

  /// Runs until the first instant at which flows complete, but not past `limit`; appends their slots to `completed`.
  /// Afterwards now() is that instant (or `limit`).
  virtual void run(Time limit, std::vector<std::uint32_t>& completed) = 0;
  /// If flows are left that nothing will ever move: who waits for whom among their links.
  virtual PauseWaits standstill() const = 0;

  virtual Time now() const = 0;
  virtual Time quiet_since() const = 0;  // the last event
  virtual bool drained() const = 0;
  virtual const Counters& counters() const = 0;

  /// Connected parts of what is live, flows ascending by order inside each, parts by their first flow; what only waits
  /// for pause frames comes last. Empty if the engine is drained.
  virtual std::vector<SavedPart> save() = 0;

  /// Adds a saved part at now(). `orders` ranks its flows here (ascending); `flow_slots` and `link_slots` receive the
  /// slot of each flow and link number.
  virtual void load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
                    std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) = 0;

  /// Ranks a live flow anew.
  virtual void set_order(std::uint32_t flow_slot, std::uint64_t order) = 0;

  virtual std::unique_ptr<Engine> clone() const = 0;

  /// Null if it cannot be told to.
  virtual Repeatable* repeatable() { return nullptr; }
};

}  // namespace manyworlds::core::network

// The interface of the packet engines for pinned paths: it accepts links and flows, returns completions, and saves and
// loads the state as canonical words. One call simulates many packets, so virtual functions are affordable here; the
// engines themselves are templates over the transport protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/network/fabric/pfc_deadlock.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

/// Event counts of a simulation.
struct Counters {
  std::int64_t link_hops = 0;  // simulated packets times links
  std::int64_t ecn_marks = 0;
  std::int64_t pauses = 0;
  std::int64_t drops = 0, trims = 0, retransmissions = 0;
  std::int64_t lost = 0;  // packets on, before or behind a cable that has failed
  Counters& operator+=(const Counters& other) {
    link_hops += other.link_hops, ecn_marks += other.ecn_marks, pauses += other.pauses;
    drops += other.drops, trims += other.trims, retransmissions += other.retransmissions, lost += other.lost;
    return *this;
  }
  Counters operator+(const Counters& other) const { return Counters(*this) += other; }
  Counters operator*(std::int64_t times) const {
    return {link_hops * times, ecn_marks * times,       pauses * times, drops * times,
            trims * times,     retransmissions * times, lost * times};
  }
  Counters operator-(const Counters& other) const {
    return {link_hops - other.link_hops,
            ecn_marks - other.ecn_marks,
            pauses - other.pauses,
            drops - other.drops,
            trims - other.trims,
            retransmissions - other.retransmissions,
            lost - other.lost};
  }
};

/// The traffic that a link has carried.
struct LinkLoad {
  std::int64_t packets = 0;
  std::int64_t bytes = 0;  // including headers
  Time busy_ps = 0;        // total serialization time of its packets
};

using StateWords = std::vector<std::uint64_t>;

/// The state of a flow component, that is, of flows that share no link with the rest of the engine: canonical words,
/// and the engine slots of its flows and links. The words contain neither absolute times nor slots: links are numbered
/// by first occurrence along the flows' paths, flows by tie order, and packets counting down to 1, the last of the
/// flow. Engines with equal words therefore behave identically from then on. State that can no longer affect the result
/// (acks of a window that no longer limits the flow, superseded timers) is omitted.
struct ComponentState {
  StateWords words;
  Time least_ps = 0;                 // no flow completes earlier from here, whatever else starts; 0 without flows
  std::vector<std::uint32_t> flows;  // engine slot by flow number
  std::vector<std::uint32_t> links;  // engine slot by link number
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// Removes every link and flow and restarts at time 0; allocated memory is reused.
  virtual void reset() = 0;

  /// Adds a link that flows can use and returns its slot.
  virtual std::uint32_t add_link(const LinkSpec& spec) = 0;

  /// Starts a transfer of `bytes` (>= 0; an empty one is a single header) at time now() and returns its slot, which is
  /// reused after the flow has completed. The tie order ranks the flow among simultaneous events of several flows; it
  /// must be unique among live flows.
  virtual std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t tie_order) = 0;

  /// Runs until the first instant at which flows complete, but not past `limit`, and appends their slots to
  /// `completed`. Afterwards now() is that instant, or `limit`.
  virtual void run(Time limit, std::vector<std::uint32_t>& completed) = 0;
  /// Returns the waits among paused links if live flows can never make progress again; empty otherwise.
  virtual PauseDependencies deadlock() const = 0;

  virtual Time now() const = 0;
  virtual Time last_activity() const = 0;  // time of the last event
  virtual bool drained() const = 0;
  virtual const Counters& counters() const = 0;

  /// Returns the state of every flow component. Flows are sorted by tie order within a component, components by their
  /// first flow; components of links that only await pause frames come last. Empty if the engine is drained.
  virtual std::vector<ComponentState> save() = 0;

  /// Adds a saved component at now(). `tie_orders` (ascending) are the tie orders of its flows in this engine;
  /// `flow_slots` and `link_slots` receive the slot of each flow number and link number.
  virtual void load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> tie_orders,
                    std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) = 0;

  /// Changes the tie order of a live flow.
  virtual void set_tie_order(std::uint32_t flow_slot, std::uint64_t tie_order) = 0;

  virtual std::unique_ptr<Engine> clone() const = 0;

  // An engine can be fast-forwarded over repetitions of a periodic state.
  /// Returns the number of packets that a live flow has not yet offered to its NIC.
  virtual std::uint32_t remaining(std::uint32_t flow_slot) const = 0;
  /// Returns the number of links on the path of a flow.
  virtual std::uint32_t links(std::uint32_t flow_slot) const = 0;
  /// Makes run() also stop, once, at the instant at which this flow has `remaining` packets left to offer.
  virtual void watch(std::uint32_t flow_slot, std::uint32_t remaining) = 0;
  /// Returns the words of save() for all components together, but without the numbers of remaining packets, except for
  /// whether they are zero. Engines with equal words behave identically until a flow offers its last packet.
  virtual StateWords periodic_state() = 0;
  /// Reduces the remaining packets of live flows by `packets` (indexed by slot; each less than remaining()) and leaves
  /// everything else unchanged.
  virtual void skip(std::span<const std::uint32_t> packets) = 0;
};

}  // namespace manyworlds::core::network

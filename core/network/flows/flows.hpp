// The interface of flow simulations on a set of links. Two implementations give the same picoseconds: plain flows, one
// event loop for all flows (the oracle), and decomposed flows, which simulate connected components of flows that share
// links and cache their results (the fast one). A third, analytic flows, gives a lower bound.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/fabric/failing_cables.hpp"

namespace manyworlds::core::network {

/// A transfer of a collective. Simultaneous flows are ordered by (tie order of the collective, transfer).
struct FlowId {
  std::uint32_t collective = 0;
  std::uint32_t transfer = 0;
  auto operator<=>(const FlowId&) const = default;
};

class Flows {
 public:
  virtual ~Flows() = default;

  /// Adds a link and returns its number.
  virtual std::uint32_t add_link(const LinkSpec& spec) = 0;
  /// Registers a route over links of add_link() and returns its number.
  virtual std::uint32_t add_route(const Route& route) = 0;
  /// Sets the tie order of each collective, indexed by its number. Values may change between instants as long as the
  /// relative order of collectives with live flows stays; plain and per-packet flows only accept new collectives at the
  /// end and throw InternalError if an earlier value changes.
  virtual void set_tie_order(const std::vector<std::uint32_t>& order_of_collective) = 0;
  /// Appends the tie order of the next collective; the others stay as they are.
  virtual void add_tie_order(std::uint32_t position) = 0;

  /// Starts a transfer at now().
  virtual void start(FlowId id, std::uint32_t route, std::int64_t bytes) = 0;
  /// Advances to the first instant at which transfers complete, at most to `limit`, and appends them to `finished` in
  /// ascending order. If the limit is kNever and nothing completes, now() does not change.
  virtual void advance(Time limit, std::vector<FlowId>& finished) = 0;
  /// After an advance(kNever) that completed nothing: returns which link waits for which, if paused links block
  /// transfers for ever (PFC deadlock).
  virtual PauseDependencies deadlock() const { return {}; }

  virtual Time now() const = 0;
  /// Returns whether no packet or pause is left that could affect a later flow.
  virtual bool drained() const = 0;
  /// Returns the time of the last event; if drained, the time at which it drained.
  virtual Time last_activity() const = 0;
  virtual const Counters& counters() const = 0;
  /// Returns the load of each link if packets are routed hop by hop; empty if the routes determine it.
  virtual std::vector<LinkLoad> loads() const { return {}; }
  /// Records from now on when the senders of transfers with in-band acknowledgements received the last one.
  virtual void record_acknowledgements() {}
  virtual std::vector<std::pair<FlowId, Time>> acknowledgements() const { return {}; }
  virtual std::unique_ptr<Flows> clone() const = 0;
  /// Takes over the links, routes and transfers of `other`, of the same implementation and with the same clock but for
  /// `shift`, which is added to its times. Its links, routes and collectives are numbered on from those known so far;
  /// the tie order must be set anew before anything else is done. Throws InternalError unless flows are decomposed.
  virtual void absorb(Flows& other, Time shift);
};

/// Returns plain flows: one event loop on the engine for pinned paths.
std::unique_ptr<Flows> make_plain_flows(const Transport& transport);

/// Returns flows on the per-packet engine for a whole fabric, whose links must be added in the order of the graph. Only
/// the end points of a route matter unless the transport pins its paths. advance() throws InputError on a PFC deadlock.
std::unique_ptr<Flows> make_per_packet_flows(const Transport& transport, std::shared_ptr<const Graph> graph);

/// Returns the same on a fabric whose cables fail on the way, the per-packet engine's for every transport. From a
/// failure on, what its cable carries and what comes to it is lost, and until routes avoid it all that takes it.
/// `new_route` returns a route that was added, by its number, as the routing of what is left then has it, in that
/// routing's numbering; only its ends matter unless the transport pins its paths. On a lossless fabric senders know
/// what they have lost after `failures.retransmit_ps` (per_packet/congestion_controlled.hpp); it must be 0 on others,
/// whose transports find out by themselves.
using NewRoute = std::function<Route(Router& router, std::uint32_t number)>;
std::unique_ptr<Flows> make_failing_flows(const Transport& transport, std::shared_ptr<const Graph> graph,
                                          const LinkFailures& failures, NewRoute new_route);

class ComponentCache;
/// Returns decomposed flows. The cache must outlive them; it may serve many flows with the same transport.
std::unique_ptr<Flows> make_decomposed_flows(const Transport& transport, ComponentCache& cache);

/// Returns analytic flows: every transfer as if it were alone, a lower bound of the others.
std::unique_ptr<Flows> make_analytic_flows(const Transport& transport);
/// Returns the duration of a transfer over otherwise idle links with these specs, without limits by its transport.
Time uncontended_ps(const Transport& transport, const std::vector<LinkSpec>& path, std::int64_t bytes);

/// Return the implementation for the fidelity of the transport: plain or analytic flows; with a cache, decomposed or
/// analytic flows. With a fabric, or a cache that has one, these are per-packet flows if the transport needs them;
/// then all links of the fabric must be added, in its order.
std::unique_ptr<Flows> make_flows(const Transport& transport);
std::unique_ptr<Flows> make_flows(const Transport& transport, std::shared_ptr<const Graph> fabric);
std::unique_ptr<Flows> make_flows(ComponentCache& cache);

}  // namespace manyworlds::core::network

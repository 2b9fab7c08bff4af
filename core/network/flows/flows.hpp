// Flows over a set of links, in one of two ways that give the same picoseconds: plainly, in one event loop (the
// oracle), or divided into clusters that share links and remembered (the fast way). A third, analytic, is a lower
// bound.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/network/engine/engine.hpp"

namespace manyworlds::core::network {

/// A transfer of a collective. In ties flows rank by (rank of the collective, transfer).
struct FlowId {
  std::uint32_t collective = 0;
  std::uint32_t transfer = 0;
  auto operator<=>(const FlowId&) const = default;
};

class Flows {
 public:
  virtual ~Flows() = default;

  virtual std::uint32_t add_link(const LinkSpec& spec) = 0;
  /// Registers a route over links of add_link(); returns its number.
  virtual std::uint32_t add_route(const Route& route) = 0;
  /// The tie rank of each collective, by its number; may change between instants as long as the relative order of
  /// collectives with live flows stays.
  virtual void set_ranks(const std::vector<std::uint32_t>& rank_of_collective) = 0;
  /// That of the next collective, the others staying as they are.
  virtual void add_rank(std::uint32_t rank) = 0;

  /// Starts a transfer at now().
  virtual void start(FlowId id, std::uint32_t route, std::int64_t bytes) = 0;
  /// Goes on to the first instant at which transfers complete, at most to `limit`; appends them to `finished` in
  /// ascending id. With kNever as limit and nothing to complete, now() stays.
  virtual void advance(Time limit, std::vector<FlowId>& finished) = 0;
  /// After advance(kNever) that completed nothing: who waits for whom among the links, if pauses hold transfers for
  /// ever.
  virtual PauseWaits standstill() const { return {}; }

  virtual Time now() const = 0;
  /// Nothing is left that could touch a later flow: no packet, no pause.
  virtual bool drained() const = 0;
  /// The last instant at which anything happened: when it drained, if it has.
  virtual Time quiet_since() const = 0;
  virtual const Counters& counters() const = 0;
  /// What each link carried, if packets choose their links on the way; empty where the routes tell.
  virtual std::vector<LinkLoad> loads() const { return {}; }
  /// From now on transfers acknowledged in band tell when their sender had the last acknowledgement.
  virtual void keep_acknowledgements() {}
  virtual std::vector<std::pair<FlowId, Time>> acknowledgements() const { return {}; }
  virtual std::unique_ptr<Flows> clone() const = 0;
};

std::unique_ptr<Flows> make_plain_flows(const Transport& transport);

/// Packets as individuals on a whole fabric, whose links must be added in their order. A route gives two GPUs; the path
/// matters only to pinned transports. Throws InputError if the transfers come to a standstill (PFC deadlock).
std::unique_ptr<Flows> make_individual_flows(const Transport& transport, std::shared_ptr<const Graph> graph);

class Memo;
/// `memo` outlives the flows and may serve many of them, as long as all have the same transport.
std::unique_ptr<Flows> make_divided_flows(const Transport& transport, Memo& memo);

/// Every transfer as if it were alone: a lower bound of the other two.
std::unique_ptr<Flows> make_analytic_flows(const Transport& transport);
/// How long a transfer takes over links of these specs that nobody else uses and nothing holds back.
Time uncontended_ps(const Transport& transport, const std::vector<LinkSpec>& path, std::int64_t bytes);

/// What the transport's fidelity asks for: plain or analytic, and divided or analytic.
std::unique_ptr<Flows> make_flows(const Transport& transport);
std::unique_ptr<Flows> make_flows(Memo& memo);

}  // namespace manyworlds::core::network

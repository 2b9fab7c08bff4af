// The network model of a step: members enter instances of collectives, and exit. Two models give the same results to
// the picosecond: coupled (one simulation of all packets of the step) and composed (one simulation per component of
// collectives, cached by key; under analytic fidelity every collective by itself).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/step/compile/compiled_step.hpp"
#include "core/step/network/episode.hpp"
#include "core/step/network/isolated.hpp"

namespace manyworlds::core::step {

/// The use of a keyed sub-simulation by a composed network model, for the results file.
struct UsageCount {
  std::string parameters;  // description for people
  Time duration = 0;       // from its first entry to its last exit
  std::int64_t times = 0;
};
using UsageCounts = std::map<sharing::Key, UsageCount>;

/// What a network model has to simulate of what was entered so far, before it does; a sub-simulation that recurs in the
/// step counts once. The same with and without caches.
struct Work {
  std::int64_t link_hops = 0;  // packets times links
  std::int64_t transfers = 0;
};

class NetworkModel {
 public:
  virtual ~NetworkModel() = default;
  /// Enters members at `at`, which must not be before any exit taken so far. `members` is ascending without duplicates.
  virtual void enter(Time at, const std::vector<Member>& members) = 0;
  /// Returns the time of the next exit, or kNever if it is after `limit`.
  virtual Time next_exit(Time limit) = 0;
  /// Appends the exits at `at`, the instant returned by next_exit(), in any order.
  virtual void take_exits(Time at, std::vector<Member>& exits) = 0;
  /// After next_exit(kNever) has returned kNever: returns which links of the graph wait for which, if PFC pauses block
  /// transfers forever.
  virtual network::PauseDependencies deadlock() const = 0;
  virtual network::Counters counters() const = 0;
  virtual Work work() const = 0;
  /// Returns the operations whose isolated results must be available before next_exit() may be called.
  virtual std::vector<CollectiveOpId> missing() const { return {}; }
};

std::unique_ptr<NetworkModel> make_coupled(const CompiledStep& compiled);
/// Throws core::InputError if the transport needs the per-packet engine and the step has too many collectives for it.
void check_per_packet_size(const CompiledStep& compiled);

using IsolatedResults = std::map<sharing::Key, std::shared_ptr<const IsolatedResult>>;

/// A network model that composes a step from keyed sub-simulations. Results of isolated collectives are looked up in
/// the IsolatedResults given at construction; those that it lacks are returned by missing().
class KeyedNetwork : public NetworkModel {
 public:
  virtual UsageCounts isolated_usage() const = 0;
  /// Empty under analytic fidelity, where collectives on shared links do not affect each other.
  virtual const UsageCounts& episode_usage() const = 0;
  /// Returns after how long all members of a collective leave it if all enter at once, whatever else happens; kNever if
  /// that is not so or not known yet. enter_whole() then stands for the entry of all.
  virtual Time whole_duration(CollectiveOpId) { return kNever; }
  virtual void enter_whole(CollectiveOpId) {}
  /// Releases what has not drained yet. Must be called at the end of the step.
  virtual void release_drained(Time at) = 0;
};
std::unique_ptr<KeyedNetwork> make_analytic(const CompiledStep& compiled, const IsolatedResults& results);
std::unique_ptr<KeyedNetwork> make_composed(const CompiledStep& compiled, EpisodeCache& episodes,
                                            const IsolatedResults& results);

}  // namespace manyworlds::core::step

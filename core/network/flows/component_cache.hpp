// The cache of component simulations: from the canonical state of a component of flows that share links to its first
// completion (or to a given instant), as a pure function of that state. Its size is bounded; when full it is cleared.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/work_ahead.hpp"
#include "core/network/flows/simulated_component.hpp"
#include "core/sharing/keeper.hpp"

namespace manyworlds::core::network {

/// Simulates components and caches the results.
class ComponentCache {
 public:
  /// Without `periods`, periodic phases are simulated instead of skipped.
  explicit ComponentCache(const Transport& transport, std::size_t byte_limit = std::size_t{1} << 30,
                          bool periods = true);
  /// For any transport. One that needs the per-packet engine has no components to be cached: make_flows() then returns
  /// flows on all of `fabric`.
  ComponentCache(const Transport& transport, std::shared_ptr<const Graph> fabric);

  struct Found {
    std::shared_ptr<const Outcome> outcome;
    bool known;  // a cache hit
  };
  /// Returns the outcome of simulating `state` to its first completions or a deadlock, but at most for `limit`.
  Found outcome(const State& state, Time limit);
  /// Returns the outcome without a limit if it is in the cache, else null.
  std::shared_ptr<const Outcome> known_outcome(const State& state);
  /// Offers the simulation of a state without a limit to the helpers, until the result is dropped. Null without them.
  std::shared_ptr<AheadTask> begin(const std::shared_ptr<const State>& state);
  /// Returns the outcome without a limit; `begun` is null or what begin() returned for this state.
  Found outcome(const State& state, const std::shared_ptr<AheadTask>& begun);
  using Parts = std::vector<Outcome::Part>;
  struct Joined {
    std::shared_ptr<const Parts> parts;
    bool known;
  };
  /// Returns the components that result when flows start in given states. `load` sets up states and flows in an engine;
  /// `words` is the cache key and must determine what `load` does. Numbers in the parts are slots of that engine.
  Joined join(const StateWords& words, const std::function<void(Engine&)>& load);
  /// Returns the state of one transfer that has just started on links with these specs.
  std::shared_ptr<const State> fresh(const std::vector<LinkSpec>& path, std::int64_t bytes);

  const Transport& transport() const { return transport_; }
  /// Returns the fabric if the transport needs the per-packet engine; otherwise null.
  const std::shared_ptr<const Graph>& fabric() const { return fabric_; }
  /// Returns an empty engine for simulations that are not cached.
  std::unique_ptr<Engine> borrow_engine();
  /// Takes such an engine, or a copy of one, back for reuse, if it has not enough of them.
  void return_engine(std::unique_ptr<Engine> engine) {
    if (spare_engines_.size() < kSpareEngines) spare_engines_.push_back(std::move(engine));
  }
  /// Adds the work of such an engine to link_hops().
  void count_simulated(const Counters& simulated) { link_hops_.simulated += simulated.link_hops; }

  /// Lets helpers simulate components ahead; null: none. They must outlive all that begin() returned.
  void simulate_with(HelperThreads* helpers);
  /// Looks for outcomes with a keeper before they are simulated, and gives it those that took long; null: none. It must
  /// outlive this.
  void keep_with(sharing::Keeper* keeper);
  /// Returns what simulations that were begun ahead have simulated so far, on any thread, whether it was used or not.
  std::int64_t link_hops_ahead() const { return simulators_->link_hops_ahead; }

  /// Time in ns that caching has saved minus its cost, as accounted by the users of the cache.
  std::int64_t balance = 2'000'000;

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }
  /// Returns the work that was simulated or skipped, excluding cache hits.
  const LinkHops& link_hops() const { return link_hops_; }

 private:
  static constexpr std::size_t kSpareEngines = 16;  // copies are returned too, so that more would pile up
  struct Key {
    std::array<std::uint64_t, 2> digest;
    std::uint64_t size;
    Time limit;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return key.digest[0] ^ (static_cast<std::uint64_t>(key.limit) * 0x9E3779B97F4A7C15ull);
    }
  };
  /// What threads need to simulate components: an engine each, of which the first is the cache's own.
  struct Simulators {
    Transport transport;
    FastForwardOptions options;
    std::vector<std::unique_ptr<Engine>> engines = {};
    std::atomic<std::int64_t> link_hops_ahead = 0;
    /// Returns the engine of a thread, reset.
    Engine& engine(std::size_t thread);
  };
  struct Simulation;
  static Key key_of(const State& state, Time limit) { return {state.digest, state.words.size(), limit}; }
  Found take(const Key& key, const State& state, SimulatedComponent simulated);
  sharing::Key kept_key(const State& state, Time limit) const;
  std::shared_ptr<const Outcome> kept_outcome(const State& state, Time limit);
  double expected_ns(const State& state) const;
  /// Accounts for the size of a result; clears the cache if it would exceed the limit.
  void make_room(const Parts& parts, std::size_t waits);

  Transport transport_;
  std::shared_ptr<const Graph> fabric_;
  std::shared_ptr<Simulators> simulators_;  // shared with simulations that are under way
  HelperThreads* helpers_ = nullptr;
  sharing::Keeper* keeper_ = nullptr;
  std::string kept_under_;  // what the outcome of a state depends on besides it
  std::unordered_map<Key, std::weak_ptr<Simulation>, Hash> begun_;
  std::size_t prune_begun_at_ = 1'024;  // size at which those are erased that were dropped
  std::vector<std::unique_ptr<Engine>> spare_engines_;
  std::size_t byte_limit_, bytes_ = 0;
  std::unordered_map<Key, std::shared_ptr<const Outcome>, Hash> outcomes_;
  std::unordered_map<Key, std::shared_ptr<const Parts>, Hash> joins_;
  std::uint64_t hits_ = 0, misses_ = 0;
  LinkHops link_hops_;
  double least_ps_ = 0;  // over all simulated states, for link_hops_.simulated
};

}  // namespace manyworlds::core::network

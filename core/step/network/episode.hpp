// An episode: collectives that overlap in time and share links, simulated together, packet by packet. Its key is
// computed from its log (which member entered which collective, when and over which links, all relative to its
// beginning), and its exits are a pure function of that log. Extending the log gives a new episode, which continues the
// old one: itself if nobody else holds it, else a copy, or from the beginning if it is already past the entry. Of two
// components that a collective connects, one absorbs the other with the states that both have reached.
// Components with equal logs, in one step or in different steps, share one episode.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/sharing/key.hpp"
#include "core/step/network/tie_order.hpp"

namespace manyworlds::core::step {

struct LogEntry;
using Log = std::vector<std::shared_ptr<const LogEntry>>;

/// The entries into a component at one instant.
struct LogEntry {
  struct JoiningCollective {
    collective::Shape shape;
    std::shared_ptr<const collective::Dag> dag;
    std::uint32_t group = 0;        // groups, connections and links are numbered in the order in which they first join
    std::uint32_t place = 0;        // position of a new group, see TieOrder::add()
    std::uint32_t connections = 0;  // number of its connections
    std::vector<network::Route> routes;    // by pair; empty unless the connections are new
    std::vector<network::LinkSpec> links;  // the links that are new
    // Its place in the tie order, for the per-packet engine, which does not change those of earlier ones.
    std::optional<std::uint32_t> order;
  };
  /// Another component, which a collective that joins next has links with. Its groups, connections, links and
  /// collectives are numbered on from those so far.
  struct Absorbed {
    Log log;
    sharing::Key key;                                             // of that log
    Time shift = 0;                                               // its beginning, relative to that of the component
    std::vector<std::pair<std::uint32_t, std::uint32_t>> groups;  // see TieOrder::absorb()
  };
  Time at = 0;                                                   // relative to the beginning of the component
  std::vector<JoiningCollective> joining;                        // new collectives, numbered on from earlier entries
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;  // (collective, member)
  std::shared_ptr<const Absorbed> absorbed;                      // null: none; else nothing joins or enters
};

class Episode {
 public:
  explicit Episode(network::ComponentCache& cache);
  Episode(const Episode&) = default;
  Episode(Episode&&) = default;

  const sharing::Key& key() const { return key_; }
  /// Begins what entered at now(), so that helpers may simulate it while others are.
  void begin() {
    if (std::exchange(is_begun_, true)) return;
    traffic_.advance(now(), exits_);
  }
  /// Returns the exit with number `index` in order of time, or null if it is later than `limit`. Simulates as far as
  /// needed. Exits before the last log entry are no longer available.
  const network::Exit* exit(std::size_t index, Time limit);
  /// Whether by `at` all members of all collectives have exited and nothing is left in the network.
  bool is_over(Time at) const {
    if (open_members_ != past_exits_ + exits_.size()) return false;
    return traffic_.drained() && traffic_.last_activity() <= at;
  }
  /// As Flows::deadlock(), with links by their numbers in the episode.
  network::PauseDependencies deadlock() const { return traffic_.deadlock(); }
  /// Returns the time up to which the episode has been simulated.
  Time now() const { return traffic_.now(); }
  network::Counters counters() const { return traffic_.counters(); }
  Time last_exit() const { return exits_.empty() ? last_exit_ : exits_.back().at; }
  std::string text() const;  // a description for people

 private:
  friend class EpisodeCache;
  /// Simulates up to `at` and forgets earlier exits.
  void reach(Time at);
  void append(const LogEntry& entry, const sharing::Key& key);
  void join(const LogEntry::JoiningCollective& joining);
  /// Takes over the collectives of another episode, which has not been simulated further than `at` on this one's clock.
  void absorb(const LogEntry::Absorbed& how, Time at, Episode other, const sharing::Key& key);

  sharing::Key key_;
  network::Traffic traffic_;
  TieOrder tie_order_;
  std::uint32_t connections_ = 0;
  std::vector<network::Exit> exits_;  // since the last log entry; every holder of this log has taken the earlier ones
  std::size_t past_exits_ = 0;        // number of earlier exits
  Time last_exit_ = 0;
  std::size_t open_members_ = 0, entered_ = 0, instants_ = 0;
  bool is_begun_ = true;  // false from an entry on, until begin()
};

/// The first entries of a log.
using LogEntries = std::span<const std::shared_ptr<const LogEntry>>;

/// A cache of episodes by key. An episode lives as long as a component holds it. Not thread-safe.
class EpisodeCache {
 public:
  /// With `share` false every component gets episodes of its own.
  EpisodeCache(network::ComponentCache& cache, bool share);

  /// Returns the episode with this log. `before` is the episode of the log without its last entry, or null if there is
  /// none; `absorbed` the one that the last entry absorbs, or null.
  std::shared_ptr<Episode> extend(std::shared_ptr<Episode> before, const Log& log,
                                  std::shared_ptr<Episode> absorbed = nullptr);
  /// Returns the cache of the components of all episodes.
  network::ComponentCache& components() { return cache_; }

 private:
  /// Returns an episode with the log of `episode` that nobody else holds and that has not passed `at`: itself, a copy,
  /// or a replay.
  std::shared_ptr<Episode> own(std::shared_ptr<Episode> episode, LogEntries log, Time at);
  /// Simulates a log from its beginning, mostly from the cache of components.
  Episode replay(LogEntries log);

  network::ComponentCache& cache_;
  bool share_;
  sharing::Key empty_log_key_;  // key of the empty log
  std::map<sharing::Key, std::weak_ptr<Episode>> episodes_;
  std::size_t prune_at_ = 1'024;  // size at which expired entries are erased
};

}  // namespace manyworlds::core::step

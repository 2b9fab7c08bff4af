// An episode: collectives that overlap in time and share links, simulated together. It is named by its log (who
// entered what, when, over which links, all relative to its beginning), and its exits are a pure function of that log.
// A log that grows gives a new episode, which goes on from a copy of the old one; components of one step, or of
// different steps, whose logs are equal share one episode.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/network/flows/memo.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/sharing/key.hpp"
#include "core/step/network/tie_ranks.hpp"

namespace manyworlds::core::step {

/// What happens to a component at one instant.
struct LogEntry {
  struct Joining {
    collective::Shape shape;
    std::shared_ptr<const collective::Dag> dag;
    std::uint32_t group = 0;               // numbered by first joinings, as are connections and links
    std::uint32_t place = 0;               // of a group that joins first: see TieRanks
    std::uint32_t connections = 0;         // of the group's members
    std::vector<network::Route> routes;    // by pair, of connections that join first
    std::vector<network::LinkSpec> links;  // figures of those that join first
  };
  Time at = 0;                                                   // since the component began
  std::vector<Joining> joining;                                  // numbered on from those before
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;  // (collective, member)
};

using Log = std::vector<std::shared_ptr<const LogEntry>>;

class Episode {
 public:
  explicit Episode(network::Memo& memo);
  Episode(const Episode&) = default;

  const sharing::Key& key() const { return key_; }
  /// The first exit at or after position `taken`, if it comes by `limit`; null otherwise. Simulates up to there. All
  /// exits before the last entry must be taken.
  const network::Exit* exit(std::size_t taken, Time limit);
  /// True if by `at` every member of every collective has exited and nothing is left in the network.
  bool over(Time at) const {
    if (open_members_ != past_exits_ + exits_.size()) return false;
    return traffic_.drained() && traffic_.quiet_since() <= at;
  }
  /// As Flows::standstill(), of the episode's links.
  network::PauseWaits standstill() const { return traffic_.standstill(); }
  /// How far it has gone.
  Time now() const { return traffic_.now(); }
  network::Counters counters() const { return traffic_.counters(); }
  Time last_exit() const { return exits_.empty() ? last_exit_ : exits_.back().at; }
  std::string text() const;  // for people: what it consists of

 private:
  friend class Episodes;
  void append(const LogEntry& entry, const sharing::Key& key);
  void join(const LogEntry::Joining& joining);

  sharing::Key key_;
  network::Traffic traffic_;
  TieRanks ranks_;
  std::uint32_t connections_ = 0;
  std::vector<network::Exit> exits_;  // since the last entry: whoever came to its log took those before it
  std::size_t past_exits_ = 0;        // how many those were
  Time last_exit_ = 0;
  std::size_t open_members_ = 0, entered_ = 0, instants_ = 0;
};

/// Episodes by key, as long as a component holds them (not thread-safe).
class Episodes {
 public:
  /// `share` off gives every component episodes of its own.
  Episodes(network::Memo& memo, bool share);

  /// The episode with this log, all but whose last entry is the log of `before` (null: empty).
  std::shared_ptr<Episode> extend(std::shared_ptr<Episode> before, const Log& log);

 private:
  network::Memo& memo_;
  bool share_;
  sharing::Key empty_;  // of an episode that nothing has joined
  std::map<sharing::Key, std::weak_ptr<Episode>> known_;
  std::size_t sweep_at_ = 1'024;  // forget ended episodes when there are so many
};

}  // namespace manyworlds::core::step

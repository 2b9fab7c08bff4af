// What was computed once: a cluster of flows that share links, from its canonical state to the first completion (or
// to a given instant), as a pure function of that state. Bounded: when full it forgets everything and goes on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/flows/stretch.hpp"

namespace manyworlds::core::network {

/// A canonical state and the digest of its words.
struct State {
  Words words;
  std::array<std::uint64_t, 2> digest{};
};
std::shared_ptr<const State> make_state(Words words);

/// What a state leads to.
struct Outcome {
  struct Part {
    std::shared_ptr<const State> state;
    std::vector<std::uint32_t> flows, links;  // numbers they had in the state before
  };
  Time elapsed = 0;
  std::vector<std::uint32_t> completed;  // numbers of flows, ascending
  std::vector<Part> parts;               // what is left, cut where no link is shared
  PauseWaits standstill;                 // between numbers of links: nothing will ever complete
  Counters counters;
};

class Memo {
 public:
  /// `periods` off: whole periods are simulated too.
  explicit Memo(const Transport& transport, std::size_t byte_limit = std::size_t{1} << 30, bool periods = true);

  struct Found {
    std::shared_ptr<const Outcome> outcome;
    bool known;  // it was met before
  };
  /// Runs `state` to its first completions or a standstill, but at most for `limit`; from memory if it was met before.
  Found outcome(const State& state, Time limit);
  /// What states become when flows start in them: put together in an engine by `load`, from memory if `words`, which
  /// say all that matters, were met before. Numbers in the parts are slots of that engine.
  using Parts = std::vector<Outcome::Part>;
  struct Joined {
    std::shared_ptr<const Parts> parts;
    bool known;
  };
  Joined join(const Words& words, const std::function<void(Engine&)>& load);
  /// The state of one transfer that has just started on links of these specs.
  std::shared_ptr<const State> fresh(const std::vector<LinkSpec>& path, std::int64_t bytes);

  const Transport& transport() const { return transport_; }
  /// An engine for problems that are not remembered, reset; and back for the next who needs one.
  std::unique_ptr<Engine> lend();
  void give_back(std::unique_ptr<Engine> engine) { spare_.push_back(std::move(engine)); }
  /// What such an engine simulated.
  void count(const Counters& simulated) { link_hops_.simulated += simulated.link_hops; }

  /// What remembering has saved its users less what it cost them, as far back as they let it count; theirs to keep.
  std::int64_t balance = 2'000'000;

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }
  /// What was computed here, and not remembered.
  const LinkHops& link_hops() const { return link_hops_; }

 private:
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
  static PauseWaits numbered(PauseWaits waits, const std::vector<std::uint32_t>& slots);
  /// An empty engine to put problems together in; good until the next call.
  Engine& scratch() {
    engine_->reset();
    return *engine_;
  }
  std::shared_ptr<const Outcome> compute(const State& state, Time limit);
  /// Room for what a result takes.
  void make_room(const Parts& parts, std::size_t waits);

  Transport transport_;
  Skipping skipping_;
  std::unique_ptr<Engine> engine_;  // used for one problem after another
  std::vector<std::unique_ptr<Engine>> spare_;
  std::size_t byte_limit_, bytes_ = 0;
  std::unordered_map<Key, std::shared_ptr<const Outcome>, Hash> outcomes_;
  std::unordered_map<Key, std::shared_ptr<const Parts>, Hash> joins_;
  std::uint64_t hits_ = 0, misses_ = 0;
  LinkHops link_hops_;
};

}  // namespace manyworlds::core::network

// What a step sees of the network: members enter instances of collectives, and exit. Two sides give the same
// picoseconds: coupled (one event loop for all packets of the step) and composed (components, keyed and shared; under
// fidelity analytic every collective by itself).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/network/flows/memo.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/step/network/episode.hpp"
#include "core/step/network/isolated.hpp"
#include "core/step/world/world.hpp"

namespace manyworlds::core::step {

struct Member {
  std::uint32_t instance = 0;
  std::uint32_t member = 0;
  auto operator<=>(const Member&) const = default;
};

/// A keyed sub-simulation that the composed side used, for the results file.
struct Usage {
  std::string parameters;  // for people
  Time lasts = 0;          // from its first entry to its last exit
  std::int64_t times = 0;
};
using Usages = std::map<sharing::Key, Usage>;

class NetworkSide {
 public:
  virtual ~NetworkSide() = default;
  /// Members enter at `at`, which is not before any exit taken so far; ascending, each once.
  virtual void enter(Time at, const std::vector<Member>& members) = 0;
  /// When the next exit is, if by `limit`; kNever otherwise.
  virtual Time next(Time limit) = 0;
  /// Appends the exits at `at`, the instant next() gave, in any order.
  virtual void take(Time at, std::vector<Member>& exits) = 0;
  /// After next(kNever) gave kNever: who waits for whom among the graph's links, if pauses hold transfers for ever.
  virtual network::PauseWaits standstill() const = 0;
  virtual network::Counters counters() const = 0;
  /// Keys of isolated collectives (uses of the world) that must be known before next() can be asked.
  virtual std::vector<std::uint32_t> missing() const { return {}; }
};

std::unique_ptr<NetworkSide> make_coupled(const World& world);

using IsolatedResults = std::map<sharing::Key, std::shared_ptr<const IsolatedResult>>;

/// `results` is looked into whenever an isolated collective comes up; what it lacks is missing().
class Composed : public NetworkSide {
 public:
  virtual Usages isolated_used() const = 0;
  /// None under fidelity analytic, where collectives that meet do not touch each other.
  virtual const Usages& episodes_used() const = 0;
  /// Ends what is still waiting to drain; call when the step is over.
  virtual void close(Time at) = 0;
};
std::unique_ptr<Composed> make_analytic(const World& world, const IsolatedResults& results);
std::unique_ptr<Composed> make_composed(const World& world, Episodes& episodes, const IsolatedResults& results);

}  // namespace manyworlds::core::step

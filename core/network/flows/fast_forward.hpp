// Runs an engine to its first completions and skips phases that only repeat: whole periods, exactly, when the state
// recurs except for the number of packets left; and, if enabled, phases in which flows keep their rates (for transports
// that settle without becoming periodic, such as DCQCN with ECN marks).
//
// By rate: the third and the last quarter of the simulated time give the rate of each flow and how fast it changes.
// Time is skipped as if all rates stayed constant, but in total only so long that no rate, if it continues to change at
// that speed, changes by more than the tolerance. A difference of one packet counts as a change, so a short or
// oscillating past allows little to be skipped, and a long steady one much.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/engine/link_hops.hpp"

namespace manyworlds::core::network {

/// Which phases may be skipped.
struct FastForwardOptions {
  bool periods = true;
  std::int64_t rate_tolerance_ppm = 0;  // 0: no skipping by rate
};

/// Runs one simulation; it is used once.
class FastForwarder {
 public:
  /// `flows` are the slots of the live flows in the engine, which must be at time 0; `words` is the size of its state.
  FastForwarder(Engine& engine, std::vector<std::uint32_t> flows, std::size_t words, FastForwardOptions options);

  /// Runs as Engine::run() does; may be called once.
  void run(Time limit, std::vector<std::uint32_t>& completed);
  /// Return the time reached and the event counts, simulated and skipped parts together.
  Time now() const { return engine_.now() + skipped_time_; }
  Counters counters() const { return engine_.counters() + skipped_counters_; }
  LinkHops link_hops() const {
    LinkHops hops = skipped_hops_;
    hops.simulated = engine_.counters().link_hops;
    return hops;
  }

 private:
  /// The progress of the engine at a check, as if nothing had been skipped.
  struct Progress {
    Time at = 0;
    Counters counters;
    std::vector<std::uint32_t> remaining;  // by flow: packets left plus packets skipped
  };
  /// The differences between two checks.
  struct Window {
    Time duration = 0;
    Counters counters;
    std::vector<std::uint32_t> packets;  // by flow
  };
  bool begin();
  bool run_to_check(Time limit, std::vector<std::uint32_t>& completed);
  void simulate(Time limit, std::vector<std::uint32_t>& completed);
  void check(Time limit);
  void check_period(Time limit);
  void end_window(Time limit);
  /// Returns the relative change of a flow's rate from one window to the next in parts per million, one packet of
  /// uncertainty included.
  static std::int64_t change_ppm(const Window& earlier, const Window& later, std::size_t flow);
  Time steady_time(const Window& earlier, const Window& later) const;
  void skip_by_rate(Window window, std::int64_t repeats);
  void clear_reference();
  /// Returns how many repetitions of `window` may be skipped so that `reserve` more of them remain to be simulated.
  std::int64_t max_repeats(const Window& window, std::int64_t reserve, Time limit) const;
  void skip(const Window& window, std::int64_t repeats);
  Progress progress() const;
  static Window between(const Progress& begin, const Progress& end);

  Engine& engine_;
  std::vector<std::uint32_t> flows_;
  std::int64_t hops_per_check_;  // link-hops between checks, so that a check costs a few percent of the simulation
  bool try_periods_, try_rate_;  // whether periods and steady rates are still searched for
  std::int64_t tolerance_ppm_;
  Time skipped_time_ = 0;
  std::vector<std::uint32_t> skipped_packets_;  // by flow
  Counters skipped_counters_;
  LinkHops skipped_hops_;  // skipped link-hops

  std::uint32_t pacing_flow_ = 0;  // the flow with the fewest packets left, whose packets determine the checks
  std::uint32_t interval_ = 60;    // its packets between checks: a multiple of most short periods
  std::int64_t hops_at_check_ = 0;

  StateWords reference_;  // the state at the 1st, 2nd, 4th, 8th … check (cycle detection of Brent, BIT 1980)
  Progress reference_progress_;
  std::int64_t period_checks_ = 0, next_reference_ = 1;

  std::vector<Progress> window_marks_;  // progress at the boundaries of the windows
  std::int64_t window_checks_ = 0, checks_per_window_ = 1;
};

}  // namespace manyworlds::core::network

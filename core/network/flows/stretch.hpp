// The way of an engine to its first completions, passing over what would only repeat itself: whole periods, exactly,
// once its state recurs apart from how much flows have left; and, if asked for, stretches in which flows keep their
// rates (transports that only settle, as DCQCN under marks).
//
// By rate: the third and the last quarter of what was simulated so far give each flow's rate and how fast that changes.
// Time is passed over as if every rate stayed what it is, but all together only for so long that no rate, if it goes on
// to change like that, changes by more than the tolerance. One packet more or less counts as change, so a short past
// or one that swings lets little be passed over, and a long even one much.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/engine/link_hops.hpp"

namespace manyworlds::core::network {

/// What may be passed over.
struct Skipping {
  bool periods = true;
  std::int64_t rate_tolerance_ppm = 0;  // 0: nothing by rate
};

class Stretch {
 public:
  /// `flows`: slots of the live flows in the engine, which is at time 0. `words`: how many its state takes.
  Stretch(Engine& engine, std::vector<std::uint32_t> flows, std::size_t words, Skipping skipping);

  /// As Engine::run(); once.
  void run(Time limit, std::vector<std::uint32_t>& completed);
  /// Where it came to, whether it was simulated or passed over; and all that took place.
  Time now() const { return engine_.now() + passed_; }
  Counters counters() const { return engine_.counters() + passed_counters_; }
  LinkHops link_hops() const {
    LinkHops hops = hops_;
    hops.simulated = engine_.counters().link_hops;
    return hops;
  }

 private:
  /// How far the engine was at a look, nothing passed over.
  struct Progress {
    Time at = 0;
    Counters counters;
    std::vector<std::uint32_t> left;  // by flow, and what was passed over
  };
  /// What happened between two looks.
  struct Window {
    Time lasted = 0;
    Counters counters;
    std::vector<std::uint32_t> packets;  // by flow
  };
  bool begin();
  bool reach_look(Time limit, std::vector<std::uint32_t>& completed);
  void simulate(Time limit, std::vector<std::uint32_t>& completed);
  void look(Time limit);
  void look_for_period(Time limit);
  void end_window(Time limit);
  /// By how much a flow's rate differs from one window to the next, in parts per million, at least by one packet.
  static std::int64_t change_ppm(const Window& earlier, const Window& later, std::size_t flow);
  Time steady_for(const Window& earlier, const Window& later) const;
  void pass_by_rate(Window window, std::int64_t times);
  void forget_reference();
  /// How many times `window` may be passed over while `reserve` more of them stay to be simulated.
  std::int64_t room_for(const Window& window, std::int64_t reserve, Time limit) const;
  void pass_over(const Window& window, std::int64_t times);
  Progress progress() const;
  static Window between(const Progress& begin, const Progress& end);

  Engine& engine_;
  std::vector<std::uint32_t> flows_;
  std::int64_t hops_of_look_;  // a look may cost a few percent of what is simulated between two
  bool periods_, rate_;        // still tried
  std::int64_t tolerance_ppm_;
  Time passed_ = 0;
  std::vector<std::uint32_t> passed_packets_;  // by flow
  Counters passed_counters_;
  LinkHops hops_;  // passed over

  std::uint32_t watched_ = 0;    // the flow with least left, which paces the looks
  std::uint32_t interval_ = 60;  // packets that it offers from one look to the next: a multiple of most short periods
  std::int64_t hops_at_look_ = 0;

  Words reference_;  // the state at a look, after the 1st, 2nd, 4th, 8th … (Brent 1980)
  Progress reference_progress_;
  std::int64_t looks_ = 0, next_reference_ = 1;

  std::vector<Progress> marks_;  // a window apart
  std::int64_t window_looks_ = 0, looks_of_window_ = 1;
};

}  // namespace manyworlds::core::network

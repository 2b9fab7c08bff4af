// One training step of one world as a resumable, pure function: advance() runs until it is done or needs results it
// does not have, and never calls out. The state may be thrown away at any time; starting again gives the same answer.
#pragma once

#include <atomic>
#include <memory>
#include <variant>
#include <vector>

#include "core/network/flows/memo.hpp"
#include "core/step/network/held_exits.hpp"
#include "core/step/network/network_side.hpp"
#include "core/step/run/recording.hpp"
#include "core/step/run/result.hpp"
#include "core/step/world/world.hpp"
#include "core/stream/timeline.hpp"

namespace manyworlds::core::step {

/// Isolated collectives (numbers of World::uses()) whose results must be in the IsolatedResults to go on; ascending.
struct Needs {
  std::vector<std::uint32_t> uses;
};

class Step {
 public:
  /// `world`, `episodes` and `results` outlive the step; `results` may grow between calls of advance().
  /// Under Composition::coupled neither episodes nor results are used. Fills `recording`, if it is given, for the ranks
  /// that it names, and tells `reached`, if it is given, the time that it has come to.
  Step(const World& world, Episodes& episodes, const IsolatedResults& results, Recording* recording = nullptr,
       std::atomic<Time>* reached = nullptr);

  /// Throws InputError on a deadlock of pauses, naming its ports; InternalError on one of operations, naming two.
  std::variant<StepResult, Needs> advance();

 private:
  void enter(Time at);
  bool within_limit();
  [[noreturn]] void explain_standstill() const;
  StepResult finish();
  void record_entries(Time at);
  void finish_recording();
  std::vector<Used> kernels() const;

  const World& world_;
  stream::Timeline timeline_;
  std::unique_ptr<NetworkSide> network_;
  Composed* composed_ = nullptr;  // the same object, where it is one
  HeldExits held_;
  std::vector<stream::Entry> entries_;
  std::vector<Member> entering_;
  std::vector<std::uint32_t> entered_;  // members so far, by instance
  std::vector<Time> began_;             // when the last member entered, by instance
  std::vector<Time> link_busy_;         // network links
  std::int64_t link_hops_ = 0, events_ = 0;
  Recording* recording_;        // null: nobody asks
  std::atomic<Time>* reached_;  // the same
  bool started_ = false, too_large_ = false;
};

}  // namespace manyworlds::core::step

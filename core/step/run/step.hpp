// One training step as a resumable, pure function: advance() runs until the step is done or needs isolated results that
// it does not have, and never computes these itself. The state may be discarded at any time; starting again gives the
// same result.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <variant>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/step/compile/compiled_step.hpp"
#include "core/step/fluid/fluid_network.hpp"
#include "core/step/network/network_model.hpp"
#include "core/step/network/ticked_completions.hpp"
#include "core/step/run/recording.hpp"
#include "core/step/run/result.hpp"
#include "core/stream/timeline.hpp"

namespace manyworlds::core::step {

/// Isolated collectives whose results must be added to the IsolatedResults before the step can continue; ascending.
struct MissingResults {
  std::vector<CollectiveOpId> collective_ops;
};

/// Stored in the time that a step reports to, it makes the step throw StepStopped where it would report next.
inline constexpr Time kStopStep = -1;
struct StepStopped : std::runtime_error {
  StepStopped() : std::runtime_error("stopped on request") {}
};

class Step : private stream::WholeCollectives {
 public:
  /// All arguments must outlive the step; `results` may grow between calls of advance(). Under Composition::coupled
  /// neither `episodes` nor `results` is used, `efficiency` only under fluid fidelity. If `recording` is given, it is
  /// filled for the ranks that it lists; if `reached` is given, the simulated time reached so far is stored in it.
  Step(const CompiledStep& compiled, EpisodeCache& episodes, TransportEfficiency& efficiency,
       const IsolatedResults& results, Recording* recording = nullptr, std::atomic<Time>* reached = nullptr);
  /// Goes on from a fork at which `other` was cloned, with another transport and other results
  /// (FluidNetwork::go_on_with()).
  Step(const Step& other, const FluidNetwork::Fork& fork, TransportEfficiency& efficiency,
       const IsolatedResults& results, std::atomic<Time>* reached);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() override = default;

  /// Under fluid fidelity: advance() calls `at_fork` where a clone() can go on differently.
  void watch(std::function<void(const FluidNetwork::Fork&)> at_fork);
  /// Returns a copy in the same state, which nobody watches and which records and reports nothing.
  std::unique_ptr<Step> clone() const;

  /// Throws core::InputError on a PFC deadlock, naming its ports, and core::InternalError on a deadlock of operations,
  /// naming two of them.
  std::variant<StepResult, MissingResults> advance();

  /// Returns the collectives that shared links so far, under fluid fidelity; none under others.
  std::vector<ContendedCollective> contended() const;
  /// Under fluid fidelity, returns all that the step has read of its transport.
  const std::vector<AskedEfficiencies::Answer>& answers() const;
  /// Returns how often representatives have entered a collective so far.
  std::int64_t entries() const { return entries_so_far_; }
  /// Under fluid fidelity, before advance(): lets every contended collective take longer by a share, in millionths.
  void slow_contended(std::int64_t ppm);

 private:
  struct Copy {};
  Step(const Step& other, Copy);
  FluidNetwork& fluid() const { return dynamic_cast<FluidNetwork&>(*network_); }
  std::vector<stream::RepresentativeId> leaders(const std::vector<stream::RepresentativeId>& ranks,
                                                std::uint32_t op) const override;
  Time enter_whole(const std::vector<stream::RepresentativeId>& leaders, std::uint32_t op) override;
  std::uint64_t order_of(stream::RepresentativeId rank, std::uint32_t op) const override;
  /// Returns this unless every entry counts: the network is not keyed, or the intervals of collectives are recorded.
  stream::WholeCollectives* whole_collectives();
  void enter(Time at);
  bool within_limit();
  [[noreturn]] void explain_deadlock() const;
  StepResult finish();
  void record_entries(Time at);
  void finish_recording();
  void add_kernels(StepResult& result) const;

  const CompiledStep& compiled_;
  stream::Timeline timeline_;
  std::unique_ptr<NetworkModel> network_;
  KeyedNetwork* keyed_network_ = nullptr;  // the same object if it is composed, otherwise null
  TickedCompletions completions_;
  std::vector<stream::Entry> entries_;
  std::vector<Member> entering_;
  IdVector<InstanceId, std::uint32_t> members_entered_;   // members entered so far
  IdVector<InstanceId, Time> last_entry_;                 // entry time of the last member so far
  std::vector<Time> link_busy_;                           // by network link: total serialisation time
  IdVector<CollectiveOpId, std::int64_t> entered_whole_;  // instances that all members entered as one
  std::int64_t link_hops_ = 0;                            // that take place
  std::int64_t entries_so_far_ = 0;                       // of representatives into collectives
  Recording* recording_;                                  // null: no recording
  std::atomic<Time>* reached_;                            // null: progress is not reported
  bool started_ = false, too_large_ = false;
};

}  // namespace manyworlds::core::step

// A collective has the exits of analytic fidelity on a clock of its own, which runs at the speed that max-min fairness
// leaves it (max_min_speeds.hpp) once all its members have entered. Its load on a link is the mean over its uncontended
// duration, so that rounds of unequal load, queues and the time that congestion control takes to find its rate are not
// modelled, but for what short transfers lose by the last (transport_efficiency.hpp); fluid_error.hpp measures what
// that is worth.
#include "core/step/fluid/fluid_network.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <utility>

#include "core/step/fluid/failing_links.hpp"
#include "core/step/fluid/link_shares.hpp"
#include "core/step/network/uncontended_network.hpp"

namespace manyworlds::core::step {
namespace {

constexpr std::uint32_t kNotRunning = UINT32_MAX;

class SharedLinks final : public UncontendedNetwork<FluidNetwork> {
 public:
  SharedLinks(const CompiledStep& compiled, const IsolatedResults& results, TransportEfficiency& efficiency)
      : UncontendedNetwork(compiled, results),
        compiled_(compiled),
        shares_(compiled, efficiency),
        failing_(compiled),
        speeds_(compiled.link_numbers(), shares_.preference()) {}

  void enter(Time at, const std::vector<Member>& members) override {
    now_ = at;
    // Clocks begin to differ from the step's only after the last entry.
    for_each_instance(members, [&](std::span<const Member> some) { exits_.enter(at, some); });
  }

  Time whole_duration(CollectiveOpId id) override {
    return shares_.of(id).empty() && shares_.speed_alone(id) == kFullSpeed ? exits_.common_exit(id) : kNever;
  }

  Time next_exit(Time limit) override {
    while (true) {
      const Time exit = next_exit_as_it_is();
      const Time change = std::min(failing_.next_change(), resumptions_.empty() ? kNever : resumptions_.top().at);
      if (change > limit || change >= exit) return exit > limit ? kNever : exit;
      now_ = change;
      while (!resumptions_.empty() && resumptions_.top().at == change) {
        const InstanceId instance = resumptions_.top().instance;
        resumptions_.pop();
        resume(instance);
      }
      if (failing_.next_change() == change) change_links();
    }
  }

  void take_exits(Time at, std::vector<Member>& exits) override {
    now_ = at;
    while (!due_exits_.empty() && due_exits_.top().at == at) {
      const InstanceId instance = due_exits_.top().instance;
      due_exits_.pop();
      if (next_exit_of(instance) != at) continue;  // taken with an entry of the queue before this one
      const std::uint32_t slot = exits_.slot_of(instance);
      while (next_exit_of(instance) == at) exits_.take(instance, exits_.next(instance), exits);
      if (exits_.slot_of(instance) == slot)
        schedule(instance);
      else
        stop(instance, states_[slot]);
    }
  }

  const std::vector<ContendedCollective>& contended() const override { return contended_; }
  void slow_contended(std::int64_t ppm) override { slowed_by_ppm_ = ppm; }

  void watch(std::function<void(const Fork&)> at_fork) override { at_fork_ = std::move(at_fork); }
  std::unique_ptr<FluidNetwork> clone() const override {
    auto copy = std::make_unique<SharedLinks>(*this);
    copy->at_fork_ = nullptr;
    return copy;
  }
  void go_on_with(TransportEfficiency& efficiency, const IsolatedResults& results, const Fork& fork) override {
    exits_.look_up_in(results);
    shares_.go_on_with(efficiency, fork.answers);
    has_contended_ = fork.is_after_contended;
  }
  const std::vector<AskedEfficiencies::Answer>& answers() const override { return shares_.answers(); }

 private:
  /// An instance that is under way.
  struct State {
    FluidClock clock;
    Time begin = 0;                                  // when it began to take shares of links
    std::uint32_t number = kNotRunning;              // among the collectives that do
    bool is_contended = false;                       // has been short of a link
    bool stands_still = false, stood_still = false;  // for a cable that has failed; now, or ever
    Time lost = 0;                                   // since when it stands still
  };
  struct Due {
    Time at;
    InstanceId instance;
    bool operator>(const Due& other) const {
      return at != other.at ? at > other.at : instance.value() > other.instance.value();
    }
  };

  /// Returns the next exit if no cable fails and nothing that stands still goes on before it.
  Time next_exit_as_it_is() {
    for (const InstanceId instance : exits_.take_scheduled()) {
      if (exits_.is_closed(instance) && state_of(instance).number == kNotRunning) start(instance);
      schedule(instance);
    }
    const std::vector<std::uint32_t> changed = speeds_.update();
    changed_.insert(changed_.end(), changed.begin(), changed.end());
    set_changed_speeds();
    while (!due_exits_.empty() && due_exits_.top().at != next_exit_of(due_exits_.top().instance)) due_exits_.pop();
    return due_exits_.empty() ? kNever : due_exits_.top().at;
  }

  /// Whether the instance that had this number among those that take shares is still under way.
  bool is_running(std::uint32_t number) {
    const std::uint32_t slot = exits_.slot_of(running_[number]);
    return slot != UncontendedExits::kNoSlot && slot < states_.size() && states_[slot].number == number;
  }

  /// Returns what an operation takes of the links of its routes as they are now.
  const MaxMinSpeeds::Loads& loads_of(CollectiveOpId id) {
    if (failing_.epoch() == 0) return shares_.of(id);
    auto& loads = loads_[{failing_.epoch(), id}];
    if (!loads) loads = std::make_shared<const MaxMinSpeeds::Loads>(shares_.on_routes(id, *failing_.routes(id)));
    return *loads;
  }

  /// Stops what crosses cables that fail now, and moves what goes on to its new routes.
  void change_links() {
    const std::uint32_t epoch = failing_.epoch();
    failing_.change();
    for (std::uint32_t number = 0; number < running_.size(); ++number) {
      if (!is_running(number)) continue;
      const InstanceId instance = running_[number];
      State& state = state_of(instance);
      const CollectiveOpId id = compiled_.collective_op_id(instance);
      if (failing_.blocks(id)) {
        if (state.stands_still) continue;
        speeds_.remove(number);
        stand_still(state);
      } else if (state.stands_still) {
        resumptions_.push({failing_.resumption(state.lost, now_), instance});
      } else if (failing_.epoch() != epoch) {
        speeds_.remove(number);
        go_on(instance, state);
      }
    }
  }

  void stand_still(State& state) {
    state.clock.set_speed(now_, 0);
    state.stands_still = state.stood_still = true;
    state.lost = now_;
  }

  void go_on(InstanceId instance, State& state) {
    speeds_.add(state.number, loads_of(compiled_.collective_op_id(instance)));
    state.clock.set_speed(now_, shares_.speed_alone(compiled_.collective_op_id(instance)));  // until they are updated
    schedule(instance);
  }

  /// Lets an instance go on that has stood still, unless another cable has failed meanwhile.
  void resume(InstanceId instance) {
    State& state = state_of(instance);
    if (!state.stands_still || failing_.blocks(compiled_.collective_op_id(instance))) return;
    state.stands_still = false;
    go_on(instance, state);
  }

  State& state_of(InstanceId instance) {
    const std::uint32_t slot = exits_.slot_of(instance);
    if (slot >= states_.size()) states_.resize(slot + 1);
    return states_[slot];
  }

  /// Returns the instant at which the clock of an instance reaches its next exit.
  Time next_exit_of(InstanceId instance) {
    const Time next = exits_.next(instance);
    return next == kNever ? kNever : state_of(instance).clock.when(next);
  }

  void schedule(InstanceId instance) {
    if (const Time at = next_exit_of(instance); at != kNever) due_exits_.push({at, instance});
  }

  /// Sets the clocks of those whose speeds have changed. Nothing of this is done before a fork.
  void set_changed_speeds() {
    if (changed_.empty()) return;
    Fork fork{shares_.answers().size(), has_contended_};
    new_speeds_.clear();
    for (const std::uint32_t number : changed_) {
      has_contended_ |= speeds_.speed(number) < kFullSpeed;
      new_speeds_.push_back(speed_of(number));
    }
    fork.begins_contention = has_contended_ != fork.is_after_contended;
    if (at_fork_ && (shares_.answers().size() > fork.answers || fork.begins_contention)) at_fork_(fork);
    for (std::size_t i = 0; i < changed_.size(); ++i) {
      const InstanceId instance = running_[changed_[i]];
      State& state = state_of(instance);
      state.clock.set_speed(now_, new_speeds_[i]);
      state.is_contended |= speeds_.speed(changed_[i]) < kFullSpeed;
      schedule(instance);
    }
    changed_.clear();
  }

  /// Returns the speed of a running collective.
  FluidShare speed_of(std::uint32_t number) {
    const FluidShare fair = speeds_.speed(number);
    const FluidShare used =
        shares_.used_speed(compiled_.collective_op_id(running_[number]), fair, speeds_.bottleneck(number));
    if (fair == kFullSpeed) return used;
    return std::max<FluidShare>(1, static_cast<FluidShare>(Int128{used} * 1'000'000 / (1'000'000 + slowed_by_ppm_)));
  }

  /// Lets an instance that all members have entered take its share of its links.
  void start(InstanceId instance) {
    const CollectiveOpId id = compiled_.collective_op_id(instance);
    const MaxMinSpeeds::Loads& loads = loads_of(id);
    if (loads.empty()) {
      if (const FluidShare alone = shares_.speed_alone(id); alone < kFullSpeed)
        state_of(instance).clock.set_speed(now_, alone);
      return;
    }
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(running_.size()));
      running_.push_back(instance);
    }
    State& state = state_of(instance);
    state.number = free_.back();
    free_.pop_back();
    running_[state.number] = instance;
    state.begin = now_;
    if (failing_.blocks(id)) return stand_still(state);
    state.clock.set_speed(now_, shares_.speed_alone(id));
    speeds_.add(state.number, loads);
  }

  void stop(InstanceId instance, State& state) {
    if (state.is_contended && !state.stood_still) contended_.push_back({instance, state.begin, now_});
    if (state.number != kNotRunning) {
      if (!state.stands_still) speeds_.remove(state.number);
      free_.push_back(state.number);
    }
    state = {};
  }

  const CompiledStep& compiled_;
  LinkShares shares_;
  FailingLinks failing_;
  /// Since routes have changed, by how often they had: kept, since speeds_ and copies of it refer to them.
  std::map<std::pair<std::uint32_t, CollectiveOpId>, std::shared_ptr<const MaxMinSpeeds::Loads>> loads_;
  MaxMinSpeeds speeds_;
  std::vector<State> states_;        // by slot of exits_
  std::vector<InstanceId> running_;  // by number among those that take shares
  std::vector<std::uint32_t> free_;  // such numbers
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_exits_, resumptions_;
  std::vector<ContendedCollective> contended_;
  std::vector<std::uint32_t> changed_;  // numbers whose speeds have changed, but not yet their clocks
  std::vector<FluidShare> new_speeds_;  // of these: scratch of set_changed_speeds()
  std::function<void(const Fork&)> at_fork_;
  bool has_contended_ = false;  // whether a collective has been short of a link
  Time now_ = 0;
  std::int64_t slowed_by_ppm_ = 0;
};

}  // namespace

std::unique_ptr<FluidNetwork> make_fluid(const CompiledStep& compiled, const IsolatedResults& results,
                                         TransportEfficiency& efficiency) {
  return std::make_unique<SharedLinks>(compiled, results, efficiency);
}

}  // namespace manyworlds::core::step

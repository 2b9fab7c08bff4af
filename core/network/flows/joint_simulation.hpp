// Joint simulation of components whose states do not recur: one engine simulates all of them, and nothing is saved,
// looked up or loaded at their completions. Components stay together until the simulation is decomposed again.
#pragma once

#include <memory>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::network {

/// One engine for any number of components; idle until the first one is added.
class JointSimulation {
 public:
  explicit JointSimulation(ComponentCache& cache) : cache_(&cache) {}
  JointSimulation(const JointSimulation& other);
  JointSimulation& operator=(const JointSimulation&) = delete;
  ~JointSimulation();

  /// Returns whether it has an engine: from the first flow until it is decomposed.
  bool running() const { return engine_ != nullptr; }
  /// Returns whether no flow, packet or pause is left in it.
  bool drained() const { return engine_ == nullptr || engine_->drained(); }
  PauseDependencies deadlock() const {
    return running() ? relabeled(engine_->deadlock(), link_of_slot_) : PauseDependencies{};
  }
  Time last_activity() const { return origin_ + engine_->last_activity(); }
  /// Returns the links used since it began to run.
  const std::vector<std::uint32_t>& links() const { return links_; }

  /// Adds a component with its state at `now`, which must be the current time of the simulation if it runs. Flows and
  /// links are indexed by their number in the state; `orders` are ascending.
  void add_component(Time now, const State& state, const std::vector<FlowId>& flows,
                     const std::vector<std::uint32_t>& links, const std::vector<std::uint64_t>& orders);
  /// Starts a flow at the current time. `specs` is indexed by link.
  void start(FlowId id, const Route& route, const std::vector<LinkSpec>& specs, std::int64_t bytes,
             std::uint64_t order);
  /// Updates the tie order of its flows.
  template <class OrderOf>
  void rank(const OrderOf& order_of) {
    if (engine_ == nullptr) return;
    for (std::uint32_t slot = 0; slot < ids_.size(); ++slot)
      if (live_[slot]) engine_->set_tie_order(slot, order_of(ids_[slot]));
  }

  struct RunResult {
    Time now;
    Counters counters;
  };
  /// Advances to the next completions, at most to `limit`, and appends them. Returns the time reached and the counters
  /// of this run.
  RunResult run(Time limit, std::vector<FlowId>& finished);

  /// Returns whether it has simulated enough to pay for a decomposition: `share` link-hops per state word loaded.
  bool worth_decomposing(std::int64_t share) const { return simulated_link_hops_ >= share * state_words_; }

  struct Part {
    std::shared_ptr<const State> state;
    std::vector<FlowId> flows;
    std::vector<std::uint32_t> links;
  };
  struct Decomposition {
    std::vector<Part> parts;
    Counters counters;  // not yet returned by run()
  };
  /// Returns the connected components that are left, and stops running.
  Decomposition decompose();

 private:
  void begin(Time now);
  Counters take_new_counters();
  std::uint32_t slot_of(std::uint32_t link, const LinkSpec& spec);

  ComponentCache* cache_;
  std::unique_ptr<Engine> engine_;
  Time origin_ = 0;
  std::vector<FlowId> ids_;  // indexed by slot of the engine
  std::vector<bool> live_;
  std::vector<std::uint32_t> link_of_slot_, slot_of_link_, links_;
  std::vector<std::uint32_t> completed_, flow_slots_, link_slots_;
  std::int64_t state_words_ = 0, simulated_link_hops_ = 0;
  Counters reported_;
};

}  // namespace manyworlds::core::network

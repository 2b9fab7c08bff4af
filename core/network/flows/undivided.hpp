// Clusters whose states do not come back, as one engine that goes on: nothing is saved, looked up or loaded at their
// completions. What takes part stays together until it is divided again.
#pragma once

#include <memory>
#include <vector>

#include "core/network/flows/flows.hpp"
#include "core/network/flows/memo.hpp"

namespace manyworlds::core::network {

class Undivided {
 public:
  explicit Undivided(Memo& memo) : memo_(&memo) {}
  Undivided(const Undivided& other);
  Undivided& operator=(const Undivided&) = delete;
  ~Undivided();

  /// Whether anything is in it.
  bool running() const { return engine_ != nullptr; }
  /// Nothing is left of what was in it.
  bool drained() const { return engine_ == nullptr || engine_->drained(); }
  PauseWaits standstill() const { return running() ? renamed(engine_->standstill(), link_of_slot_) : PauseWaits{}; }
  Time quiet_since() const { return origin_ + engine_->quiet_since(); }
  /// Links that were used since it began to run.
  const std::vector<std::uint32_t>& links() const { return links_; }

  /// Adds a cluster as it is at `now`, which is where this is, if it runs. Flows and links by number in the state;
  /// orders ascending.
  void adopt(Time now, const State& state, const std::vector<FlowId>& flows, const std::vector<std::uint32_t>& links,
             const std::vector<std::uint64_t>& orders);
  /// Starts a flow now, over links with these specs.
  void start(FlowId id, const Route& route, const std::vector<LinkSpec>& specs, std::int64_t bytes,
             std::uint64_t order);
  /// Ranks its flows anew.
  template <class OrderOf>
  void rank(const OrderOf& order_of) {
    if (engine_ == nullptr) return;
    for (std::uint32_t slot = 0; slot < ids_.size(); ++slot)
      if (live_[slot]) engine_->set_order(slot, order_of(ids_[slot]));
  }

  struct Ran {
    Time now;
    Counters counters;
  };
  /// Goes on to its first completions, at most to `limit`; appends them.
  Ran run(Time limit, std::vector<FlowId>& finished);

  /// It has run for as long as dividing it may cost: `share` link-hops for each word that was put into it.
  bool due(std::int64_t share) const { return simulated_ >= share * words_; }

  struct Part {
    std::shared_ptr<const State> state;
    std::vector<FlowId> flows;
    std::vector<std::uint32_t> links;
  };
  struct Divided {
    std::vector<Part> parts;
    Counters counters;  // what run() has not told yet
  };
  /// What is left, cut where no link is shared. It runs no longer.
  Divided divide();

 private:
  void begin(Time now);
  Counters news();
  std::uint32_t slot_of(std::uint32_t link, const LinkSpec& spec);

  Memo* memo_;
  std::unique_ptr<Engine> engine_;
  Time origin_ = 0;
  std::vector<FlowId> ids_;  // by slot of the engine
  std::vector<bool> live_;
  std::vector<std::uint32_t> link_of_slot_, slot_of_link_, links_;
  std::vector<std::uint32_t> completed_, flow_slots_, link_slots_;
  std::int64_t words_ = 0, simulated_ = 0;
  Counters seen_;
};

}  // namespace manyworlds::core::network

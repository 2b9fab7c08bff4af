// What the network models without packets have in common: all that they tell but the next exits is that of
// UncontendedExits.
#pragma once

#include "core/base/error.hpp"
#include "core/step/network/network_model.hpp"
#include "core/step/network/uncontended_exits.hpp"

namespace manyworlds::core::step {

/// `Base` is KeyedNetwork or an interface that extends it.
template <class Base>
class UncontendedNetwork : public Base {
 public:
  UncontendedNetwork(const CompiledStep& compiled, const IsolatedResults& results) : exits_(compiled, results) {}

  void enter_whole(CollectiveOpId id) final { exits_.count(id); }
  void release_drained(Time at) final {
    MANYWORLDS_CHECK(this->next_exit(kNever) == kNever && !exits_.has_open(),
                     "collectives have not ended at the end of the step, at {}", at);
  }
  network::PauseDependencies deadlock() const final { return {}; }
  network::Counters counters() const final { return exits_.counters(); }
  Work work() const final { return exits_.work(); }
  const UsageCounts& episode_usage() const final { return no_episodes_; }
  std::vector<CollectiveOpId> missing() const final { return exits_.missing(); }
  UsageCounts isolated_usage() const final { return exits_.isolated_usage(); }

 protected:
  UncontendedExits exits_;

 private:
  const UsageCounts no_episodes_;
};

}  // namespace manyworlds::core::step

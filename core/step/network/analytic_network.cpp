// The composed network model under analytic fidelity. Collectives do not affect each other, so each is computed by
// itself, and the clock of each is the step's.
#include <algorithm>
#include <queue>

#include "core/step/network/uncontended_network.hpp"

namespace manyworlds::core::step {
namespace {

class AnalyticNetwork final : public UncontendedNetwork<KeyedNetwork> {
 public:
  using UncontendedNetwork::UncontendedNetwork;

  void enter(Time at, const std::vector<Member>& members) override {
    for_each_instance(members, [&](std::span<const Member> some) { exits_.enter(at, some); });
  }

  Time whole_duration(CollectiveOpId id) override { return exits_.common_exit(id); }

  Time next_exit(Time limit) override {
    for (const InstanceId instance : exits_.take_scheduled()) due_exits_.push({exits_.next(instance), instance});
    while (!due_exits_.empty() && due_exits_.top().at != exits_.next(due_exits_.top().instance)) due_exits_.pop();
    return due_exits_.empty() || due_exits_.top().at > limit ? kNever : due_exits_.top().at;
  }

  void take_exits(Time at, std::vector<Member>& exits) override {
    while (!due_exits_.empty() && due_exits_.top().at == at) {
      const InstanceId instance = due_exits_.top().instance;
      due_exits_.pop();
      if (exits_.next(instance) != at) continue;  // taken with an entry of the queue before this one
      exits_.take(instance, at, exits);
      if (const Time next = exits_.next(instance); next != kNever) due_exits_.push({next, instance});
    }
  }

 private:
  struct Due {
    Time at;
    InstanceId instance;
    bool operator>(const Due& other) const { return at > other.at; }
  };

  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_exits_;  // the next exit of each instance
};

}  // namespace

std::unique_ptr<KeyedNetwork> make_analytic(const CompiledStep& compiled, const IsolatedResults& results) {
  return std::make_unique<AnalyticNetwork>(compiled, results);
}

}  // namespace manyworlds::core::step

#include "core/collective/algorithms/exchange.hpp"

namespace manyworlds::core::collective {

Exchange::Exchange(DagBuilder& dag, std::uint32_t members) : dag_(dag), last_(members), now_(members) {
  while (2 * size_ <= members) size_ *= 2;
  folded_ = members - size_;
}

void Exchange::send(std::uint32_t from, std::uint32_t to, const Part& part, Effect effect) {
  now_[from].sent = now_[to].received =
      dag_.add(from, to, part, effect, {last_[from].sent, last_[from].received, last_[to].sent, last_[to].received});
}

void Exchange::next_step() {
  last_ = now_;
}

}  // namespace manyworlds::core::collective

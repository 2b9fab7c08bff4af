#include "core/collective/transfers/recursive_exchange.hpp"

namespace manyworlds::core::collective {

RecursiveExchange::RecursiveExchange(DagBuilder& dag, std::uint32_t members)
    : dag_(dag), last_(members), current_(members) {
  while (2 * size_ <= members) size_ *= 2;
  folded_ = members - size_;
}

void RecursiveExchange::send(std::uint32_t from, std::uint32_t to, const BlockSet& block_set, Effect effect) {
  current_[from].sent = current_[to].received = dag_.add(
      from, to, block_set, effect, {last_[from].sent, last_[from].received, last_[to].sent, last_[to].received});
}

void RecursiveExchange::next_step() {
  last_ = current_;
}

}  // namespace manyworlds::core::collective

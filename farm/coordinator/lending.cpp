#include "farm/coordinator/lending.hpp"

#include <iterator>

namespace manyworlds::farm {

namespace {
constexpr std::size_t kMaxHelpers = 16;  // of one worker; its step offers no more than some dozen components at a time
}  // namespace

void Lending::set(int worker, State state) {
  const bool was_busy = helpers_.contains(worker);
  const auto lent = helps_.find(worker);
  if (state == State::busy ? was_busy : state == State::idle && (lent != helps_.end() || free_.contains(worker)))
    return;
  if (was_busy) free_all(worker);
  if (lent != helps_.end()) remove(lent->second, worker);
  free_.erase(worker);
  if (state == State::busy) {
    helpers_.try_emplace(worker);
    by_helpers_.emplace(0, worker);
  } else if (state == State::idle) {
    free_.insert(worker);
  }
  match();
}

std::vector<std::uint32_t> Lending::helpers_of(int worker) const {
  const auto found = helpers_.find(worker);
  if (found == helpers_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Lending::add(int borrower, int helper) {
  std::set<int>& helpers = helpers_.at(borrower);
  by_helpers_.erase({helpers.size(), borrower});
  helpers.insert(helper);
  by_helpers_.emplace(helpers.size(), borrower);
  helps_[helper] = borrower;
  free_.erase(helper);
  changed_.insert(borrower);
}

/// Afterwards the helper is neither free nor lent.
void Lending::remove(int borrower, int helper) {
  std::set<int>& helpers = helpers_.at(borrower);
  by_helpers_.erase({helpers.size(), borrower});
  helpers.erase(helper);
  by_helpers_.emplace(helpers.size(), borrower);
  helps_.erase(helper);
  changed_.insert(borrower);
}

void Lending::free_all(int borrower) {
  const std::set<int>& helpers = helpers_.at(borrower);
  by_helpers_.erase({helpers.size(), borrower});
  if (!helpers.empty()) changed_.insert(borrower);
  for (const int helper : helpers) {
    helps_.erase(helper);
    free_.insert(helper);
  }
  helpers_.erase(borrower);
}

/// Lends whoever is free to who has fewest helpers, and evens out.
void Lending::match() {
  if (by_helpers_.empty()) return;
  while (!free_.empty() && by_helpers_.begin()->first < kMaxHelpers) add(by_helpers_.begin()->second, *free_.begin());
  while (std::prev(by_helpers_.end())->first >= by_helpers_.begin()->first + 2) {
    const int from = std::prev(by_helpers_.end())->second, to = by_helpers_.begin()->second;
    const int helper = *helpers_.at(from).rbegin();
    remove(from, helper);
    add(to, helper);
  }
}

}  // namespace manyworlds::farm

// Which workers that have nothing to do help which that have: evenly, each one other at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace manyworlds::farm {

class Lending {
 public:
  enum class State : std::uint8_t { gone, idle, busy };
  /// Takes what a worker is now.
  void set(int worker, State state);
  /// Returns the busy workers whose helpers have changed since the last call.
  std::set<int> take_changed() { return std::exchange(changed_, {}); }
  /// Returns the helpers of a worker, ascending; none unless it is busy.
  std::vector<std::uint32_t> helpers_of(int worker) const;

 private:
  void add(int borrower, int helper);
  void remove(int borrower, int helper);
  void free_all(int borrower);
  void match();

  std::map<int, std::set<int>> helpers_;              // by busy worker
  std::set<std::pair<std::size_t, int>> by_helpers_;  // number of helpers, busy worker
  std::map<int, int> helps_;                          // idle workers that help, and whom
  std::set<int> free_;                                // idle workers that do not
  std::set<int> changed_;
};

}  // namespace manyworlds::farm

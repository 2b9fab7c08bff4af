// Decides which tasks of a job are computed, where that follows from the results of others.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "farm/protocol/outcome.hpp"

namespace manyworlds::farm {

class Selection {
 public:
  virtual ~Selection() = default;
  /// Returns whether a task waits, beside its inputs, until it is opened or left out.
  virtual bool holds(std::uint32_t task) const = 0;
  struct Decision {
    std::vector<std::uint32_t> open, leave_out;
    std::vector<std::pair<std::uint32_t, Outcome>> known;  // tasks that settle without being computed
  };
  /// Returns what is decided before anything has settled.
  virtual Decision begin() = 0;
  /// Returns what the outcome of a task decides. A task may settle before it was opened, from a journal or a store.
  virtual Decision settled(std::uint32_t task, const Outcome& outcome) = 0;
};

}  // namespace manyworlds::farm

// What a farm computes, as the farm sees it: pure tasks with keys, costs and inputs. Every process of a run builds
// the same job from the same frozen sweep, so a task is named by its number alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::farm {

struct Task {
  core::sharing::Key key;             // of its result, in journals and stores
  double cost = 0;                    // expected work, for "longest first"; any unit
  bool stored = false;                // its result may be kept in the store and read from it
  std::vector<std::uint32_t> inputs;  // tasks (smaller numbers) whose results it needs
};

class Job {
 public:
  virtual ~Job() = default;
  virtual const std::vector<Task>& tasks() const = 0;
  /// Runs task `number`; `inputs` are the results of Task::inputs in that order. Pure: the same bytes every time.
  virtual std::string run(std::uint32_t number, std::span<const std::string> inputs) = 0;
};

}  // namespace manyworlds::farm

// What a farm computes, as the farm sees it: pure tasks with keys, costs and inputs. The coordinating process alone
// knows the whole job. A process that simulates is sent what the tasks have in common, once, and each task as an order
// that stands for itself: so a sweep is planned once, and a worker is as small as its largest task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::farm {

struct Task {
  core::sharing::Key key;             // of its result, in journals and stores
  double cost = 0;                    // expected work, for "longest first"; any unit
  bool stored = false;                // its result may be kept in the store and read from it
  std::vector<std::uint32_t> inputs;  // tasks (smaller numbers) whose results it needs
  std::uint32_t family = 0;           // tasks of one family cost less one after another in the same process
};

class Job {
 public:
  virtual ~Job() = default;
  virtual const std::vector<Task>& tasks() const = 0;
  /// What a runner is made from.
  virtual std::string common() const = 0;
  /// What a runner runs `task` by.
  virtual std::string order(std::uint32_t task) const = 0;
  /// Whether `bytes`, which somebody else wrote down, can be read as a result of `task` by all that will read it. It
  /// does not say that they are the right ones.
  virtual bool holds_result(std::uint32_t /*task*/, std::string_view /*bytes*/) const { return true; }
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// Runs the task of `order`; `inputs` are the results of its Task::inputs, in that order. Pure: the same bytes every
  /// time.
  virtual std::string run(const std::string& order, std::span<const std::string> inputs) = 0;
};

/// Both sides of a kind of job. They throw what is wrong with their text.
struct JobKind {
  std::function<std::unique_ptr<Job>(const std::string& frozen)> plan;
  std::function<std::unique_ptr<Runner>(const std::string& common)> runner;
};

}  // namespace manyworlds::farm

// A job as the farm sees it: pure tasks with keys, costs and inputs. Only the coordinating process knows the whole job.
// A simulating process receives once what all tasks have in common, and then a self-contained specification of each
// task. Thus a sweep is planned once, and a worker needs only the memory of its largest task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/work_ahead.hpp"
#include "core/sharing/key.hpp"

namespace manyworlds::farm {

struct Task {
  core::sharing::Key key;             // key of the result in the journal; see Job::result_key()
  double cost = 0;                    // expected work in any unit, for longest-processing-time-first scheduling
  bool storable = false;              // whether the result may be kept in and read from the store
  std::vector<std::uint32_t> inputs;  // smaller task numbers whose results this task needs
  std::uint32_t locality_group = 0;   // tasks of one group cost less when the same process runs them in succession
};

class Job {
 public:
  virtual ~Job() = default;
  virtual const std::vector<Task>& tasks() const = 0;
  /// Returns the key of a task's result in the store; tasks with equal keys have equal results. A job may compute it
  /// only now, and then use Task::key for the journal alone.
  virtual core::sharing::Key result_key(std::uint32_t task) const { return tasks().at(task).key; }
  /// Returns the payload from which a Runner is constructed.
  virtual std::string common_spec() const = 0;
  /// Returns the specification by which a Runner runs `task`.
  virtual std::string spec(std::uint32_t task) const = 0;
  /// Returns whether every reader can parse `bytes`, which another process wrote, as a result of `task`. It does not
  /// check whether they are the correct result.
  virtual bool is_valid_result(std::uint32_t /*task*/, std::string_view /*bytes*/) const { return true; }
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// Runs the task that `spec` describes; `inputs` are the results of its Task::inputs, in the same order. Pure: equal
  /// arguments give equal bytes.
  virtual std::string run(const std::string& spec, std::span<const std::string> inputs) = 0;
  /// Does work ahead for another process of this job, whose task asks for it. Throws if it cannot.
  virtual std::string answer(const std::string& /*question*/) {
    MANYWORLDS_CHECK(false, "this kind of job asks nothing");
  }
  /// Returns how many answers of other processes its tasks have used so far.
  virtual std::uint64_t answers_used() const { return 0; }
};

/// What a Runner may use of its machine. No result depends on it.
struct RunnerOptions {
  std::size_t threads = 1;                // with the caller's
  core::RemoteHelpers* remote = nullptr;  // other processes of this job, which it may ask; null: none
  std::string components = {};            // the folder with components that others have computed; "": none
};

/// Both sides of a kind of job. Both functions throw if they cannot parse their text.
struct JobKind {
  std::function<std::unique_ptr<Job>(const std::string& serialized_job)> plan;
  std::function<std::unique_ptr<Runner>(const std::string& common_spec, const RunnerOptions&)> runner;
};

}  // namespace manyworlds::farm

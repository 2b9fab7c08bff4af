// One experiment simulated in a thread of its own, so that the caller's thread can look for signals meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "farm/sweep/single_run.hpp"

namespace manyworlds::farm::python {

/// What to simulate: a document, as a sweep's, that has one experiment or of which `id` picks one.
struct ExperimentRequest {
  std::string text;
  std::string file;              // its name in messages; relative paths in it begin at this file's folder
  std::vector<std::string> set;  // "key=value"
  std::string catalog;           // a folder or file, or ""
  std::optional<std::int64_t> id;
  bool coupled = false;  // all packets of the step in one event loop
};

class ExperimentRun {
 public:
  /// Starts it.
  explicit ExperimentRun(ExperimentRequest request);
  /// Stops it and waits for that.
  ~ExperimentRun();
  ExperimentRun(const ExperimentRun&) = delete;
  ExperimentRun& operator=(const ExperimentRun&) = delete;

  /// Waits at most `time`; returns whether it has ended.
  bool wait(std::chrono::milliseconds time);
  /// Asks it to end at the next simulation or the next time that its step reaches.
  void stop() { progress_.request_stop(); }
  const RunProgress& progress() const { return progress_; }
  /// Once it has ended: every column of its results as JSON. Throws what reading or simulating threw.
  std::string result() const;

 private:
  std::string simulate();

  ExperimentRequest request_;
  RunProgress progress_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::string result_;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace manyworlds::farm::python

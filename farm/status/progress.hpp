// Progress of a run: counted as tasks settle, written to status.json, and drawn as one line on a terminal.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "farm/coordinator/coordinator.hpp"
#include "farm/protocol/outcome.hpp"

namespace manyworlds::farm {

class Progress {
 public:
  /// `kinds` and `costs` have one element per task; kinds are displayed in order of first appearance.
  Progress(const std::vector<std::string>& kinds, const std::vector<double>& costs, int ranks);

  /// `known`: the outcome came from the journal or the store and took no time now.
  void settled(std::uint32_t task, const Outcome& outcome, bool known);
  void load(std::vector<WorkerLoad> loads) { loads_ = std::move(loads); }

  /// Returns the contents of status.json. `state` is "running", "draining", "drained" or "complete".
  nlohmann::json status(const std::string& state, double elapsed_s) const;

 private:
  struct Count {
    std::uint64_t total = 0, done = 0, failed = 0, computed = 0;
    double cost_left = 0, cost_computed = 0;
    std::int64_t elapsed_us = 0;
  };
  std::optional<double> time_left_s(double elapsed_s) const;

  std::vector<std::uint32_t> kind_of_;
  std::vector<std::string> names_;
  std::vector<Count> counts_;
  std::vector<double> costs_;
  std::uint64_t computed_ = 0, known_ = 0;
  std::int64_t elapsed_us_ = 0;
  std::vector<WorkerLoad> loads_;
  std::uint64_t quarantined_ = 0;
  int ranks_;
};

/// Returns one line for a terminal: "experiments 12/600, collectives 80/91, 31.0/s, 1m20s left, 1 of 14 link-hops
/// simulated".
std::string progress_line(const nlohmann::json& status);
/// Returns the lines that `manyworlds status` prints.
std::string describe_status(const nlohmann::json& status);

/// Returns "45s", "3m20s" or "2h05m".
std::string duration_text(double seconds);

}  // namespace manyworlds::farm

// The live summary of a sweep for watchers: the outcomes of its experiments, the best so far, and throughput against
// memory. Its values are those of the results (farm/results/result_tables.hpp), computed a few rows at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/analysis/uncertainty.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/results/result_tables.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::farm {

class LiveSummary {
 public:
  // Limits that bound the size of the summary for sweeps of any size.
  static constexpr std::int64_t kMaxRanked = 10;
  static constexpr std::size_t kMaxFrontPoints = 60, kMaxCloudPoints = 400, kMaxFailures = 10, kMaxReasonBytes = 400;

  /// `job` must outlive the summary.
  explicit LiveSummary(const SweepJob& job);

  /// Records that a task has settled. This only decodes the result; rows are computed later.
  void settled(std::uint32_t task, const Outcome& outcome);
  /// Computes the rows of settled experiments in the order of settling, and stops after about `limit`.
  void catch_up(const OutcomeOf& outcome, std::chrono::steady_clock::duration limit);
  /// Replaces catch_up() with finished `rows` of all settled experiments.
  void add_all_rows(const io::Results& rows);

  /// Returns the members of status.json that docs/formats.md calls `experiments`, `ranking`, `pareto` and `failures`.
  nlohmann::json to_json() const;

 private:
  struct Point {
    std::uint32_t id = 0;
    double throughput = 0, memory = 0;  // tokens_per_s_per_gpu, memory_peak_bytes
    std::string layout;                 // set only for points of the front
  };
  struct Failure {
    std::uint32_t task = 0;
    Status status = Status::error;
    std::string reason;
  };

  void add_rows(const io::Results& rows);
  void add_points(const io::Results& rows);
  std::vector<std::uint32_t> next_rows();
  nlohmann::json ranking_json() const;
  nlohmann::json pareto_json() const;
  nlohmann::json failures_json() const;

  const SweepJob& job_;
  experiments::Uncertainty uncertainty_;
  std::vector<std::vector<std::uint32_t>> experiments_of_;  // by step
  std::uint64_t total_ = 0, out_of_memory_ = 0, ran_ = 0, too_large_ = 0, bounded_ = 0, failed_ = 0;
  std::deque<std::uint32_t> pending_;  // experiments that ran and are in no row yet
  std::vector<bool> is_added_;         // by experiment
  std::uint64_t ranked_ = 0;
  nlohmann::json ranking_;           // of the best so far, as JSON
  std::vector<std::uint32_t> best_;  // ids of the ranked experiments
  std::vector<Point> front_;         // Pareto front, fastest first
  std::map<std::uint64_t, Point> cloud_;
  std::deque<Failure> failures_;
};

}  // namespace manyworlds::farm

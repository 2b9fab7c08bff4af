// How the experiments of a sweep stand while it runs, for whoever watches: what became of them, the best so far, and
// throughput against memory. Every figure is that of the answer (farm/results/answer_tables.hpp), a few rows of it at a
// time.
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
#include "farm/results/answer_tables.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::farm {

class Standing {
 public:
  // What is told is bounded, however large the sweep.
  static constexpr std::int64_t kRanked = 10;
  static constexpr std::size_t kFront = 60, kCloud = 400, kFailures = 10, kReasonBytes = 400;

  /// `job` must outlive this.
  explicit Standing(const SweepJob& job);

  /// A task has settled. Costs no more than reading its result; what follows from it is worked out later.
  void settled(std::uint32_t task, const Outcome& outcome);
  /// Works out the rows of what has settled, the first first, and stops after about `most`.
  void catch_up(const OutcomeOf& outcome, std::chrono::steady_clock::duration most);
  /// The same from rows that somebody made: all that have settled.
  void take_in_all(const io::Results& rows);

  /// The members of status.json that docs/formats.md calls `experiments`, `ranking`, `pareto` and `failures`.
  nlohmann::json told() const;
  /// What sharing has saved so far: link-hops that worlds transferred over those that were simulated now; 0: not known.
  double sharing() const { return simulated_ > 0 ? transferred_ / simulated_ : 0; }

 private:
  struct Point {
    std::uint32_t id = 0;
    double speed = 0, memory = 0;  // tokens_per_s_per_gpu, memory_peak_bytes
    std::string layout;            // of the front's
  };
  struct Failure {
    std::uint32_t task = 0;
    Status status = Status::error;
    std::string reason;
  };

  void take_in(const io::Results& rows);
  void take_in_points(const io::Results& rows);
  std::vector<std::uint32_t> next_rows();
  nlohmann::json told_ranking() const;
  nlohmann::json told_pareto() const;
  nlohmann::json told_failures() const;

  const SweepJob& job_;
  experiments::Uncertainty uncertainty_;
  std::vector<std::vector<std::uint32_t>> experiments_of_;  // by step
  std::uint64_t total_ = 0, out_of_memory_ = 0, ran_ = 0, too_large_ = 0, failed_ = 0;
  double transferred_ = 0, simulated_ = 0;
  std::deque<std::uint32_t> waiting_;  // experiments that ran and are in no row yet
  std::vector<bool> taken_in_;         // by experiment
  std::uint64_t ranked_ = 0;
  nlohmann::json ranking_;           // of the best so far, as told
  std::vector<std::uint32_t> best_;  // their experiments
  std::vector<Point> front_;         // nobody is as fast with less memory; the fastest first
  std::map<std::uint64_t, Point> cloud_;
  std::deque<Failure> failures_;
};

}  // namespace manyworlds::farm

#include "farm/allocation/schedule.hpp"

#include <limits>
#include <numeric>

#include "core/base/error.hpp"

namespace manyworlds::farm::allocation {
namespace {

using core::Int128;

constexpr Nanoseconds kNever_ns = std::numeric_limits<Nanoseconds>::max();

/// Returns the time that `work` takes at `speed`, rounded up.
Int128 time_of(Int128 work, std::int64_t speed) {
  return (work + speed - 1) / speed;
}

class Simulation {
 public:
  Simulation(std::span<const Job> jobs, const Cluster& cluster, Policy policy)
      : jobs_(jobs), cluster_(cluster), policy_(policy), states_(jobs.size()), by_arrival_(jobs.size()) {
    std::iota(by_arrival_.begin(), by_arrival_.end(), std::size_t{0});
    std::stable_sort(by_arrival_.begin(), by_arrival_.end(),
                     [&](std::size_t a, std::size_t b) { return jobs[a].arrival < jobs[b].arrival; });
    result_.starts.assign(jobs.size(), kNever_ns);
    result_.ends.assign(jobs.size(), kNever_ns);
  }

  Schedule run() {
    for (now_ = jobs_[by_arrival_.front()].arrival; now_ != kNever_ns; advance_to(next_event())) {
      admit();
      divide_anew();
    }
    MANYWORLDS_CHECK(present_.empty() && arrived_ == jobs_.size(), "{} jobs are left", present_.size());
    return std::move(result_);
  }

 private:
  struct State {
    Int128 work = 0;  // left
    std::int64_t gpus = 0, speed = 0;
    Nanoseconds progresses_from = 0;  // the end of its restart
  };

  void admit() {
    for (; arrived_ < jobs_.size() && jobs_[by_arrival_[arrived_]].arrival <= now_; ++arrived_) {
      present_.push_back(by_arrival_[arrived_]);
      states_[present_.back()].work = jobs_[present_.back()].work();
    }
  }

  void divide_anew() {
    std::vector<PresentJob> claimants;
    for (const std::size_t job : present_) claimants.push_back({&jobs_[job], states_[job].work});
    const std::vector<std::int64_t> shares = divide(policy_, claimants, cluster_.gpus);
    std::vector<std::int64_t> gpus(jobs_.size(), 0);
    for (std::size_t i = 0; i < present_.size(); ++i) gpus[present_[i]] = shares[i];
    for (std::size_t job = 0; job < jobs_.size(); ++job)
      if (gpus[job] != states_[job].gpus) change(job, gpus[job]);
  }

  void change(std::size_t job, std::int64_t gpus) {
    State& state = states_[job];
    state.gpus = gpus, state.speed = speed_on(jobs_[job], gpus);
    result_.changes.push_back({now_, job, gpus});
    if (gpus == 0) return;
    const bool is_start = result_.starts[job] == kNever_ns;
    state.progresses_from = is_start ? now_ : now_ + cluster_.restart;
    if (is_start)
      result_.starts[job] = now_;
    else
      ++result_.restarts;
  }

  /// Returns the next arrival or completion; kNever_ns if all is done.
  Nanoseconds next_event() const {
    Int128 next = arrived_ < jobs_.size() ? jobs_[by_arrival_[arrived_]].arrival : kNever_ns;
    for (const std::size_t job : present_) {
      const State& state = states_[job];
      if (state.gpus > 0)
        next = std::min(next, std::max(now_, state.progresses_from) + time_of(state.work, state.speed));
    }
    return static_cast<Nanoseconds>(next);
  }

  void advance_to(Nanoseconds next) {
    for (const std::size_t job : present_) {
      State& state = states_[job];
      const Nanoseconds progress = next - std::max(now_, state.progresses_from);
      if (state.gpus > 0 && progress > 0) state.work -= static_cast<Int128>(progress) * state.speed;
      if (state.work <= 0) result_.ends[job] = next;
    }
    std::erase_if(present_, [&](std::size_t job) { return states_[job].work <= 0; });
    now_ = next;
  }

  std::span<const Job> jobs_;
  Cluster cluster_;
  Policy policy_;
  std::vector<State> states_;            // of each job
  std::vector<std::size_t> by_arrival_;  // all jobs
  std::vector<std::size_t> present_;     // those that have arrived and are not done, by arrival
  std::size_t arrived_ = 0;
  Nanoseconds now_ = 0;
  Schedule result_;
};

double seconds_of(double nanoseconds) {
  return nanoseconds / static_cast<double>(kSecond_ns);
}

}  // namespace

Int128 longest_time(std::span<const Job> jobs, const Cluster& cluster) {
  Int128 total = 0;
  for (const Job& job : jobs) {
    std::int64_t slowest = job.curve.front().speed;
    for (const SpeedPoint& point : job.curve) slowest = std::min(slowest, point.speed);
    total += time_of(job.work(), slowest) + 2 * static_cast<Int128>(cluster.restart) + 1;
  }
  return total;
}

Schedule schedule_jobs(std::span<const Job> jobs, const Cluster& cluster, Policy policy) {
  Nanoseconds last_arrival = 0;
  for (const Job& job : jobs) last_arrival = std::max(last_arrival, job.arrival);
  MANYWORLDS_CHECK(last_arrival + longest_time(jobs, cluster) < kNever_ns, "{} jobs take too long", jobs.size());
  return Simulation(jobs, cluster, policy).run();
}

double mean_completion_s(std::span<const Job> jobs, const Schedule& schedule) {
  Int128 total = 0;
  for (std::size_t job = 0; job < jobs.size(); ++job) total += schedule.ends[job] - jobs[job].arrival;
  return seconds_of(static_cast<double>(total) / static_cast<double>(jobs.size()));
}

double makespan_s(std::span<const Job> jobs, const Schedule& schedule) {
  Nanoseconds first = kNever_ns;
  for (const Job& job : jobs) first = std::min(first, job.arrival);
  return seconds_of(static_cast<double>(*std::max_element(schedule.ends.begin(), schedule.ends.end()) - first));
}

double gpu_hours(const Schedule& schedule, std::size_t jobs) {
  std::vector<Change> held(jobs);
  Int128 total = 0;  // GPU-nanoseconds
  for (const Change& change : schedule.changes) {
    total += static_cast<Int128>(change.at - held[change.job].at) * held[change.job].gpus;
    held[change.job] = change;
  }
  return seconds_of(static_cast<double>(total)) / 3'600;
}

}  // namespace manyworlds::farm::allocation

#include "farm/python/experiment_run.hpp"

#include "experiments/catalog/catalog.hpp"
#include "farm/sweep/single_experiment.hpp"

namespace manyworlds::farm::python {

ExperimentRun::ExperimentRun(ExperimentRequest request)
    : request_(std::move(request)), thread_([this] {
        try {
          result_ = simulate();
        } catch (...) {
          error_ = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        ended_ = true;
        ended_changed_.notify_all();
      }) {}

ExperimentRun::~ExperimentRun() {
  stop();
  thread_.join();
}

bool ExperimentRun::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return ended_changed_.wait_for(lock, time, [this] { return ended_; });
}

std::string ExperimentRun::result() const {
  if (error_) std::rethrow_exception(error_);
  return result_;
}

std::string ExperimentRun::simulate() {
  experiments::Sweep sweep = single_experiment(
      experiments::parse_sweep(request_.text, request_.file, request_.set, experiments::Catalog(request_.catalog)),
      request_.id, request_.file);
  if (request_.coupled) sweep.experiments.front().settings["composition"] = std::string("coupled");
  const SingleRun run(sweep, {}, &progress_);
  // NaN, a missing value, becomes null.
  return experiment_json(sweep, run.results()).dump();
}

}  // namespace manyworlds::farm::python

// The step of a training job on a designed GPU, in this process.
#pragma once

#include <string>
#include <vector>

#include "experiments/silicon/chip.hpp"
#include "experiments/silicon/cost.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm::design {

/// The fastest layout of a job on some GPU.
struct JobStep {
  double step_s = 0;       // infinity if no layout ran
  std::size_t layout = 0;  // index of the job's experiments
  std::string why;         // that no layout ran: the reason of the first
  double tokens = 0;       // of a step
  double tokens_per_s_per_gpu = 0, mfu = 0;
  bool ran() const { return why.empty(); }
};

class DesignJob {
 public:
  /// `sweep` has the layouts of the job, on GPUs of one kind; `at` is the place of its name for messages. Throws
  /// core::InputError if its layouts have several GPUs or clusters of several sizes, or a GPU that no known chip
  /// describes.
  DesignJob(experiments::Sweep sweep, const std::string& file, int line);

  /// Simulates all layouts, in the fidelity that the job has, or another.
  JobStep step(const experiments::silicon::Chip& chip, const experiments::silicon::Power& power,
               const std::string& fidelity = {}) const;
  /// The same on the GPU of the catalog itself, with all that was measured of it.
  JobStep measured_step(const std::string& fidelity = {}) const { return run(sweep_, fidelity); }

  const experiments::silicon::KnownChip& known() const { return *known_; }
  std::int64_t gpus() const { return gpus_; }
  const experiments::Sweep& sweep() const { return sweep_; }
  std::string fidelity() const;
  /// Returns the axes of a layout, "strategy.tp=2 strategy.pp=1"; "" if the job has only one.
  std::string layout_text(std::size_t layout) const;
  /// Returns the options of the catalog's GPU, with those of the chip in their place.
  core::OptionSet gpu_options(const experiments::silicon::Chip& chip, const experiments::silicon::Power& power) const;

 private:
  JobStep run(experiments::Sweep sweep, const std::string& fidelity) const;
  core::OptionSet changed_options(const experiments::silicon::Chip& chip,
                                  const experiments::silicon::Power& power) const;

  experiments::Sweep sweep_;
  core::compute::Gpu measured_;
  const experiments::silicon::KnownChip* known_ = nullptr;
  std::int64_t gpus_ = 0;
};

/// Calls work(i) for each i below `count` on so many threads, which take turns. If several fail, the exception of the
/// least i is thrown.
void for_each_in_threads(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace manyworlds::farm::design

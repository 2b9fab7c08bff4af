// What screening the layouts of a sweep by sums over one micro-batch takes, and how far these are below analytic steps:
// the CPU time of each part for all experiments, and the shortfall of the sums for some that fit, evenly drawn.
// screening SPEC.yaml STEPS [KEY=VALUE]...
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "core/base/error.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/run/simulation_context.hpp"
#include "farm/plan/footprints.hpp"
#include "farm/plan/plan.hpp"

using namespace manyworlds;

namespace {

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Prints the CPU time since the last call.
class Watch {
 public:
  void lap(const char* what, std::size_t layouts) {
    const double now = cpu_s();
    fmt::print("{:<46} {:8.3f} s of CPU, {:7.1f} us a layout\n", what, now - begin_,
               1e6 * (now - begin_) / static_cast<double>(std::max<std::size_t>(layouts, 1)));
    begin_ = cpu_s();
  }

 private:
  double begin_ = cpu_s();
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: screening SPEC.yaml STEPS [KEY=VALUE]...\n");
    return 2;
  }
  Watch watch;
  const experiments::Sweep sweep = experiments::read_sweep(argv[1], {argv + 3, argv + argc});
  const std::size_t all = sweep.experiments.size();
  watch.lap("reading the sweep, its rules and its draw", all);

  experiments::GraphCache graphs;
  experiments::ConfigReader reader;
  for (const auto& one : sweep.experiments) configure(one, graphs, reader);
  watch.lap("settings -> configurations", all);

  farm::Footprints footprints;
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < all; ++i) {
    const auto memory = footprints.requirement_of(configure(sweep.experiments[i], graphs, reader));
    if (memory.required.total() <= memory.memory_bytes()) fitting.push_back(i);
  }
  watch.lap("the same, and memory", all);

  core::step::LowerBounds bounds;
  for (const std::size_t i : fitting) bounds.of(configure(sweep.experiments[i], graphs, reader));
  watch.lap("the same of those that fit, and sums", fitting.size());

  core::step::SimulationContext context;
  core::step::IsolatedResults known;
  std::vector<std::pair<double, std::size_t>> below;  // shares of the analytic step, and which experiment
  const std::size_t steps = std::min<std::size_t>(std::strtoull(argv[2], nullptr, 10), fitting.size());
  for (std::size_t k = 0; k < steps; ++k) {
    const std::size_t i = fitting[fitting.size() * k / steps];
    const core::step::Configuration configuration = configure(sweep.experiments[i], graphs, reader);
    const core::Time step_ps = farm::analytic_step(configuration, context, known).step_ps;
    // The sums of other steps know of links that transfers share.
    const core::Time sum_ps = bounds.of(farm::bound_of(configuration));
    MANYWORLDS_CHECK(sum_ps <= step_ps, "experiment {}: {} ps by sums, {} by its analytic step", i, sum_ps, step_ps);
    below.emplace_back(1 - static_cast<double>(sum_ps) / static_cast<double>(step_ps), i);
  }
  watch.lap("analytic steps of some", steps);
  if (below.empty()) return 0;
  std::sort(below.begin(), below.end());
  double mean = 0;
  for (const auto& [share, experiment] : below) mean += share / static_cast<double>(below.size());
  const auto percent_at = [&](double share) {
    return 100 * below[static_cast<std::size_t>(share * static_cast<double>(below.size() - 1))].first;
  };
  fmt::print("{} of {} layouts fit; of {} of them the sums are below the analytic step by\n", fitting.size(), all,
             below.size());
  fmt::print("  {:.1f} % on average, {:.1f} % in the median, {:.1f} % at 9 of 10, {:.1f} % at most (experiment {})\n",
             100 * mean, percent_at(0.5), percent_at(0.9), 100 * below.back().first, below.back().second);
}

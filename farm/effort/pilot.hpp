// A pilot of a sweep: some steps, drawn and simulated before it runs, tell what all of them will take.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "farm/effort/compute_alone.hpp"
#include "farm/effort/weighted_draw.hpp"
#include "farm/plan/sweep_job.hpp"

namespace manyworlds::farm {

/// What the distinct steps of a sweep take if each is computed by itself. What steps share makes a run shorter.
struct Pilot {
  std::int64_t samples = 0;  // draws
  std::int64_t steps = 0;    // distinct steps among them
  bool is_cut = false;       // the last drawn step was given up: times are lower bounds, link-hops are of the others
  DrawnTotal cpu_s;
  DrawnTotal link_hops;            // that take place in the modelled networks
  DrawnTotal simulated_link_hops;  // those of them that are computed
  double longest_s = 0;            // CPU time of the longest drawn step
};

/// Draws steps in proportion to what they are expected to cost, and computes each once, until `at_most` is over; what
/// is running then is given up after as long again. If every step was drawn, the totals are theirs. Returns nullopt if
/// no step fits into memory or one cannot be computed.
std::optional<Pilot> run_pilot(const SweepJob& job, const ComputeAlone& compute_alone,
                               std::chrono::duration<double> at_most);

}  // namespace manyworlds::farm

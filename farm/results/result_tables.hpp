// Assembles the results of a run: the reproducible part from the sweep, its plan and the outcomes of its tasks, and the
// provenance from the run itself. docs/formats.md describes the form of the columns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/analysis/uncertainty.hpp"
#include "farm/plan/plan.hpp"
#include "farm/protocol/outcome.hpp"
#include "farm/run/run_job.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Returns the outcome of a task by its number; every task has settled.
using OutcomeOf = std::function<const Outcome&(std::uint32_t task)>;

/// Builds the reproducible results, which depend on the sweep and on the outcomes' bytes only. The results of a shard
/// have the rows of its experiments, and everything that the sweep excluded.
io::Results make_results(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome);

/// Builds only the rows of `experiments` (ids, ascending), with the names of the axes and nothing else.
io::Results make_rows(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome,
                      const experiments::Uncertainty& uncertainty, const std::vector<std::uint32_t>& experiments);

/// The CPU time that all experiments would take one by one, estimated from some that were run alone.
struct OneByOne {
  double cpu_s = 0;
  double error_s = 0;  // standard error
  std::int64_t samples = 0;
};

/// Appends how the results were computed. Without `share` they were computed one by one.
void add_provenance(io::Results& results, const Plan& plan, const OutcomeOf& outcome, const RunStatistics& statistics,
                    bool share, const std::optional<OneByOne>& one_by_one);

}  // namespace manyworlds::farm

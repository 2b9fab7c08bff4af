// The results of a run put together: the answer from the sweep, its plan and what became of each task; provenance from
// how the run went. docs/formats.md describes the columns' form.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/analysis/uncertainty.hpp"
#include "farm/plan/plan.hpp"
#include "farm/protocol/outcome.hpp"
#include "farm/run/run_job.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The outcome of a task, by its number; every task is settled.
using OutcomeOf = std::function<const Outcome&(std::uint32_t task)>;

/// Depends on the sweep and the outcomes' bytes only, and of those on the answer alone. Of a shard it has the rows of
/// its experiments, and all that the sweep left out.
io::Results answer_of(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome);

/// Of those rows the ones of `experiments` (ids, ascending) alone, with the names of axes and nothing else.
io::Results rows_of(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome,
                    const experiments::Uncertainty& uncertainty, const std::vector<std::uint32_t>& experiments);

/// Appends how the answer was computed.
void add_provenance(io::Results& results, const Plan& plan, const OutcomeOf& outcome, const RunFigures& figures,
                    bool share);

}  // namespace manyworlds::farm

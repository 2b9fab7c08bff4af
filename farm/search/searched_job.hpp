// A training job in a search: what it fixes, and where its own layout ranks among those found.
#pragma once

#include <string>

#include "experiments/jobs/job.hpp"
#include "farm/search/search_report.hpp"
#include "farm/search/search_space.hpp"

namespace manyworlds::farm {

/// Returns what the layouts of a search have in common with the job: its model and the switches of its software. How
/// tokens go to experts and what overlaps with tensor parallelism and with the gathering of parameters follow from the
/// layout, so the search chooses them.
SearchedJob searched(const experiments::jobs::Job& job);

/// Returns where the job's own layout, `own`, ranks among those of the search, `results`, of the same fidelity; and
/// what the best of these gains: tokens, days and money if a token budget is given, memory, and how certain that is.
std::string own_rank_text(const io::Results& results, const std::string& file, const io::Results& own);

}  // namespace manyworlds::farm

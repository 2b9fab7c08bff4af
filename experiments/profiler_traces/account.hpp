// What users are told of traces that were read.
#pragma once

#include <string>
#include <vector>

#include "experiments/profiler_traces/rank_program.hpp"
#include "experiments/profiler_traces/terms.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::profiler {

/// Adds the dependencies, the account and the notes of ranks to what was imported.
void tell(const std::vector<RankTrace>& traces, const std::vector<RankAccount>& ranks,
          const MatchedCollectives& collectives, Collectives how, const ProfilerTerms& terms, programs::Imported& to);

}  // namespace manyworlds::experiments::profiler

// What users are told of traces that were read.
#pragma once

#include <string>
#include <vector>

#include "experiments/kineto/rank_program.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::kineto {

/// Adds the dependencies, the account and the notes of ranks to what was imported.
void tell(const std::vector<RankTrace>& traces, const std::vector<RankAccount>& ranks,
          const MatchedCollectives& collectives, Collectives how, programs::Imported& to);

}  // namespace manyworlds::experiments::kineto

// The section of a report that says why the best are the best.
#pragma once

#include <optional>
#include <vector>

#include "io/ranking/best_proof.hpp"
#include "io/report/report_blocks.hpp"

namespace manyworlds::io {

/// Returns, of a sweep that asked for its best, how many each rung of bounds left behind and by how much, what is
/// proven, how the gap closed, and the values of axes that none of the best can have; nothing for other sweeps, and for
/// one that has not ended. Without `proof`, as of results of older versions, it has the numbers alone.
std::vector<Block> proof_of_best(const Results& results, const std::optional<BestProof>& proof);

}  // namespace manyworlds::io

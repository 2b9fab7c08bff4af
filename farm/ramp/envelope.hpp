// Which of some experiments trains fastest at which critical batch. Each takes T + (T/B) r seconds for a step of an
// infinite batch where the critical batch is r, T its step and B its batch: the least of lines in r, exactly.
#pragma once

#include <span>
#include <vector>

#include "farm/ramp/simulated_batches.hpp"

namespace manyworlds::farm::ramp {

/// From the critical batch `from` to `to` this candidate is the fastest.
struct EnvelopePiece {
  std::size_t candidate = 0;
  double from = 0, to = 0;
};

/// Returns the critical batch at which two candidates are equally fast. Their T/B must differ.
double crossing(const Candidate& a, const Candidate& b);

/// Returns the pieces from `low` to `high` of those candidates, at least one, that `members` number; batches ascend. Of
/// equally fast ones the first counts.
std::vector<EnvelopePiece> lower_envelope(std::span<const Candidate> candidates, std::vector<std::size_t> members,
                                          double low, double high);

}  // namespace manyworlds::farm::ramp

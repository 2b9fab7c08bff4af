// More data-parallel replicas of a job.
#pragma once

#include <string>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::edits {

/// Lets `replicas` copies of all ranks run: rank r of copy i is rank i R + r of R ranks, on GPU i G + g of the first G
/// GPUs. Groups in dimensions whose waits count as exposed_dp grow over all copies, which keep their bytes as
/// collectives of data parallelism do; all others are copied. If there are none that grow, the copies of a rank are a
/// group in a new dimension, "replicas", in which nothing happens until edits add collectives. Returns what was
/// assumed, a sentence each. Throws core::InputError for too many ranks, and for collectives in dimensions that grow
/// which tell members apart.
std::vector<std::string> add_replicas(programs::StreamPrograms& programs, std::int64_t replicas,
                                      const std::string& name);

}  // namespace manyworlds::experiments::edits

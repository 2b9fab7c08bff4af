// A job on more ranks: data-parallel replicas, and wider groups.
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

/// Lets every rank run `factor` times side by side: rank r of R is ranks r F to r F + F - 1, as its GPU is. Groups in
/// dimensions of this pattern have all of them, with the bytes that their collectives had; all other groups are copied.
/// What the ranks run stays, so that a step has as many tokens as before once edits divide the work. Returns what was
/// done. Throws core::InputError, without a file, for no such dimension, one of pairs, too many ranks, and collectives
/// that tell members apart.
std::string widen(programs::StreamPrograms& programs, const std::string& dimension, std::int64_t factor);

}  // namespace manyworlds::experiments::edits

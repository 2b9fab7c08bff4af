// A symbolic run of an algorithm: which contributions of which GPUs are where, whatever their values.
#pragma once

#include <string>

#include "experiments/msccl/algorithm.hpp"

namespace manyworlds::experiments::msccl {

/// Whether accesses of one chunk by two thread blocks were looked at; there may be too many thread blocks.
struct Checked {
  bool races = true;
};

/// Runs an algorithm in each of the ways in which it is meant (in place, out of place), and throws InputError, with the
/// line, GPU, thread block and step, where it is not the collective that it says:
/// - a step reads what nothing has written, adds chunks of different places or one contribution twice, or receives
///   another number of chunks than is sent;
/// - thread blocks wait for each other in a circle, or for a transfer that does not come; slots_of() transfers may be
///   under way on a connection;
/// - a step touches a chunk that another thread block of the GPU writes, or writes one that it reads, and neither waits
///   for the other, directly or by way of transfers;
/// - in the end, a chunk of an output has not the contributions that the collective demands.
Checked check_algorithm(const Algorithm& algorithm, const std::string& name);

}  // namespace manyworlds::experiments::msccl

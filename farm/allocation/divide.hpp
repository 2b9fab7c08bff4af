// How many GPUs each of the present jobs gets, by three policies. Only the numbers of GPUs of a job's curve are given.
#pragma once

#include <span>
#include <vector>

#include "farm/allocation/job.hpp"

namespace manyworlds::farm::allocation {

enum class Policy {
  /// Optimus (Peng et al., EuroSys 2018, section 4.1): in order of arrival each job gets its least number of GPUs, if
  /// they are there; then, again and again, that job gets more whose completion time lessens most per GPU. Where a
  /// curve has gaps or dents, a job may go to any larger number of its curve. If the completion times are convex in the
  /// GPUs and every number is allowed, no division has a smaller sum of completion times.
  marginal_gain,
  /// In order of arrival each job gets the GPUs that it requests, and keeps them; a job for which there are too few
  /// holds up all behind it.
  fifo,
  /// Dominant resource fairness (Ghodsi et al., NSDI 2011) of one resource, which is max-min fairness: again and again,
  /// the job with the fewest GPUs gets the next number of its curve, as far as more GPUs make it faster.
  drf
};

/// A job that has arrived and is not done.
struct PresentJob {
  const Job* job = nullptr;
  core::Int128 work = 0;  // what is left, above 0
};

/// Returns the GPUs of each job, 0 for one that has to wait; they add up to at most `gpus`. `jobs` are in the order of
/// arrival, and each can run on `gpus`. Equal claims go to the earlier job.
std::vector<std::int64_t> divide(Policy policy, std::span<const PresentJob> jobs, std::int64_t gpus);

}  // namespace manyworlds::farm::allocation

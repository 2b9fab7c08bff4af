// What the formats of others do not say of programs that are written as them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::programs {

/// The durations of a rank that are written as others, and by how much their sum is more than it was.
struct Rounding {
  std::int64_t durations = 0;
  double us = 0;
  /// Counts a duration; less than half a picosecond, to which program files are exact, is no difference.
  void add(double exact_us, double written_us);
};

/// Returns how much is rounded at most, of several ranks, to `what` ("whole nanoseconds"); empty if nothing is.
std::string rounding_text(const std::vector<Rounding>& of_ranks, const std::string& what);

/// Returns, as in "left out: allocations, parts of the step", what these programs say that neither traces of Chakra nor
/// schedules of GOAL have a place for; empty if it is nothing. Names of streams and dimensions are not among it.
std::string left_out_text(const StreamPrograms& programs);

}  // namespace manyworlds::experiments::programs

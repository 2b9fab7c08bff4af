// What a reader of a foreign format makes of its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::programs {

/// How many dependencies between operations the files state, how many follow from times or conventions alone, and how
/// many of these were dropped as times contradict them.
struct Dependencies {
  std::int64_t exact = 0, inferred = 0, contradicted = 0;
  bool operator==(const Dependencies&) const = default;
};

struct Imported {
  StreamPrograms programs;  // notes: what was assumed
  Dependencies dependencies;
  double recorded_us = 0;            // what the programs took as recorded, from their beginning; 0: not known
  std::vector<std::string> account;  // what users are told besides: counts, offsets of clocks; a line each
  std::string refused;               // why there are no programs, though the files were read; empty: there are
};

}  // namespace manyworlds::experiments::programs

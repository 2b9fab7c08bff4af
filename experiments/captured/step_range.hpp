// Which part of a record is a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/captured/periods.hpp"
#include "experiments/records/communicators.hpp"
#include "experiments/records/rank_record.hpp"

namespace manyworlds::experiments::captured {

/// What users ask for: the last whole period of what repeats, all of the record, what lies between cudaProfilerStart
/// and the next cudaProfilerStop, or lines of each record.
struct StepChoice {
  enum class By : std::uint8_t { last_period, all, profiler, lines } by = By::last_period;
  std::uint32_t first_line = 0, last_line = 0;
};

/// Reads "last", "all", "profiled" or "FROM-TO". Throws InputError, without a file.
StepChoice parse_step_choice(const std::string& text);

/// The calls [begin, end) of a record.
struct StepRange {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t periods = 0;                      // whole ones that were found; 0: it is none
  std::uint32_t repeated_work = 0, all_work = 0;  // calls that give a device work: of all periods, and of the record
  bool begins_idle = true;                        // whether the host had waited for all before it
};

/// Finds the step of each record (docs/capture.md says how). With periods, that of another rank than the first begins
/// at the same collectives. Throws InputError, with the file and what else to ask for, if a record has no such part, or
/// the calls of a communicator's members in the step are not the same ones.
std::vector<StepRange> find_steps(const std::vector<RankRecord>& records,
                                  const std::vector<JoinedCommunicator>& communicators, const StepChoice& choice);

}  // namespace manyworlds::experiments::captured

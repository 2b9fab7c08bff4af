// Whether the ranks of a job called the same collectives in the same order, by their dumps: who lacks which is who the
// others wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/nccl_logs/flight_dump.hpp"

namespace manyworlds::experiments::nccl_logs {

/// A group of the job, with what each of its members called in it.
struct JobGroup {
  RecordedGroup group;
  std::vector<std::vector<const RecordedCall*>> collectives;  // by member, from the first that all dumps reach back to
  std::vector<std::vector<const RecordedCall*>> transfers;    // by member: those whose other end is in its dump too
};

struct Agreement {
  std::vector<JobGroup> groups;
  std::vector<std::string> differences;  // a line each: what differs, where and on which ranks; empty: nothing does
  std::vector<std::string> unfinished;   // a line for each group with calls that have not completed
  std::int64_t overwritten = 0;          // calls left out, as other ranks' dumps do not reach back to them
};

/// Compares dumps, which must outlive the result: collectives by group and sequence number, transfers by pair and
/// order. Where a dump has lost its beginning, groups are compared from the first collective that all of their members'
/// dumps have, and transfers from the last one of each pair back.
Agreement compare_dumps(const std::vector<FlightDump>& dumps);

}  // namespace manyworlds::experiments::nccl_logs

// What ranks called of NCCL, in what order: all that logs of communication alone tell, and the programs of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::nccl_logs {

inline constexpr std::uint32_t kNoBatch = UINT32_MAX;

/// A collective, or an end of a transfer, that a rank called.
struct LoggedCall {
  std::string name;
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::int64_t bytes = 0;          // see core::collective::Kind
  std::uint32_t group = 0;         // index in LoggedJob::groups
  std::uint32_t root = 0;          // member of the group
  std::uint32_t peer = 0;          // of a transfer: rank of the job
  bool receives = false;           // of a transfer
  std::uint32_t batch = kNoBatch;  // calls of a group that follow each other with one number run side by side
  double gap_us = 0;               // of the host, before the call
};

struct LoggedGroup {
  std::string name;
  std::vector<std::uint32_t> ranks;  // of the job
  core::workload::StepPart part = core::workload::StepPart::exposed_other;
};

struct LoggedJob {
  std::vector<LoggedGroup> groups;
  std::vector<std::vector<LoggedCall>> ranks;  // by rank, in the order of its calls
  bool has_host_order = true;                  // that of calls of different groups is known
};

/// Returns the programs of a job: collectives of a group on a stream, in their order, with its batches of transfers;
/// other transfers on a stream for each group, peer and direction; and where the order of calls is known, a thread of
/// the host that calls one after the other. Orders on a stream count as exact dependencies, that of calls of
/// different groups as inferred. A rank without a call idles. Throws core::InputError, naming `what`, where members of
/// a group do not agree.
programs::Imported programs_of(const LoggedJob& job, const std::string& what);

}  // namespace manyworlds::experiments::nccl_logs

// AICB's table of collectives (aliyun/aicb, log_analyzer/log.py, workload_applyer.py): what one rank, or one rank of
// each stage, issues in its order.
#pragma once

#include <string>
#include <string_view>

#include "experiments/simai/workload.hpp"

namespace manyworlds::experiments::simai {

/// Returns whether a text begins as such a table does: with AICB's columns, or with "[rank0 ~ rank127]" before them.
bool is_collectives_file(std::string_view text);

/// Returns the last epoch of the table as programs: operations behind the last `epoch_end` before it, each after the
/// one before it (that nothing ends the last epoch is told), as AICB's workload_applyer issues them, but neighbouring
/// transfers together: Megatron-LM has such a batch (send_forward_recv_backward), and one after the other they would
/// wait for each other. A section "[ pp_stage0: [rank0, ...] ]" is the program of its ranks. Transfers go to the
/// neighbour stage that `additional` names; those that the first or the last stage does not have are left out. Groups
/// are in Megatron-LM's order, of the sizes that `comm_group_size` says in any epoch, or that are given beside the
/// table; computation has its
/// `_elapsed_time` in nanoseconds, or else the two shapes of its product in `msg_size`. Times of collectives are not
/// taken. Throws InputError with the line for an operation or a group that is not known, for a group that is used and
/// whose size nobody says, for sizes that contradict each other or do not fit the ranks, for transfers with the next or
/// the previous stage alone in a table without sections, and for a table without an operation.
programs::Imported parse_collectives(std::string_view text, const std::string& name, const RunOptions& options = {});

/// Reads the same from a file, which may be compressed by gzip.
programs::Imported read_collectives(const std::string& path, const RunOptions& options = {});

}  // namespace manyworlds::experiments::simai

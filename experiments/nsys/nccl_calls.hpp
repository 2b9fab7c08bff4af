// Which collective a kernel of NCCL is of: the one whose range of NVTX it was launched in, or the group of ranges whose
// end it was launched in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/nsys/communicators.hpp"
#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::nsys {

enum class NcclRange : std::uint8_t {
  group_start,
  group_end,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send,
  receive
};

/// Returns what a range of NCCL's is, by its text; nothing for others.
std::optional<NcclRange> nccl_range(std::string_view text);

/// A call of NCCL by a thread of a process.
struct NcclCall {
  NcclRange range = NcclRange::group_start;
  std::int64_t start = 0, end = 0;  // ns, as the export has them
  std::uint64_t communicator = 0;
  std::int64_t bytes = -1;  // of the buffer that the call is about; below 0: the export does not say
  std::int64_t other = -1;  // the peer or the root: rank of the communicator
};

/// The calls of the threads of a process, by the name of the thread as traces have it.
using CallsOfThreads = std::map<std::string, std::vector<NcclCall>>;

/// Sets the arguments of the kernels of NCCL in the traces of one process, which stand in `traces` at `numbers`, and
/// the users of their communicators, where traces are numbered from `first_number` on. `zero` is, by trace, the time
/// that the trace has as 0. Groups, peers and bytes are as the communicator has them until resolve() sets them. Kernels
/// that no call or several can be of stay without.
void match_calls(CallsOfThreads& calls, const std::vector<std::uint32_t>& numbers,
                 const std::vector<std::int64_t>& zero, std::uint32_t first_number,
                 std::vector<profiler::RankTrace>& traces, Communicators& communicators);

}  // namespace manyworlds::experiments::nsys

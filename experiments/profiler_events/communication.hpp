// What a kernel of NCCL says of itself, as a collective or an end of a transfer: kind, bytes and ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::profiler {

/// A collective as one rank calls it, or its end of a transfer.
struct NamedCollective {
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::int64_t bytes = 0;            // see core::collective::Kind
  std::vector<std::int64_t> counts;  // of an uneven all-to-all: bytes that this rank sends to each member
  std::int64_t peer = -1;            // of a transfer: the other rank of the job
  std::int64_t root = -1;            // of a broadcast or reduce: the member; below 0: not said
  bool receives = false;
  bool operator==(const NamedCollective&) const = default;
};

/// Returns the collective of a kernel's arguments; nothing if they do not tell its kind or its size.
std::optional<NamedCollective> named_collective(const CommunicationArguments& arguments,
                                                const std::vector<std::string>& names);

/// Returns the ranks of the group that arguments are about, ascending as the group numbers them: as they say, as the
/// head of the trace has the group of that name, or all of the job if it has as many. Empty if nothing tells.
std::vector<std::uint32_t> group_ranks(const CommunicationArguments& arguments, const RankTrace& trace);

/// Returns the ranks of a text such as `[0, 1]`. With `...` in it, the `size` ranks of the regular sequence that the
/// others are of. Empty if it is no such text.
std::vector<std::uint32_t> ranks_of_text(std::string_view text, std::int64_t size);

/// Returns the kind that a call of PyTorch's ProcessGroupNCCL is named after, such as _allgather_base; both ends of a
/// transfer are sends. Nothing if there is none, as of gather and scatter.
std::optional<core::collective::Kind> collective_kind(std::string_view name);

/// Returns the part of a step that waiting for a group counts as, by the dimension of parallelism that its description
/// names.
core::workload::StepPart exposed_part(std::string_view description);

/// Returns the bytes of an element of a type of PyTorch's, such as BFloat16; 0 if it is not known.
std::int64_t bytes_of_dtype(std::string_view name);

}  // namespace manyworlds::experiments::profiler

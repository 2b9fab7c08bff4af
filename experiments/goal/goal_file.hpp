// GOAL as it stands in its text (Hoefler et al., "Group Operation Assembly Language", ICPP 2009; the grammar of
// spcl/LogGOPSim, src/LogGOPSim/txt2bin.re): num_ranks N, then rank R { ... } with a statement per line:
// [label:] send Nb to R [tag T] [cpu C] [nic I]; recv Nb from R ...; calc N [cpu C]; label requires label;
// label irequires label. Comments are // and /* */. A binary schedule has the same without labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::goal {

inline constexpr std::size_t kMaxGoalOps = 50'000'000;  // of all ranks

enum class GoalKind : std::uint8_t { send, receive, calculate };

struct GoalOp {
  GoalKind kind = GoalKind::calculate;
  std::int64_t size = 0;  // bytes; of a calculation, units of time
  std::uint32_t peer = 0, cpu = 0, nic = 0;
  std::uint64_t tag = 0;
  int line = 0;                       // 0: of a binary schedule, which has none
  std::vector<std::uint32_t> waits;   // for the end of these operations of the rank: requires
  std::vector<std::uint32_t> starts;  // for their start: irequires
};

/// Operations by rank; a rank that is not in the file has none.
struct GoalFile {
  std::vector<std::vector<GoalOp>> ranks;
};

/// Returns whether a text begins as GOAL does.
bool is_goal_file(std::string_view text);

/// Parses a text; `name` is its name in messages. Throws InputError with the line for what the grammar does not have,
/// for a rank that is none or twice there, a label that is twice or nowhere in its rank, and for receives of any source
/// or any tag (-1), which this simulator does not know. Tags, processors and network interfaces may be larger than the
/// numbers in which LogGOPSim holds them, as ATLAHS writes tags of ten digits and more.
GoalFile parse_goal_file(std::string_view text, const std::string& name);

/// Returns whether data begin as a binary schedule does, what LogGOPSim's txt2bin makes of a text.
bool is_goal_binary(std::string_view data);

/// Parses a binary schedule (spcl/LogGOPSim, src/LogGOPSim/Parser.hpp: Graph::serialize_mmap). Throws InputError with
/// rank and operation for what is cut, points outside of its rank, or counts other dependencies than it has; and for a
/// schedule that a simulation with --save-mem has used up.
GoalFile parse_goal_binary(std::string_view data, const std::string& name);

}  // namespace manyworlds::experiments::goal

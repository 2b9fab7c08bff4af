// GOAL as it stands in its text (Hoefler et al., "Group Operation Assembly Language", ICPP 2009; the grammar of
// spcl/LogGOPSim, src/LogGOPSim/txt2bin.re): num_ranks N, then rank R { ... } with a statement per line:
// [label:] send Nb to R [tag T] [cpu C] [nic I]; recv Nb from R ...; calc N [cpu C]; label requires label;
// label irequires label. Comments are // and /* */.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::goal {

enum class GoalKind : std::uint8_t { send, receive, calculate };

struct GoalOp {
  GoalKind kind = GoalKind::calculate;
  std::int64_t size = 0;  // bytes; of a calculation, units of time
  std::uint32_t peer = 0, tag = 0, cpu = 0, nic = 0;
  std::string label;  // empty: none
  int line = 0;
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
/// or any tag (-1), which this simulator does not know.
GoalFile parse_goal_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::goal

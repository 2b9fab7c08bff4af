// Any data as a schedule of GOAL, text or binary: programs whose ranks meet, which are written as GOAL again, or a
// refusal.
#include "experiments/goal/goal_file.hpp"
#include "experiments/goal/read_goal.hpp"
#include "experiments/goal/write_goal.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const goal::GoalFile file =
        goal::is_goal_binary(text) ? goal::parse_goal_binary(text, "g.bin") : goal::parse_goal_file(text, "g.goal");
    if (file.ranks.size() > 256) return 0;  // lawful, and slow
    goal::GoalOptions options;
    options.overhead_ns = size % 2 == 0 ? 200 : 0;
    const programs::StreamPrograms programs = goal::import_goal(text, "g.goal", options).programs;
    fuzz::require_programs(programs);
    const goal::GoalFile written = goal::parse_goal_file(goal::goal_text(programs, "g"), "again");
    fuzz::require(written.ranks.size() == file.ranks.size());
  } catch (const core::InputError&) {
  }
  return 0;
}

// Any text as a workload of SimAI and as a table of AICB: programs whose ranks meet, or a refusal.
#include "experiments/programs/check_communication.hpp"
#include "experiments/simai/collectives_file.hpp"
#include "experiments/simai/workload.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

template <class Read>
void try_to(const Read& read) {
  try {
    const programs::StreamPrograms programs = read().programs;
    fuzz::require(!programs.programs.empty());
    fuzz::require_programs(programs);
    programs::check_communication(programs, "fuzzed");
  } catch (const core::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const simai::RunOptions& options : {simai::RunOptions{16}, simai::RunOptions{}}) {
    // A million ranks are lawful, and take a second.
    if (!options.gpus && (text.find("all_gpus") != text.npos || text.find('~') != text.npos)) continue;
    try_to([&] { return simai::parse_workload(text, "w.txt", options); });
    try_to([&] { return simai::parse_collectives(text, "t.csv", options); });
  }
  return 0;
}

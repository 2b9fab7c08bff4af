// Any text as a program file, and what follows a line of --- as a file of edits: programs that are written as they were
// read, timed on a GPU, replicated and edited, or a refusal.
#include "experiments/edits/edited.hpp"
#include "experiments/edits/replicas.hpp"
#include "experiments/programs/timed_programs.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

core::compute::Gpu gpu() {
  core::compute::Gpu gpu;
  gpu.matrix_tflops = 100, gpu.memory_gb_per_s = 1000;
  return gpu;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(text.find("\n---\n"), size);
  try {
    programs::StreamPrograms all = programs::parse_program_file(text.substr(0, cut), "p.jsonl");
    fuzz::require_programs(all);
    if (all.ranks.program_of_rank.size() > 4096) return 0;  // lawful, and slow
    const std::string written = programs::program_file_text(all);
    fuzz::require(programs::program_file_text(programs::parse_program_file(written, "again")) == written);
    try {
      programs::timed_on(all, gpu(), nullptr, "p.jsonl");
    } catch (const core::InputError&) {  // a figure of the GPU is missing
    }
    edits::add_replicas(all, 1 + static_cast<std::int64_t>(size % 3), "p.jsonl");
    fuzz::require_programs(all);
    if (cut + 5 > size) return 0;
    edits::make_edits(all, edits::parse_edits(text.substr(cut + 5), "e.yaml"));
    fuzz::require_programs(all);
    programs::parse_program_file(programs::program_file_text(all), "edited");
  } catch (const core::InputError&) {
  }
  return 0;
}

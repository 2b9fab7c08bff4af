// Any text as a program file, and what follows a line of --- as a file of edits: programs that are written as they were
// read, timed on a GPU, replicated and edited, or a refusal.
#include "core/base/error.hpp"
#include "experiments/edits/edited.hpp"
#include "experiments/edits/replicas.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/programs/timed_programs.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

void require_sound(const programs::StreamPrograms& all) {
  core::workload::check_ranks(all.ranks, all.programs.size(), "fuzzed");
  for (const programs::RankProgram& program : all.programs)
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      fuzz::require(program.ops[i].stream < program.streams.size() && program.ops[i].name < all.names.size());
      for (const std::uint32_t before : program.ops[i].after) fuzz::require(before < i);
    }
}

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
    require_sound(all);
    if (all.ranks.program_of_rank.size() > 4096) return 0;  // lawful, and slow
    const std::string written = programs::program_file_text(all);
    fuzz::require(programs::program_file_text(programs::parse_program_file(written, "again")) == written);
    try {
      programs::timed_on(all, gpu(), nullptr, "p.jsonl");
    } catch (const core::InputError&) {  // a figure of the GPU is missing
    }
    edits::add_replicas(all, 1 + static_cast<std::int64_t>(size % 3), "p.jsonl");
    require_sound(all);
    if (cut + 5 > size) return 0;
    edits::make_edits(all, edits::parse_edits(text.substr(cut + 5), "e.yaml"));
    require_sound(all);
    programs::parse_program_file(programs::program_file_text(all), "edited");
  } catch (const core::InputError&) {
  }
  return 0;
}

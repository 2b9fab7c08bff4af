// Any bytes as a trace of Chakra: written again it is the same, and as programs its ranks meet, or it is refused.
#include "core/base/error.hpp"
#include "experiments/chakra/read_traces.hpp"
#include "experiments/chakra/trace.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const core::InputError&) {
  }
}

void require_sound(const programs::StreamPrograms& programs) {
  core::workload::check_ranks(programs.ranks, programs.programs.size(), "fuzzed");
  for (const programs::RankProgram& program : programs.programs)
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      fuzz::require(program.ops[i].stream < program.streams.size());
      for (const std::uint32_t before : program.ops[i].after) fuzz::require(before < i);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    const chakra::Trace trace = chakra::parse_trace(bytes, "t.et");
    fuzz::require(chakra::parse_trace(chakra::trace_bytes(trace), "t.et") == trace);
  });
  chakra::TraceOptions options;
  options.roofline = chakra::Roofline{100, 1000};
  try_to([&] {
    require_sound(chakra::import_traces({{"t.0.et", bytes}, {"t.1.et", bytes}}, "", "t", options).programs);
  });
  options.one_at_a_time = true;
  try_to([&] { require_sound(chakra::import_traces({{"t.0.et", bytes}}, "", "t", options).programs); });
  return 0;
}

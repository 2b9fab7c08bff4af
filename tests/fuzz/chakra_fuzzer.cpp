// Any bytes as a trace of Chakra: written again it is the same, and as programs its ranks meet, or it is refused.
#include "experiments/chakra/read_traces.hpp"
#include "experiments/chakra/trace.hpp"
#include "tests/fuzz/checked_programs.hpp"

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
    fuzz::require_programs(chakra::import_traces({{"t.0.et", bytes}, {"t.1.et", bytes}}, "", "t", options).programs);
  });
  options.one_at_a_time = true;
  try_to([&] { fuzz::require_programs(chakra::import_traces({{"t.0.et", bytes}}, "", "t", options).programs); });
  return 0;
}

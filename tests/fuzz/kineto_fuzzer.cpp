// Any text as the trace of a rank, and of two ranks: it is refused on one line with the file's name, or is programs in
// which every operation comes after what it waits for and has a time.
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/kineto/host_trace.hpp"
#include "experiments/kineto/parse_trace.hpp"
#include "experiments/kineto/read_kineto.hpp"
#include "tests/fuzz/checked_programs.hpp"
#include "tests/fuzz/json_mutator.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

constexpr const char* kFresh =
    R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","tid":7,"ts":1,"dur":1,"args":{"stream":7}}]})";

void import(const std::string& text, std::size_t ranks, profiler::Collectives collectives, bool alike = false) {
  try {
    std::vector<profiler::RankTrace> traces;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::istringstream stream(text);
      traces.push_back(kineto::parse_trace(stream, "trace.json"));
      if (ranks > 1) traces.back().rank = static_cast<std::int64_t>(rank), traces.back().world = 2;
    }
    profiler::ReadOptions options;
    options.collectives = collectives;
    options.alike = alike;
    if (alike) traces[0].rank = 1, traces[0].world = 8;
    fuzz::require_measured_programs(kineto::import_traces(std::move(traces), options).programs);
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "trace.json");
  }
}

/// The text as an execution trace of the host, of a trace whose call 1 is an operator.
void link(const std::string& text) {
  try {
    std::istringstream host_text(text);
    const profiler::OperatorInputs host = kineto::parse_host_trace(host_text, "trace.json");
    std::istringstream stream(
        R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","tid":1,"ts":1,"dur":1,"args":{"External id":1,)"
        R"("Record function id":1}},{"ph":"X","cat":"kernel","name":"k","tid":7,"ts":1,"dur":1,"args":{"External id":1}}]})");
    fuzz::require_measured_programs(kineto::import_traces({kineto::parse_trace(stream, "trace.json", &host)}).programs);
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "trace.json");
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_json_text(data, size, max_size, seed, kFresh);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  kineto::is_kineto_trace(text);
  link(text);
  import(text, 1, profiler::Collectives::simulated);
  import(text, 2, profiler::Collectives::simulated);
  import(text, 1, profiler::Collectives::simulated, true);
  import(text, 2, profiler::Collectives::without_waiting);
  return 0;
}

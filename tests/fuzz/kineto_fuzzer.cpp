// Any text as the trace of a rank, and of two ranks: it is refused on one line with the file's name, or is programs in
// which every operation comes after what it waits for and has a time.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.hpp"
#include "experiments/kineto/read_kineto.hpp"
#include "experiments/kineto_events/parse_trace.hpp"
#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

constexpr const char* kFresh =
    R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","tid":7,"ts":1,"dur":1,"args":{"stream":7}}]})";

void check(const programs::StreamPrograms& all) {
  core::workload::check_ranks(all.ranks, all.programs.size(), "programs");
  for (const programs::RankProgram& program : all.programs) {
    fuzz::require(!program.ops.empty());
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const programs::StreamOp& op = program.ops[i];
      fuzz::require(op.stream < program.streams.size() && op.name < all.names.size());
      for (const std::uint32_t before : op.after) fuzz::require(before < i);
      const auto is_time = [](double us) { return us >= 0 && std::isfinite(us); };
      const bool is_host = program.streams[op.stream].kind == programs::StreamKind::host;
      const auto* host = std::get_if<programs::HostWork>(&op.work);
      fuzz::require(is_host == (host != nullptr));
      if (host != nullptr) fuzz::require(is_time(host->us));
      if (const auto* kernel = std::get_if<programs::KernelWork>(&op.work))
        fuzz::require(is_time(*kernel->measured_us));
      if (const auto* call = std::get_if<programs::Communication>(&op.work))
        fuzz::require(call->dimension < all.ranks.dimensions.size() && call->bytes > 0);
    }
  }
}

void import(const std::string& text, std::size_t ranks, kineto::Collectives collectives, bool alike = false) {
  try {
    std::vector<kineto::RankTrace> traces;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::istringstream stream(text);
      traces.push_back(kineto::parse_trace(stream, "trace.json"));
      if (ranks > 1) traces.back().rank = static_cast<std::int64_t>(rank), traces.back().world = 2;
    }
    kineto::ReadOptions options;
    options.collectives = collectives;
    options.alike = alike;
    if (alike) traces[0].rank = 1, traces[0].world = 8;
    check(kineto::import_traces(std::move(traces), options).programs);
  } catch (const core::InputError& error) {
    const std::string said = error.what();
    fuzz::require(said.rfind("trace.json", 0) == 0 && said.find('\n') == std::string::npos);
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
  import(text, 1, kineto::Collectives::simulated);
  import(text, 2, kineto::Collectives::simulated);
  import(text, 1, kineto::Collectives::simulated, true);
  import(text, 2, kineto::Collectives::without_waiting);
  return 0;
}

#include "experiments/kineto/read_kineto.hpp"

#include <istream>

#include "experiments/kineto/byte_stream.hpp"
#include "experiments/kineto/parse_trace.hpp"

namespace manyworlds::experiments::kineto {
namespace {

constexpr profiler::ProfilerTerms kTerms{"traces of PyTorch's profiler (Kineto)", "'distributedInfo'",
                                         "annotation ProfilerStep#N: call profiler.step()",
                                         "_ExperimentalConfig(enable_cuda_sync_events=True)"};

}  // namespace

bool is_kineto_trace(std::string_view text) {
  text = text.substr(0, 1 << 16);
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return false;
  if (text[at] == '[') return text.find("\"ph\"") != std::string_view::npos;
  if (text[at] != '{') return false;
  for (const char* member : {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\"", "\"distributedInfo\""})
    if (text.find(member) != std::string_view::npos) return true;
  return false;
}

programs::Imported import_traces(std::vector<profiler::RankTrace> traces, const profiler::ReadOptions& options) {
  return profiler::import_traces(std::move(traces), options, kTerms);
}

programs::Imported read_kineto(const std::vector<std::string>& paths, const profiler::ReadOptions& options) {
  std::vector<profiler::RankTrace> traces;
  for (const std::string& path : paths) {
    ByteStream bytes(path, options.progress);
    std::istream text(&bytes);
    traces.push_back(parse_trace(text, path));
  }
  return import_traces(std::move(traces), options);
}

}  // namespace manyworlds::experiments::kineto

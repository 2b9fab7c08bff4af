#include "experiments/kineto/read_kineto.hpp"

#include <fmt/format.h>

#include <istream>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/kineto/byte_stream.hpp"
#include "experiments/kineto/host_trace.hpp"
#include "experiments/kineto/parse_trace.hpp"

namespace manyworlds::experiments::kineto {
namespace {

constexpr profiler::ProfilerTerms kTerms{"traces of PyTorch's profiler (Kineto)", "'distributedInfo'",
                                         "annotation ProfilerStep#N: call profiler.step()",
                                         "_ExperimentalConfig(enable_cuda_sync_events=True)"};

template <class Parse>
auto read(const std::string& path, const profiler::ReadOptions& options, const Parse& parse) {
  ByteStream bytes(path, options.progress);
  std::istream text(&bytes);
  return parse(text, path);
}

}  // namespace

bool is_kineto_trace(std::string_view text) {
  text = text.substr(0, 1 << 16);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // as some editors write it
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
  const std::vector<std::string>& of_hosts = options.host_traces;
  if (!of_hosts.empty() && of_hosts.size() != paths.size())
    throw core::InputError(fmt::format("is one of {} execution traces of hosts for {} traces; give one for each, in "
                                       "their order",
                                       of_hosts.size(), paths.size()),
                           of_hosts.front());
  std::vector<profiler::RankTrace> traces;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::optional<profiler::OperatorInputs> host;
    if (!of_hosts.empty()) host = read(of_hosts[i], options, parse_host_trace);
    traces.push_back(read(paths[i], options, [&](std::istream& text, const std::string& path) {
      return parse_trace(text, path, host ? &*host : nullptr);
    }));
  }
  return import_traces(std::move(traces), options);
}

}  // namespace manyworlds::experiments::kineto

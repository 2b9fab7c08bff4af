// Small traces of PyTorch's profiler, written by hand in microseconds, and the step of what is read of them.
#pragma once

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include "experiments/kineto/parse_trace.hpp"
#include "experiments/kineto/read_kineto.hpp"
#include "experiments/programs/timed_programs.hpp"
#include "tests/core/step/step_configurations.hpp"

namespace manyworlds::tests {

/// The text of a trace; every call returns it. Streams are of device 0, calls of thread 1 unless another is given.
class TraceText {
 public:
  TraceText& event(const std::string& category, const std::string& name, double start, double duration, int thread,
                   const std::string& arguments) {
    events_ += fmt::format(R"({}{{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
                           R"("args":{{{}}}}})",
                           events_.empty() ? "" : ",\n", category, name, thread, start + shift_, duration, arguments);
    return *this;
  }
  TraceText& call(const std::string& name, double start, double duration, int correlation, int thread = 1) {
    return event("cuda_runtime", name, start, duration, thread, fmt::format(R"("correlation":{})", correlation));
  }
  TraceText& kernel(const std::string& name, double start, double duration, int stream, int correlation,
                    const std::string& more = "") {
    return event("kernel", name, start, duration, stream,
                 fmt::format(R"("device":0,"stream":{},"correlation":{}{})", stream, correlation, more));
  }
  /// A launch of 5 us that begins at a time, and its kernel.
  TraceText& launched(const std::string& name, double launch, double start, double duration, int stream,
                      int correlation, int thread = 1, const std::string& more = "") {
    call("cudaLaunchKernel", launch, 5, correlation, thread);
    return kernel(name, start, duration, stream, correlation, more);
  }
  /// All later events are `us` later.
  TraceText& later(double us) {
    shift_ += us;
    return *this;
  }
  std::string text(const std::string& head = "") const {
    return fmt::format("{{\"schemaVersion\":1,{}\n\"traceEvents\":[\n{}\n]}}\n", head, events_);
  }
  std::string of_rank(int rank, int world) const {
    return text(fmt::format(R"("distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},)", rank, world));
  }

 private:
  std::string events_;
  double shift_ = 0;
};

inline experiments::profiler::RankTrace parse_text(const std::string& text, const std::string& name = "rank-0.json") {
  std::istringstream stream(text);
  return experiments::kineto::parse_trace(stream, name);
}

inline experiments::programs::Imported import_text(const std::vector<std::string>& texts,
                                                   const experiments::profiler::ReadOptions& options = {}) {
  std::vector<experiments::profiler::RankTrace> traces;
  for (const std::string& text : texts) traces.push_back(parse_text(text, fmt::format("rank-{}.json", traces.size())));
  return experiments::kineto::import_traces(std::move(traces), options);
}

/// The step of programs on as many GPUs as there are ranks, in microseconds.
inline double step_us(const experiments::programs::StreamPrograms& programs) {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = static_cast<std::uint32_t>(programs.ranks.program_of_rank.size());
  step::Configuration configuration = config_of(cluster, 1, 1, 1);
  configuration.programs = std::make_shared<const workload::GivenPrograms>(
      experiments::programs::timed_on(programs, configuration.gpu, nullptr, "trace").programs);
  configuration.model = {};
  configuration.strategy = {};
  return static_cast<double>(run_at(configuration, network::Fidelity::analytic).step_ps) * 1e-6;
}

}  // namespace manyworlds::tests

// Traces of PyTorch's profiler that are not of one process and one of NVIDIA's or AMD's GPUs, or whose events are not
// as Kineto writes them: what is refused by its name, and what is told.
#include "experiments/kineto/host_trace.hpp"
#include "experiments/profiler_events/communication.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/kineto_traces.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments;

namespace {

std::string event(const std::string& members) {
  return R"({"traceEvents":[{"ts":1,"dur":2,"tid":1,)" + members + "}]}";
}
std::string refusal(const std::string& text) {
  return error_of([&] { import_text({text}); });
}
bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("devices whose events are not known are refused by name") {
  CHECK(refusal(event(R"("ph":"X","cat":"mtia_ccp_events","name":"k")")) ==
        "rank-0.json: was recorded on an accelerator of Meta's (MTIA) (categories mtia_ccp_events); what its events "
        "mean is not known here: traces of NVIDIA's and AMD's GPUs are read");
  CHECK(has(refusal(event(R"("ph":"X","cat":"hpu_op","name":"k")")), "a Gaudi of Intel's (HPU)"));
  TraceText intel;
  intel.event("xpu_runtime", "urEnqueueKernelLaunch", 0, 5, 1, R"("correlation":1)").kernel("k", 10, 5, 7, 1);
  CHECK(
      has(refusal(intel.text()), "a GPU of Intel's (XPU) (categories xpu_runtime); which of its calls launch or wait"));
  TraceText other;
  other.event("privateuse1_runtime", "launch", 0, 5, 1, R"("correlation":1)").kernel("k", 10, 5, 7, 1);
  CHECK(has(refusal(other.text()), "a device of another backend (PrivateUse1)"));
}

TEST_CASE("events that are not as PyTorch's profiler writes them are refused with what they are") {
  CHECK(has(refusal(event(R"("ph":"B","cat":"kernel","name":"k")")),
            "has 1 operations of a device as pairs of events ('ph' B and E)"));
  CHECK(has(refusal(event(R"("ph":"X","name":"fusion","pid":"CUDA functions")")),
            "has timed events without categories ('cat')"));
}

TEST_CASE("traces of several processes in one file are refused, as their correlations are not told apart") {
  const auto launch = [](const char* process, int stream) {
    return fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{},"tid":1,"ts":1,"dur":2,"args":)"
        R"({{"correlation":1}}}},{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":2,"args":)"
        R"({{"device":0,"stream":{},"correlation":1}}}})",
        process, stream);
  };
  const auto merged = [&](const char* one, const char* other) {
    return "{\"traceEvents\":[" + launch(one, 7) + "," + launch(other, 8) + "]}";
  };
  CHECK(refusal(merged("100", "\"[rank1] 100\"")) ==
        "rank-0.json: has launches of several processes (100 and [rank1] 100), whose correlations are not told apart: "
        "give the trace of each rank as a file of its own");
  CHECK(import_text({merged("100", "100")}).recorded_us == 6);
}

TEST_CASE("a trace of several GPUs of one process says that they are one rank here") {
  TraceText trace;
  trace.launched("a", 0, 10, 100, 7, 1);
  CHECK_FALSE(has(account(import_text({trace.text()})), "GPUs"));
  trace.call("cudaLaunchKernel", 20, 5, 2);
  trace.event("kernel", "b", 30, 100, 7, R"("device":1,"stream":7,"correlation":2)");
  const programs::Imported imported = import_text({trace.text()});
  CHECK(has(account(imported), "rank 0: its operations are of 2 GPUs, whose streams are one rank's here"));
  CHECK(imported.recorded_us == 130);
}

TEST_CASE("an event whose times make no sense is left out by name, and one shortly before the clock's zero is read") {
  TraceText trace;
  trace.later(-20).launched("a", 0, 10, 100, 7, 1).launched("odd", 150, 160, -5, 7, 2);
  const programs::Imported imported = import_text({trace.text()});
  CHECK(imported.recorded_us == 110);
  CHECK(has(account(imported), "1 events have times that make no sense, and were left out; the first is kernel 'odd'"));
}

TEST_CASE("a group is known by its first rank and the distance of its ranks") {
  profiler::RankTrace trace;
  profiler::CommunicationArguments arguments;
  arguments.group_size = 4, arguments.first_rank = 2, arguments.rank_stride = 8;
  CHECK(profiler::group_ranks(arguments, trace) == std::vector<std::uint32_t>{2, 10, 18, 26});
  arguments.rank_stride = 0;
  CHECK(profiler::group_ranks(arguments, trace).empty());
  arguments.rank_stride = 1 << 19;  // beyond the number of ranks that there may be
  CHECK(profiler::group_ranks(arguments, trace).empty());
  TraceText text;
  text.kernel("ncclDevKernel", 0, 5, 7, 1,
              R"(,"Collective name":"allreduce","Group size":2,"Global rank start":1,"Global rank stride":4)");
  const profiler::RankTrace read = parse_text(text.text());
  REQUIRE(read.communications.size() == 1);
  CHECK(profiler::group_ranks(read.communications[0], read) == std::vector<std::uint32_t>{1, 5});
}

TEST_CASE("types of 8 bits of AMD's, and of whole numbers without a sign, have their bytes") {
  for (const char* one : {"Float8_e4m3fnuz", "Float8_e5m2fnuz", "Float8_e8m0fnu"})
    CHECK(profiler::bytes_of_dtype(one) == 1);
  CHECK(profiler::bytes_of_dtype("UInt16") == 2);
  CHECK(profiler::bytes_of_dtype("UInt32") == 4);
  CHECK(profiler::bytes_of_dtype("UInt64") == 8);
  CHECK(profiler::bytes_of_dtype("ComplexHalf") == 4);
  CHECK(profiler::bytes_of_dtype("ComplexDouble") == 16);
}

TEST_CASE("an execution trace of which no call is in the trace is refused, and an old one by its schema") {
  const auto host_of = [](const std::string& text) {
    std::istringstream stream(text);
    return kineto::parse_host_trace(stream, "host.json");
  };
  const profiler::OperatorInputs host = host_of(
      R"({"schema":"1.1.0-chakra.0.0.4","nodes":[{"name":"aten::mm","inputs":{},"attrs":[{"name":"rf_id","value":3}]}]})");
  TraceText trace;
  trace.event("cpu_op", "aten::mm", 0, 20, 1, R"("External id":5)").launched("gemm", 1, 10, 10, 7, 1);
  CHECK(has(error_of([&] {
              std::istringstream stream(trace.text());
              kineto::parse_trace(stream, "rank-0.json", &host);
            }),
            "rank-0.json: has no operator whose call ('Record function id') is one of the execution trace"));
  CHECK(
      error_of([&] { host_of(R"({"schema":"1.0.1","nodes":[{"name":"aten::mm","rf_id":3,"inputs":[]}]})"); }) ==
      "host.json: is no execution trace of PyTorch's host of schema 1.1 or later, but of 1.0.1: node 'aten::mm' has no "
      "object 'inputs'");
}

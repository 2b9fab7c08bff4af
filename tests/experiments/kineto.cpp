// Traces of PyTorch's profiler as stream programs: what waits for what, and that the replay takes what was recorded.
#include "experiments/programs/program_file.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/kineto_traces.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments::programs;
using manyworlds::experiments::kineto::read_kineto;
using manyworlds::experiments::profiler::Collectives;
using manyworlds::experiments::profiler::ReadOptions;

namespace {

using After = std::vector<std::uint32_t>;

/// A kernel of 100 us on stream 7, and one of 50 us on stream 20 that was launched while it ran, behind an event that
/// was recorded on 7.
TraceText two_streams(double second_start) {
  TraceText trace;
  trace.launched("a", 0, 10, 100, 7, 1);
  trace.call("cudaEventRecord", 6, 1, 2).call("cudaStreamWaitEvent", 8, 1, 3);
  trace.launched("b", 20, second_start, 50, 20, 4);
  return trace;
}

bool tells(const Imported& imported, const std::string& part) {
  return std::any_of(imported.account.begin(), imported.account.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("a stream's wait with a handle is an exact dependency") {
  TraceText trace = two_streams(112);
  trace.event("cuda_sync", "Stream Wait Event", 8, 1, 20,
              R"("correlation":3,"device":0,"stream":20,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2)");
  const Imported imported = import_text({trace.text()});
  CHECK(imported.dependencies == Dependencies{1, 0, 0});
  const RankProgram& program = imported.programs.programs[0];
  REQUIRE(program.ops.size() == 5);
  CHECK(host_us(program.ops[0]) == 10);  // the call, and the 5 us until an idle stream took it up
  CHECK(program.ops[1].after == After{0});
  CHECK(kernel_us(program.ops[1]) == 100);
  CHECK(host_us(program.ops[2]) == 15);  // to the end of the second call, at 25
  CHECK(host_us(program.ops[3]) == 2);   // from the end of `a` on, until its event is taken up
  CHECK(program.ops[3].after == After{1, 2});
  CHECK(program.ops[4].after == After{1, 2, 3});
  CHECK(imported.recorded_us == 162);
  CHECK(step_us(imported.programs) == Approx(10 + 100 + 2 + 50));
}

TEST_CASE("an event of which a trace says the stream alone was recorded behind what that was given last") {
  TraceText trace = two_streams(112);
  trace.event("cuda_sync", "Stream Wait Event", 8, 1, 20,
              R"("correlation":3,"device":0,"stream":20,"wait_on_stream":7)");
  const Imported imported = import_text({trace.text()});
  CHECK(imported.dependencies == Dependencies{0, 1, 0});
  CHECK(imported.programs.programs[0].ops[4].after == After{1, 2, 3});
}

TEST_CASE("an event that was never recorded keeps nothing waiting") {
  TraceText trace = two_streams(26);
  trace.event("cuda_sync", "Stream Wait Event", 8, 1, 20,
              R"("correlation":3,"device":0,"stream":20,"wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1)");
  const Imported imported = import_text({trace.text()});
  CHECK(imported.dependencies == Dependencies{0, 0, 0});
  CHECK(imported.programs.programs[0].ops[3].after == After{2});
}

TEST_CASE("a stream's wait without a handle is inferred from the last event recorded elsewhere") {
  const Imported imported = import_text({two_streams(112).text()});
  CHECK(imported.dependencies == Dependencies{0, 1, 0});
  CHECK(imported.programs.programs[0].ops[4].after == After{1, 2, 3});
  CHECK(tells(imported, "enable_cuda_sync_events"));
}

TEST_CASE("NCCL's own wait behind its launch is of no other stream, and the framework's behind its record is") {
  const auto reduced = [](bool frameworks_wait) {
    TraceText trace;
    trace.launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 5, 100, 20, 1);
    trace.call("cudaEventRecord", 6, 1, 2).call("cudaStreamWaitEvent", 8, 1, 3).call("cudaEventRecord", 10, 1, 4);
    if (frameworks_wait) trace.call("cudaStreamWaitEvent", 12, 1, 5);
    trace.launched("b", 20, frameworks_wait ? 105 : 25, 50, 7, 6);
    return import_text({trace.text()});
  };
  CHECK(reduced(false).dependencies == Dependencies{0, 0, 0});
  CHECK(tells(reduced(false), "1 waits behind launches of collectives are taken for NCCL's own"));
  CHECK(reduced(true).dependencies == Dependencies{0, 1, 0});
  CHECK(step_us(reduced(true).programs) == Approx(155));
}

TEST_CASE("an inferred dependency that times contradict is dropped") {
  const Imported imported = import_text({two_streams(60).text()});
  CHECK(imported.dependencies == Dependencies{0, 0, 1});
  const RankProgram& program = imported.programs.programs[0];
  REQUIRE(program.ops.size() == 5);
  CHECK(host_us(program.ops[2]) == 35);  // a launch takes at most 20 us to an idle stream, to 45
  CHECK(host_us(program.ops[3]) == 15);  // and nothing explains the rest
  CHECK(program.ops[3].after == After{2});
  CHECK(program.ops[4].after == After{2, 3});
  CHECK(tells(imported, "1 operations started later than what is known of them explains, 0.015 ms"));
  REQUIRE(imported.programs.notes.size() == 2);  // it goes with the programs, to whoever changes them
  CHECK(imported.programs.notes[0] ==
        "Kernels have the times of the trace, beside the collectives that ran with them.");
  CHECK(imported.programs.notes[1].starts_with("0.015 ms of delays"));
  CHECK(step_us(imported.programs) == Approx(110));
}

TEST_CASE("launches that are far apart keep the device waiting for them") {
  TraceText trace;
  for (int i = 0; i < 3; ++i) trace.launched("short", 15.0 * i, 15.0 * i + 5, 2, 7, i + 1);
  const Imported imported = import_text({trace.text()});
  std::vector<double> host;
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (std::holds_alternative<HostWork>(op.work)) host.push_back(host_us(op));
  CHECK(host == std::vector<double>{5, 15, 15});
  CHECK(imported.recorded_us == 37);
  CHECK(step_us(imported.programs) == Approx(37));
}

TEST_CASE("a call that waits for a stream waits for its kernel, and is not counted twice") {
  TraceText trace;
  trace.launched("long", 0, 5, 100, 7, 1);
  trace.call("cudaStreamSynchronize", 10, 100, 2);
  trace.event("cuda_sync", "Stream Sync", 10, 100, 7, R"("correlation":2,"device":0,"stream":7)");
  trace.launched("last", 120, 125, 10, 7, 3);
  Imported imported = import_text({trace.text()});
  CHECK(imported.dependencies == Dependencies{1, 0, 0});
  CHECK(step_us(imported.programs) == Approx(135));
  // 100 us more of the kernel are 100 us more of the step: the host's own time is what it was.
  for (StreamOp& op : imported.programs.programs[0].ops)
    if (auto* kernel = std::get_if<KernelWork>(&op.work); kernel != nullptr && *kernel->measured_us == 100)
      kernel->measured_us = 200;
  CHECK(step_us(imported.programs) == Approx(235));
}

TEST_CASE("without a handle a call waits for the stream of its thread's last launch") {
  TraceText trace;
  trace.launched("long", 0, 5, 100, 7, 1);
  trace.call("cudaStreamSynchronize", 10, 100, 2);
  trace.launched("last", 120, 125, 10, 7, 3);
  const Imported imported = import_text({trace.text()});
  CHECK(imported.dependencies == Dependencies{0, 1, 0});
  CHECK(step_us(imported.programs) == Approx(135));
}

TEST_CASE("a copy that blocks makes the host wait for it, and a device-wide call for all streams") {
  TraceText trace;
  trace.call("cudaMemcpy", 0, 30, 1);
  trace.event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 4, 20, 7,
              R"("device":0,"stream":7,"correlation":1,"bytes":4096)");
  trace.launched("a", 40, 45, 100, 7, 2).launched("b", 50, 55, 10, 20, 3);
  trace.call("cudaDeviceSynchronize", 60, 90, 4);
  const Imported imported = import_text({trace.text()});
  CHECK(imported.dependencies == Dependencies{3, 0, 0});
  CHECK(imported.recorded_us == 150);
  CHECK(step_us(imported.programs) == Approx(150));  // 5 us from the end of `a` to the return of the call
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (const auto* copy = std::get_if<CopyWork>(&op.work)) {
      CHECK(copy->bytes == 4096);
      CHECK(copy->direction == CopyDirection::host_to_device);
    }
}

TEST_CASE("kernels that follow at once have the gap between them, and one that overlaps ends the hold of the former") {
  TraceText trace;
  trace.call("cudaLaunchKernel", 0, 1, 1).call("cudaLaunchKernel", 2, 1, 2).call("cudaLaunchKernel", 4, 1, 3);
  trace.kernel("a", 1, 10, 7, 1).kernel("b", 12, 10, 7, 2).kernel("c", 20, 10, 7, 3);
  const Imported imported = import_text({trace.text()});
  std::vector<double> kernels;
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (std::holds_alternative<KernelWork>(op.work)) kernels.push_back(kernel_us(op));
  CHECK(kernels == std::vector<double>{11, 8, 10});
  CHECK(step_us(imported.programs) == Approx(30));
  CHECK(tells(imported, "1 operations started before one before them on their stream had ended"));
}

TEST_CASE("operations whose launch is not in the trace start when they did") {
  TraceText trace;
  trace.kernel("early", 100, 10, 7, 77).kernel("next", 150, 10, 7, 78);
  trace.call("cudaEventQuery", 0, 1, 1).call("cudaEventRecord", 0, 1, 2);
  const Imported imported = import_text({trace.text()});
  CHECK(step_us(imported.programs) == Approx(160));
  CHECK(tells(imported, "the launch of 2 operations is not in the trace"));
}

TEST_CASE("autograd's thread and that which calls it wait for each other") {
  TraceText trace;
  trace.launched("forward", 0, 5, 10, 7, 1);
  trace.event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 20, 20, 2, "");
  trace.launched("backward", 25, 30, 10, 7, 2, 2);
  trace.event("user_annotation", "Optimizer.step#SGD.step", 50, 20, 1, "");
  trace.launched("optimizer", 55, 60, 10, 7, 3);
  const Imported imported = import_text({trace.text()});
  CHECK(tells(imported, "take turns 2 times"));
  CHECK(step_us(imported.programs) == Approx(70));
  std::vector<core::workload::StepPart> parts;
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (const auto* kernel = std::get_if<KernelWork>(&op.work)) parts.push_back(kernel->part);
  using core::workload::StepPart;
  CHECK(parts == std::vector<StepPart>{StepPart::forward, StepPart::backward, StepPart::optimizer});
}

TEST_CASE("a step is what it launched") {
  TraceText trace;
  for (int step = 3; step < 6; ++step) {
    trace.event("user_annotation", fmt::format("ProfilerStep#{}", step), 0, 100, 1, "");
    trace.launched("k", 10, 20, 30, 7, step).later(100);
  }
  ReadOptions options;
  options.step = 4;
  const Imported imported = import_text({trace.text()}, options);
  CHECK(imported.programs.programs[0].ops.size() == 2);
  CHECK(imported.recorded_us == 50);
  CHECK(step_us(imported.programs) == Approx(50));
  options.step = 9;
  CHECK_THROWS_WITH(import_text({trace.text()}, options), "rank-0.json: has no step 9; it has 3, 4, 5");
}

TEST_CASE("times are read as microseconds, whole or with a fraction, or as nanoseconds") {
  const auto text = [](const char* ts, const char* dur) {
    return fmt::format(
        R"({{"traceEvents":[{{"ph":"X","cat":"kernel","name":"k","ts":{},"dur":{},"args":{{"stream":7}}}},)"
        R"({{"ph":"X","cat":"kernel","name":"k","ts":{},"dur":{},"args":{{"stream":7}}}}],)"
        R"("baseTimeNanoseconds":1000}})",
        ts, dur, ts, dur);
  };
  CHECK(parse_text(text("1712195495506161", "2")).base == 1'712'195'495'506'161'000 + 1000);
  CHECK(parse_text(text("1712195495506161.25", "2")).base == 1'712'195'495'506'161'250 + 1000);
  CHECK(parse_text(text("4203669603454.2066", "2")).base == 4'203'669'603'454'207 + 1000);
  CHECK(parse_text(text("1712195495506161250", "2500")).base == 1'712'195'495'506'161'250 + 1000);
  CHECK(parse_text(text("1712195495506161250", "2500")).ops[0].duration == 2500);
  CHECK(parse_text(text("5", "2.125")).ops[0].duration == 2125);
}

TEST_CASE("what is wrong with a trace is said") {
  const auto error_of = [](const std::vector<std::string>& texts) -> std::string {
    try {
      import_text(texts);
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string good = two_streams(112).of_rank(0, 2);
  CHECK(error_of({"{\"a\": 1}"}).find("rank-0.json: is no trace of a profiler") == 0);
  CHECK(error_of({R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"k","ts":1,"dur":1}]})"}) ==
        "rank-0.json: has no operations of a device (categories kernel, gpu_memcpy, gpu_memset), but categories "
        "cpu_op; profile with ProfilerActivity.CUDA on a rank with a GPU");
  CHECK(error_of({R"({"traceEvents":[]})"}) ==
        "rank-0.json: has no operations of a device (categories kernel, gpu_memcpy, gpu_memset), and no timed event of "
        "the host either; profile with ProfilerActivity.CUDA on a rank with a GPU");
  CHECK(error_of({good.substr(0, good.size() / 2)}).find("rank-0.json: is torn: its JSON ends at byte ") == 0);
  CHECK(error_of({good.substr(0, good.size() / 2)}).find("(line 5, column ") != std::string::npos);
  CHECK(error_of({"{\"traceEvents\": [}"}).find("rank-0.json: is no JSON at byte 18 (line 1, column 18)") == 0);
  CHECK(error_of({good, good}) == "rank-1.json: is of rank 0, as is rank-0.json: give one file per rank");
  CHECK(error_of({good, two_streams(112).of_rank(1, 4)}) ==
        "rank-1.json: is of a job with 4 ranks, rank-0.json of one with 2: give the traces of one job");
  CHECK(error_of({two_streams(112).of_rank(2, 2)}) == "rank-0.json: is of rank 2 of 2, which are numbered from 0");
  CHECK(error_of({std::string(100, '[')}).find("rank-0.json: is nested deeper than 64 levels") == 0);
}

TEST_CASE("a compressed file that is torn is refused, and progress is told of one that is read") {
  const std::string file = source_folder() + "/tests/experiments/kineto/simple_add.json.gz";
  std::int64_t read = 0;
  ReadOptions options;
  options.progress = [&](const std::string& path, std::int64_t bytes) {
    CHECK(path == file);
    read = bytes;
  };
  read_kineto({file}, options);
  CHECK(read == static_cast<std::int64_t>(std::filesystem::file_size(file)));
  const TemporaryFolder folder;
  const std::string torn = (folder / "torn.json.gz").string();
  std::filesystem::copy(file, torn);
  std::filesystem::resize_file(torn, 10'000);
  CHECK_THROWS_WITH(read_kineto({torn}), Catch::StartsWith(torn + ": its compressed data are damaged behind"));
  CHECK_THROWS_WITH(read_kineto({(folder / "none.json").string()}),
                    (folder / "none.json").string() + ": cannot be read: No such file or directory");
  CHECK_THROWS_WITH(read_kineto({folder.path.string()}),
                    Catch::Contains("is a folder; give the trace file of each rank"));
}

TEST_CASE("real traces are replayed within 1 % of what was recorded") {
  const std::string folder = source_folder() + "/tests/experiments/kineto/";
  for (const char* name : {"event_sync_multi_stream", "event_sync", "simple_add", "mi250_minitoy", "triton"}) {
    INFO(name);
    const Imported imported = read_kineto({folder + name + ".json.gz"});
    CHECK(step_us(imported.programs) == Approx(imported.recorded_us).epsilon(0.01));
    CHECK(imported.dependencies.contradicted == 0);
    const StreamPrograms again = parse_program_file(program_file_text(imported.programs), "again");
    CHECK(again.programs == imported.programs.programs);
  }
}

// Exports of Nsight Systems as stream programs: what waits for what, and what an export may have or lack.
#include "tests/experiments/nsys_exports.hpp"

#include <algorithm>

#include "experiments/programs/program_file.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/kineto_traces.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;

namespace {

using After = std::vector<std::uint32_t>;

std::string refusal(const std::string& path, const profiler::ReadOptions& options = {}) {
  try {
    import_exports({path}, options);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "no error";
}

/// A kernel of 100 us on stream 7, and one of 50 us on stream 20 that was launched while it ran, behind an event that
/// was recorded on 7.
void two_streams(ExportDatabase& database, double second_start) {
  database.launched("a", 0, 10, 100, 7, 1);
  database.call("cudaEventRecord", 6, 1, 2).call("cudaStreamWaitEvent", 8, 1, 3);
  database.launched("b", 20, second_start, 50, 20, 4);
}

}  // namespace

TEST_CASE("a wait for an event of an export is an exact dependency") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "one.sqlite");
  two_streams(database, 112);
  database.event(7, 41, 2).sync(2, 20, 41, 3);
  const Imported imported = import_exports({database.path()});
  CHECK(imported.dependencies == Dependencies{1, 0, 0});
  const RankProgram& program = imported.programs.programs[0];
  REQUIRE(program.ops.size() == 5);
  CHECK(host_us(program.ops[0]) == 10);  // the call, and the 5 us until an idle stream took it up
  CHECK(program.ops[1].after == After{0});
  CHECK(kernel_us(program.ops[1]) == 100);
  CHECK(host_us(program.ops[2]) == 15);  // to the end of the second call, at 25
  CHECK(host_us(program.ops[3]) == 2);   // from the end of `a` on, until its event is taken up
  CHECK(program.ops[4].after == After{1, 2, 3});
  CHECK(imported.recorded_us == 162);
  CHECK(step_us(imported.programs) == Approx(10 + 100 + 2 + 50));
  CHECK(imported.programs.names[program.ops[0].name] == "cudaLaunchKernel");
  CHECK(parse_program_file(program_file_text(imported.programs), "again").programs == imported.programs.programs);
}

TEST_CASE("a wait is for the last record of its event before it, or for the one with its identity") {
  const auto dependencies = [](std::int64_t identity_of_wait, int first_event_stream) {
    const TemporaryFolder folder;
    ExportDatabase database(folder / "one.sqlite");
    database.launched("a", 0, 10, 100, 7, 1).launched("c", 6, 12, 30, 9, 2);
    database.call("cudaEventRecord", 12, 1, 3).call("cudaEventRecord", 14, 1, 4).call("cudaStreamWaitEvent", 16, 1, 5);
    database.call("cudaEventRecord", 18, 1, 6);
    database.launched("b", 20, 112, 50, 20, 7);
    database.event(first_event_stream, 41, 3, 900).event(7, 41, 4, 901).event(9, 41, 6, 902);
    database.sync(2, 20, 41, 5, identity_of_wait);
    const Imported imported = import_exports({database.path()});
    std::vector<std::string> names;
    const RankProgram& program = imported.programs.programs[0];
    for (const std::uint32_t before : program.ops.back().after)
      if (std::holds_alternative<KernelWork>(program.ops[before].work))
        names.push_back(imported.programs.names[program.ops[before].name]);
    return names;
  };
  CHECK(dependencies(-1, 9) == std::vector<std::string>{"a"});  // of the record of call 4
  CHECK(dependencies(901, 9) == std::vector<std::string>{"a"});
  CHECK(dependencies(900, 9) == std::vector<std::string>{"c"});  // of the record of call 3
}

TEST_CASE("without records of events a wait is inferred, and contradicted ones are dropped") {
  const TemporaryFolder folder;
  ExportDatabase inferred(folder / "inferred.sqlite"), contradicted(folder / "contradicted.sqlite");
  two_streams(inferred, 112);
  inferred.sync(2, 20, 41, 3);
  const Imported one = import_exports({inferred.path()});
  CHECK(one.dependencies == Dependencies{0, 1, 0});
  CHECK(has_line(one.account, "profile with --cuda-event-trace=true to have them exact"));
  two_streams(contradicted, 60);
  contradicted.event(7, 41, 2).sync(2, 20, 41, 3);
  CHECK(import_exports({contradicted.path()}).dependencies == Dependencies{0, 0, 1});
}

TEST_CASE("the host waits for a stream, an event or the device") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "one.sqlite");
  database.launched("a", 0, 10, 100, 7, 1).launched("b", 6, 12, 30, 9, 2);
  database.call("cudaStreamSynchronize", 20, 25, 3).sync(3, 9, -1, 3);   // until b ended, at 42, and 3 us
  database.call("cudaDeviceSynchronize", 50, 62, 4).sync(4, -1, -1, 4);  // until a ended, at 110
  database.launched("c", 120, 125, 10, 7, 5);
  const Imported imported = import_exports({database.path()});
  CHECK(imported.dependencies == Dependencies{3, 0, 0});  // b; a and b
  CHECK(step_us(imported.programs) == Approx(135));
}

TEST_CASE("copies have their direction, bytes and whether they block the host") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "one.sqlite");
  database.launched("a", 0, 10, 20, 7, 1);
  database.call("cudaMemcpyAsync", 40, 5, 2).copy(1, 1000, 50, 10, 7, 2, 1);
  database.call("cudaMemcpyAsync", 60, 50, 3).copy(2, 500, 70, 35, 7, 3, 0);
  const Imported imported = import_exports({database.path()});
  std::vector<CopyWork> copies;
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (const auto* copy = std::get_if<CopyWork>(&op.work)) copies.push_back(*copy);
  REQUIRE(copies.size() == 2);
  CHECK((copies[0].direction == CopyDirection::host_to_device && copies[0].bytes == 1000));
  CHECK(copies[0].measured_us == 10);
  CHECK(copies[1].direction == CopyDirection::device_to_host);
  CHECK(imported.dependencies.exact == 1);  // the host waits for what came to pageable memory
}

TEST_CASE("a kernel whose end no clock has is left out and told") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "one.sqlite");
  database.launched("a", 0, 10, 20, 7, 1).launched("b", 40, 50, 20, 7, 2);
  database.run(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid) "
      "VALUES (-22, 9223372036854775807, 0, 7, 3, 1677721600)");
  const Imported imported = import_exports({database.path()});
  const auto& ops = imported.programs.programs[0].ops;
  CHECK(std::count_if(ops.begin(), ops.end(),
                      [](const StreamOp& op) { return std::holds_alternative<KernelWork>(op.work); }) == 2);
  CHECK(std::count_if(imported.account.begin(), imported.account.end(), [](const std::string& line) {
          return line.find("1 events have times that make no sense") != line.npos;
        }) == 1);
}

TEST_CASE("each GPU of each process is a rank") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "all.sqlite");
  database.gpu("NVIDIA A100-SXM4-80GB", 2);
  int correlation = 0;
  for (const Place& place : {Place{200, 5, 1}, Place{100, 1, 0}, Place{100, 1, 1}, Place{100, 1, 1}}) {
    ++correlation;
    database.launched("k", 10 * correlation, 10 * correlation + 6, 3, 7, correlation, place);
  }
  database.copy(1, 8, 0, 1, 7, 90, 1, Place{200, 5, 0});  // on a GPU on which this process has no kernel
  const Imported imported = import_exports({database.path()});
  REQUIRE(imported.programs.programs.size() == 3);
  CHECK(imported.programs.gpu == "a100_80");
  CHECK(has_line(imported.account, "rank 0: process 100, GPU 0 of"));
  CHECK(has_line(imported.account, "rank 1: process 100, GPU 1 of"));
  CHECK(has_line(imported.account, "rank 2: process 200, GPU 1 of"));
  CHECK(has_line(imported.account, "1 copies on GPUs on which their process ran no kernel are left out"));
  const auto kernels = [&](std::size_t rank) {
    const std::vector<StreamOp>& ops = imported.programs.programs[rank].ops;
    return std::count_if(ops.begin(), ops.end(),
                         [](const StreamOp& op) { return std::holds_alternative<KernelWork>(op.work); });
  };
  CHECK((kernels(0) == 1 && kernels(1) == 2 && kernels(2) == 1));
}

TEST_CASE("a step is a range of NVTX") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "one.sqlite");
  database.launched("a", 0, 6, 3, 7, 1).launched("b", 100, 106, 3, 7, 2).launched("c", 200, 206, 3, 7, 3);
  database.range("iteration 6", 0, 90).range("iteration 7", 90, 90);
  profiler::ReadOptions options;
  options.step = 7;
  const Imported imported = import_exports({database.path()}, options);
  REQUIRE(imported.programs.programs[0].ops.size() == 2);
  CHECK(imported.programs.names[imported.programs.programs[0].ops[1].name] == "b");
  options.step = 9;
  CHECK(refusal(database.path(), options).find("has no step 9; it has 6, 7") != std::string::npos);
}

TEST_CASE("kernels of graphs are of the launch of their graph, and graphs without kernels are refused") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "graph.sqlite");
  database.call("cudaGraphLaunch", 0, 5, 1);
  database.kernel("a", 6, 10, 7, 1, {}, "77").kernel("b", 16, 10, 7, 1, {}, "78");
  const Imported imported = import_exports({database.path()});
  CHECK(has_line(imported.account, "2 kernels were launched by graphs of CUDA"));
  CHECK(step_us(imported.programs) == Approx(26));
  ExportDatabase without(folder / "without.sqlite");
  without.launched("a", 0, 6, 10, 7, 1).call("cudaGraphLaunch", 20, 5, 2);
  const std::string said =
      "has 1 launches of graphs of CUDA without their kernels: profile with --cuda-graph-trace=node";
  CHECK(refusal(without.path()).find(said) != std::string::npos);
  ExportDatabase whole(folder / "whole.sqlite");
  whole.launched("a", 0, 6, 10, 7, 1);
  whole.run(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, graphId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2, 3)");
  CHECK(refusal(whole.path()).find(said) != std::string::npos);
}

TEST_CASE("columns that other versions lack are done without, or refused by name") {
  const TemporaryFolder folder;
  ExportDatabase old(folder / "old.sqlite");
  two_streams(old, 112);
  old.run(
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN graphNodeId;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName;"
      "DROP TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION; DROP TABLE NVTX_EVENTS; DROP TABLE ENUM_CUDA_MEM_KIND;"
      "DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET; DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;"
      "DROP TABLE TARGET_INFO_GPU; DROP TABLE TARGET_INFO_CUDA_DEVICE; DROP TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES");
  CHECK(import_exports({old.path()}).dependencies == Dependencies{0, 1, 0});
  old.call("cudaLaunchKernel", 300, 5, 9, Place{300, 1, 0});
  CHECK(refusal(old.path()).find("kernels without a column 'globalPid', and 2 processes") != std::string::npos);
  old.run("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId");
  CHECK(refusal(old.path()).find("old.sqlite: has kernels without") != std::string::npos);
  ExportDatabase none(folder / "none.sqlite");
  none.launched("a", 0, 6, 10, 7, 1);
  none.run("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId");
  CHECK(refusal(none.path()).find("none.sqlite: has a table CUPTI_ACTIVITY_KIND_KERNEL without a column 'streamId'") !=
        std::string::npos);
}

TEST_CASE("what is no export is refused on one line") {
  const TemporaryFolder folder;
  const auto said = [&](const char* name) { return refusal((folder / name).string()); };
  CHECK(said("missing").find("cannot be read: No such file") != std::string::npos);
  folder.put("text", "no database, whatever else it is, as it does not begin like one");
  CHECK(said("text").find("is no database of SQLite") != std::string::npos);
  folder.put("packed", "\x1f\x8b and more");
  CHECK(said("packed").find("is compressed; unpack it") != std::string::npos);
  {
    ExportDatabase empty(folder / "empty.sqlite");
    CHECK(said("empty.sqlite").find("has no kernels") != std::string::npos);
    empty.run("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
    CHECK(said("empty.sqlite").find("is no export of Nsight Systems with CUDA") != std::string::npos);
    empty.run("CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INT)");
    CHECK(said("empty.sqlite").find("is a database of nvprof, which is not read") != std::string::npos);
    empty.run("CREATE TABLE rocpd_op (start INT)");
    CHECK(said("empty.sqlite").find("is a database of AMD's profiler (rocpd), which is not read") != std::string::npos);
  }
  ExportDatabase whole(folder / "whole.sqlite");
  for (int i = 0; i < 2000; ++i) whole.launched("kernel", 10 * i, 10 * i + 6, 3, 7, i + 1);
  std::ifstream file(whole.path(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  folder.put("torn", std::string_view(bytes).substr(0, bytes.size() / 2));
  CHECK(said("torn").find("torn: cannot be read as a database of SQLite: ") != std::string::npos);
}

// The text of nccl-tests: which operation, ranks and version its tables are of, whatever is printed around them.
#include "experiments/nccl/nccl_tests.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "experiments/measured_collectives/collectives.hpp"
#include "experiments/measured_collectives/published_tables.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using import::NcclTestRow;
using import::parse_nccl_tests;

namespace {

const std::string kLog = source_folder() + "/tests/experiments/nccl_tests/all_reduce_h100_8.log";

const std::string kHeader =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

/// Two hosts with two ranks each, as MPI prints them.
std::string ranks(const std::string& label = "") {
  std::string text;
  for (int rank = 0; rank < 4; ++rank)
    text += label + "#  Rank  " + std::to_string(rank) + " Group  0 Pid  1 on " + (rank < 2 ? "left" : "right") +
            " device  0 [0x19] NVIDIA A100-SXM4-80GB\n";
  return text;
}

std::string row(const std::string& size, const std::string& count, const std::string& reduction,
                const std::string& root, const std::string& checks = "0") {
  return "  " + size + " " + count + " float " + reduction + " " + root + " 50.0 0.02 0.03 0 40.5 0.02 0.03 " + checks +
         "\n";
}

std::string refusal(const std::string& text, const std::string& name = "log") {
  try {
    parse_nccl_tests(text, name);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace

TEST_CASE("every size of a published log becomes a row with the shorter of its two times") {
  const std::string text = import::read_text(kLog);
  REQUIRE(import::is_nccl_tests(text));
  const std::vector<NcclTestRow> rows = parse_nccl_tests(text, kLog);
  REQUIRE(rows.size() == 32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].operation == "all_reduce");
    CHECK((rows[i].ranks == 8 && rows[i].nodes == 1));
    CHECK(rows[i].device == "NVIDIA H100 80GB HBM3");
    CHECK(rows[i].bytes == std::to_string(std::int64_t{8} << i));
  }
  CHECK(rows[2].time_us == "13.52");  // 68.14 out of place
  CHECK(rows[31].time_us == "62636");
}

TEST_CASE("a log becomes collectives on the machines that it names") {
  const Catalog catalog;
  const auto rows = measured::read_collectives(measured::parse_measurements(import::read_text(kLog), kLog), catalog);
  REQUIRE(rows.size() == 32);
  for (const measured::MeasuredCollective& one : rows) {
    CHECK(one.unsupported.empty());
    CHECK((one.gpu == "h100_sxm" && one.ranks == 8 && one.nodes == 1 && one.algorithm == "auto"));
  }
  CHECK(rows[31].measured_us == 62'636);
  CHECK(rows[16].family == "nccl-tests all_reduce, below 1 MiB");
  CHECK(rows[17].family == "nccl-tests all_reduce, from 1 MiB");
}

TEST_CASE("the operation follows from the columns where nothing names it") {
  const auto operation = [](const std::string& rows, const std::string& name = "log") {
    return parse_nccl_tests(ranks() + kHeader + rows, name).front().operation;
  };
  CHECK(operation(row("1024", "256", "sum", "-1")) == "all_reduce");
  CHECK(operation(row("1024", "64", "sum", "-1")) == "reduce_scatter");
  CHECK(operation(row("1024", "256", "sum", "0")) == "reduce");
  CHECK(operation(row("1024", "256", "none", "0")) == "broadcast");
  CHECK(operation(row("1024", "256", "none", "-1")) == "sendrecv");
  CHECK(operation(row("1024", "64", "none", "-1")) == "all_gather");
  CHECK(operation(row("1024", "64", "none", "-1", "N/A")) == "alltoall");  // what it does in place is not checked
}

TEST_CASE("a test is known by its own line, by the last command before it, or by the file's name") {
  std::string unchecked = row("1024", "64", "none", "-1", "N/A");
  unchecked.replace(unchecked.find(" 0 40.5"), 2, " N/A");
  const std::string table = ranks() + kHeader + unchecked;
  CHECK(parse_nccl_tests("+ mpirun -np 4 build/alltoall_perf -b 8 -c 0\n" + table, "log").front().operation ==
        "alltoall");
  CHECK(parse_nccl_tests("# Collective test starting: all_gather_perf\n" + table, "log").front().operation ==
        "all_gather");
  CHECK(parse_nccl_tests(table, "runs/all_gather.txt").front().operation == "all_gather");
  using Catch::Contains;
  CHECK_THAT(refusal(table), Contains("log:5: what was measured is not told") && Contains("all_gather, alltoall"));
  // A command of another test does not contradict the columns.
  const std::string reduced = ranks() + kHeader + row("1024", "256", "sum", "-1");
  CHECK(parse_nccl_tests("build/alltoall_perf\n" + reduced, "log").front().operation == "all_reduce");
}

TEST_CASE("nodes, version and labels of launchers are understood, and several tests in one file") {
  const std::string one =
      ranks("[1,0]<stdout>: ") + "0: " + kHeader + row("1024", "256", "sum", "-1") + "# Avg bus bandwidth    : 1\n";
  const std::string two = "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n# nThread 1 nGpus 1\n" +
                          ranks() + kHeader + row("4096", "256", "sum", "-1");
  const auto rows = parse_nccl_tests("NCCL version 2.19.3+cuda12.3\n" + one + two, "log");
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].operation == "all_reduce" && rows[1].operation == "reduce_scatter"));
  CHECK((rows[0].version == "2.19.3" && rows[1].version == "2.28.9"));
  for (const NcclTestRow& each : rows) CHECK((each.ranks == 4 && each.nodes == 2));
}

TEST_CASE("what is missing of a log is named, and a torn row is left for its reader to refuse") {
  using Catch::Contains;
  CHECK_FALSE(import::is_nccl_tests("size,count,type,time,algbw\n1,2,3,4,5\n"));
  CHECK_THAT(refusal(kHeader), Contains("log:1: has the header of an nccl-tests table and no row"));
  CHECK_THAT(refusal(kHeader + row("8", "2", "sum", "-1")), Contains("the number of its ranks"));
  CHECK_THAT(
      refusal(ranks() + "#  Rank  4 Group  1 Pid 1 on a device 0 [1] X\n" + kHeader + row("8", "2", "sum", "-1")),
      Contains("several groups"));
  const std::string text = ranks() + kHeader + row("8", "2", "sum", "-1") + "16 4 float\n";
  const auto rows = measured::read_collectives(measured::parse_measurements(text, "log"), Catalog());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].unsupported.empty());
  CHECK(rows[1].unsupported == "bytes is not printed");
}

TEST_CASE("a number that cannot be read leaves out its row of a published table, not the table") {
  const std::string text =
      "nodes,gpus,bytes,algorithm,median_ns\n4,16,lots,allreduce_nccl_ring,9\n4,16,1024,allreduce_nccl_ring,soon\n"
      "4,16,1048576,allreduce_nccl_ring,90000\n";
  const auto rows = measured::read_collectives(measured::parse_measurements(text, "mn.csv"), Catalog());
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].unsupported == "a field cannot be read");
  CHECK_THAT(rows[0].detail, Catch::Contains("mn.csv:2") && Catch::Contains("bytes"));
  CHECK_THAT(rows[1].detail, Catch::Contains("mn.csv:3") && Catch::Contains("time_us"));
  CHECK(rows[2].unsupported == "");
}

TEST_CASE("damaged logs give rows or one message") {
  const std::string text = import::read_text(kLog);
  std::mt19937_64 random(1);
  const Catalog catalog;
  for (int i = 0; i < 300; ++i) {
    const std::string damaged = testing::mutated(text, random);
    if (!import::is_nccl_tests(damaged)) continue;
    try {
      measured::read_collectives(measured::parse_measurements(damaged, "log"), catalog);
    } catch (const core::InputError& error) {
      CHECK_THAT(error.what(), Catch::StartsWith("log"));
    }
  }
}

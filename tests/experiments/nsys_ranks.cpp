// Exports of several ranks: what NCCL's ranges of NVTX say of its kernels.
#include "experiments/nsys/payloads.hpp"
#include "experiments/nsys/range_texts.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/kineto_traces.hpp"
#include "tests/experiments/nsys_exports.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;
using core::collective::Kind;

namespace {

constexpr std::uint64_t kWorld = 0xabc, kOther = 0xdef;

/// Two processes that write into one export.
const Place kFirstProcess{100, 1, 0}, kSecondProcess{200, 2, 1};

}  // namespace

TEST_CASE("collectives have the bytes of our definitions and wait for the slower rank") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "all.sqlite");
  const auto run = [&](const Place& place, std::uint64_t rank, double compute, int correlation) {
    database.creation(kWorld, 2, rank, place);
    database.launched("compute", 0, 5, compute, 7, correlation, place);
    const double first = 5 + compute;
    database.collective("ncclAllReduce", kWorld, 4000, 10, first, 500 - first, correlation + 1, place);
    database.collective("ncclAllGather", kWorld, 1000, 40, 500, 20, correlation + 2, place);
    database.collective("ncclReduceScatter", kWorld, 1000, 70, 520, 20, correlation + 3, place);
    database.collective("ncclBroadcast", kWorld, 600, 100, 540, 20, correlation + 4, place, 3, 1);
  };
  run(kFirstProcess, 1, 100, 1);
  run(kSecondProcess, 0, 300, 11);
  const Imported imported = import_exports({database.path()});
  // Ranks are those of the communicator: the second process is rank 0.
  CHECK(account(imported).find("rank 0: process 200, GPU 1 of") != std::string::npos);
  CHECK(imported.programs.ranks.groups.at(0).ranks == std::vector<std::uint32_t>{0, 1});
  for (const RankProgram& program : imported.programs.programs) {
    const std::vector<Communication> calls = communications(program);
    REQUIRE(calls.size() == 4);
    CHECK((calls[0].kind == Kind::all_reduce && calls[0].bytes == 4000));
    CHECK((calls[1].kind == Kind::all_gather && calls[1].bytes == 2000));
    CHECK((calls[2].kind == Kind::reduce_scatter && calls[2].bytes == 2000));
    CHECK((calls[3].kind == Kind::broadcast && calls[3].bytes == 600));
    CHECK(calls[3].split == core::collective::rooted_split(1, 2, 600));
  }
  // (395 + 195 + 6 * 20) / 8 us, and (2 * 195 + 6 * 20) / 8.
  CHECK(
      account(imported).find("matched collectives take 88.8 us on average, waiting for other ranks included, and 63.8 "
                             "us on the rank where they are shortest") != std::string::npos);
}

TEST_CASE("the clock of an export that is 3 ms ahead is found by the ends of collectives") {
  const TemporaryFolder folder;
  ExportDatabase one(folder / "rank0.sqlite"), other(folder / "rank1.sqlite");
  for (int rank = 0; rank < 2; ++rank) {
    ExportDatabase& database = rank == 0 ? one : other;
    database.creation(kWorld, 2, static_cast<std::uint64_t>(rank));
    const double ahead = rank == 0 ? 0 : 3000;
    for (int i = 0; i < 9; ++i) {
      const double begin = ahead + 1000 * i;
      database.launched("compute", begin, begin + 5, 100, 7, 2 * i + 1);
      const double end = begin + 500 + (rank == 1 ? i % 3 : 0);
      database.collective("ncclAllReduce", kWorld, 4000, begin + 10, begin + 105, end - begin - 105, 2 * i + 2);
    }
  }
  CHECK(account(import_exports({one.path(), other.path()}))
            .find("the clock of rank 1 is 3001.0 us ahead of that of rank 0, by 9 collectives") != std::string::npos);
}

TEST_CASE("calls of a group are of the kernels that its end launches") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "all.sqlite");
  const auto run = [&](const Place& place, std::uint64_t rank, int correlation) {
    const std::uint64_t peer = 1 - rank;
    database.creation(kWorld, 2, rank, place);
    const auto group = [&](double begin, const std::vector<std::pair<std::string, std::vector<std::uint64_t>>>& calls,
                           const char* kernel) {
      database.range("ncclGroupStart", begin, 1, place);
      double at = begin + 2;
      for (const auto& [name, payload] : calls)
        database.range(name, at, 1, place, payload.size() == 3 ? 4 : 2, payload), at += 2;
      database.range("ncclGroupEnd", at, 20, place);
      database.launched(kernel, at + 2, at + 10, 10, 20, ++correlation, place);
    };
    // One all-reduce of two buffers; an all-to-all of 300 bytes to rank 0 and 500 to rank 1; a lone transfer; a batch.
    group(0, {{"ncclAllReduce", {kWorld, 1000}}, {"ncclAllReduce", {kWorld, 500}}}, "ncclDevKernel_AllReduce");
    group(100,
          {{"ncclSend", {kWorld, 300, 0}},
           {"ncclRecv", {kWorld, 300, 0}},
           {"ncclSend", {kWorld, 500, 1}},
           {"ncclRecv", {kWorld, 500, 1}}},
          "ncclDevKernel_SendRecv");
    if (rank == 0)
      group(200, {{"ncclSend", {kWorld, 64, peer}}}, "ncclDevKernel_SendRecv");
    else
      group(200, {{"ncclRecv", {kWorld, 64, peer}}}, "ncclDevKernel_SendRecv");
    group(300, {{"ncclSend", {kWorld, 64, peer}}, {"ncclRecv", {kWorld, 64, peer}}}, "ncclDevKernel_SendRecv");
  };
  run(kFirstProcess, 0, 0);
  run(kSecondProcess, 1, 50);
  const Imported imported = import_exports({database.path()});
  const std::vector<Communication> first = communications(imported.programs.programs[0]),
                                   second = communications(imported.programs.programs[1]);
  REQUIRE(first.size() == 3);
  REQUIRE(second.size() == 3);
  CHECK((first[0].kind == Kind::all_reduce && first[0].bytes == 1500));
  CHECK((first[1].kind == Kind::all_to_all && first[1].bytes == 800));
  CHECK(first[1].split.bytes == std::vector<std::int64_t>{300, 500});
  CHECK((first[2].kind == Kind::send && first[2].bytes == 64 && !first[2].receives));
  CHECK(second[2].receives);
  CHECK(account(imported).find("2 kernels of NCCL or RCCL do not say what") != std::string::npos);
}

TEST_CASE("an all-to-all of one call has one rank's part for each") {
  const TemporaryFolder folder;
  ExportDatabase one(folder / "rank0.sqlite"), other(folder / "rank1.sqlite");
  one.creation(kWorld, 2, 0).collective("ncclAlltoAll", kWorld, 300, 0, 10, 30, 1);
  other.creation(kWorld, 2, 1).collective("ncclAlltoAll", kWorld, 300, 0, 10, 30, 1);
  const std::vector<Communication> all =
      communications(import_exports({one.path(), other.path()}).programs.programs[0]);
  REQUIRE(all.size() == 1);
  CHECK((all[0].kind == Kind::all_to_all && all[0].bytes == 600 && all[0].split.bytes.empty()));
}

TEST_CASE("communicators without their creation are taken to be of those who use them") {
  const TemporaryFolder folder;
  ExportDatabase one(folder / "rank1.sqlite"), other(folder / "rank0.sqlite");
  for (ExportDatabase* database : {&one, &other}) database->collective("ncclAllReduce", kOther, 4000, 0, 10, 30, 1);
  const Imported imported = import_exports({one.path(), other.path()});
  CHECK(account(imported).find("1 communicators are taken to be of the ranks that use them") != std::string::npos);
  CHECK(account(imported).find(fmt::format("rank 1: process 100, GPU 0 of {}", one.path())) != std::string::npos);
  CHECK(communications(imported.programs.programs[0]).size() == 1);
  CHECK(imported.programs.notes.back() == "1 communicators are taken to be of the ranks that use them.");
  // Of a rank alone nothing is known.
  CHECK(communications(import_exports({one.path()}).programs.programs[0]).empty());
}

TEST_CASE("collectives without a payload, or of ranks that are not there, keep their times as kernels") {
  const TemporaryFolder folder;
  ExportDatabase silent(folder / "silent.sqlite"), alone(folder / "alone.sqlite");
  silent.range("ncclAllReduce", 0, 20).launched("ncclDevKernel_AllReduce", 5, 10, 30, 20, 1);
  const Imported without = import_exports({silent.path()});
  CHECK(account(without).find("1 calls of NCCL have no payload with their bytes") != std::string::npos);
  CHECK(step_us(without.programs) == Approx(35));  // from the launch, at 5, to 40
  alone.creation(kWorld, 8, 3);
  alone.collective("ncclAllReduce", kWorld, 4000, 0, 10, 30, 1);
  const Imported missing = import_exports({alone.path()});
  CHECK(account(missing).find("1 kernels of NCCL or RCCL are of groups with ranks whose traces are not there") !=
        std::string::npos);
  CHECK(step_us(missing.programs) == Approx(35));
  // It stands for all eight where that is asked for.
  profiler::ReadOptions options;
  options.alike = true;
  const Imported alike = import_exports({alone.path()}, options);
  CHECK(alike.programs.ranks.program_of_rank.size() == 8);
  CHECK(communications(alike.programs.programs[0]).size() == 1);
}

TEST_CASE("a thread that drives two GPUs calls a collective for each") {
  const TemporaryFolder folder;
  ExportDatabase database(folder / "both.sqlite");
  const Place zero{100, 1, 0}, one{100, 1, 1};
  database.creation(kWorld, 2, 0, zero).creation(kWorld, 2, 1, one);
  database.range("ncclGroupStart", 0, 1).range("ncclAllReduce", 2, 1, zero, 2, {kWorld, 800});
  database.range("ncclAllReduce", 4, 1, one, 2, {kWorld, 800}).range("ncclGroupEnd", 6, 20);
  database.launched("ncclDevKernel_AllReduce", 7, 20, 10, 20, 1, zero);
  database.launched("ncclDevKernel_AllReduce", 13, 20, 10, 20, 2, one);
  const Imported imported = import_exports({database.path()});
  REQUIRE(imported.programs.programs.size() == 2);
  for (const RankProgram& program : imported.programs.programs) {
    REQUIRE(communications(program).size() == 1);
    CHECK(communications(program)[0].bytes == 800);
  }
}

TEST_CASE("texts of ranges say what they are") {
  CHECK(nsys::range_text("ncclAllReduce").nccl == nsys::NcclRange::all_reduce);
  CHECK_FALSE(nsys::range_text("ncclAllReduceOther").nccl);
  CHECK(nsys::range_text("ncclCommInitRank").creates_communicator);
  CHECK(nsys::range_text("Iteration #12").span == "ProfilerStep#12");
  CHECK(nsys::range_text("step: 3").span == "ProfilerStep#3");
  CHECK(nsys::range_text("ProfilerStep#3").span == "ProfilerStep#3");
  CHECK(nsys::range_text("microstep 3").span.empty());
  CHECK(nsys::range_text("12").span.empty());
  CHECK(nsys::range_text("Optimizer.step#Adam.step").span == "Optimizer.step#Adam.step");
}

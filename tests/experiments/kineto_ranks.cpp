// Traces of several ranks: their collectives and their clocks.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "experiments/profiler_events/communication.hpp"
#include "experiments/programs/program_file.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/experiments/kineto_traces.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;
using core::collective::Kind;
using profiler::Collectives;
using profiler::ReadOptions;

namespace {

std::string nccl(const std::string& collective, std::int64_t in, std::int64_t out, const std::string& more = "") {
  return fmt::format(R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"Group size":2,"dtype":"Float",)"
                     R"("Process Group Name":"0","Process Group Description":"default_pg",)"
                     R"("Process Group Ranks":"[0, 1]"{})",
                     collective, in, out, more);
}

constexpr const char* kNccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

/// A rank that computes for `compute` us and reduces, `times` times, with a clock that is `ahead` us ahead. Collectives
/// end 500 us after the step began, and up to 2 us later on rank 1.
TraceText reducing(int rank, double compute, int times, double ahead) {
  TraceText trace;
  trace.later(ahead);
  for (int i = 0; i < times; ++i) {
    trace.launched("compute", 0, 5, compute, 7, 2 * i + 1);
    const double end = 500 + (rank == 1 ? i % 3 : 0);
    trace.launched(kNccl, 6, 5 + compute, end - 5 - compute, 20, 2 * i + 2, 1, nccl("allreduce", 1000, 1000));
    trace.later(1000);
  }
  return trace;
}

}  // namespace

TEST_CASE("a clock that is 3 ms ahead is found by the ends of collectives") {
  const std::vector<std::string> texts{reducing(0, 100, 9, 0).of_rank(0, 2), reducing(1, 300, 9, 3000).of_rank(1, 2)};
  const profiler::MatchedCollectives all = profiler::match_collectives({parse_text(texts[0]), parse_text(texts[1])});
  CHECK(all.clocks[1].compared == 9);
  CHECK(std::abs(all.clocks[1].ahead - 3'000'000) <= 50'000);
  CHECK(all.clocks[1].spread <= 2'000);
  const Imported imported = import_text(texts);
  CHECK(account(imported).find("the clock of rank 1 is 3001.0 us ahead of that of rank 0") != std::string::npos);
  // Both begin at the same time by now: at 0 on rank 0's clock, but for the microsecond that the median is off.
  CHECK(std::get<HostWork>(imported.programs.programs[0].ops[0].work).us == Approx(5).margin(1.01));
  CHECK(std::get<HostWork>(imported.programs.programs[1].ops[0].work).us == Approx(5).margin(1.01));
}

TEST_CASE("a collective of two ranks has its group and its bytes, and waits for the slower") {
  const Imported imported = import_text({reducing(0, 100, 1, 0).of_rank(0, 2), reducing(1, 300, 1, 0).of_rank(1, 2)});
  REQUIRE(imported.programs.ranks.dimensions.size() == 1);
  CHECK(imported.programs.ranks.dimensions[0].name == "default_pg");
  CHECK(imported.programs.ranks.groups[0].ranks == std::vector<std::uint32_t>{0, 1});
  for (const RankProgram& program : imported.programs.programs) {
    const std::vector<Communication> calls = communications(program);
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].kind == Kind::all_reduce);
    CHECK(calls[0].bytes == 4000);
  }
  CHECK(parse_program_file(program_file_text(imported.programs), "again").programs == imported.programs.programs);
  // 395 us on rank 0, which waited, and 195 us on rank 1.
  CHECK(account(imported).find("take 295.0 us on average, waiting for other ranks included, and 195.0 us on the rank "
                               "where they are shortest") != std::string::npos);
  ReadOptions options;
  options.collectives = Collectives::as_recorded;
  const Imported recorded =
      import_text({reducing(0, 100, 1, 0).of_rank(0, 2), reducing(1, 300, 1, 0).of_rank(1, 2)}, options);
  CHECK(recorded.programs.ranks.dimensions.empty());
  CHECK(step_us(recorded.programs) == Approx(500));
  options.collectives = Collectives::without_waiting;
  const Imported shortest =
      import_text({reducing(0, 100, 1, 0).of_rank(0, 2), reducing(1, 300, 1, 0).of_rank(1, 2)}, options);
  CHECK(std::get<KernelWork>(shortest.programs.programs[0].ops.back().work).measured_us == 195);
}

TEST_CASE("the bytes of collectives are those of our definitions") {
  const auto named = [](const std::string& collective, std::int64_t in, std::int64_t out,
                        const std::string& more = "") {
    TraceText trace;
    trace.launched(kNccl, 0, 5, 10, 20, 1, 1, nccl(collective, in, out, more));
    const profiler::RankTrace read = parse_text(trace.text());
    return profiler::named_collective(read.communications.at(0), read.names);
  };
  CHECK(named("_allgather_base", 500, 1000)->bytes == 4000);
  CHECK(named("_allgather_base", 500, 1000)->kind == Kind::all_gather);
  CHECK(named("_reduce_scatter_base", 1000, 500)->bytes == 4000);
  CHECK(named("allreduce_coalesced", 1000, 1000)->bytes == 4000);
  CHECK(named("broadcast", 1000, 1000, R"(,"Rank":1)")->root == 1);
  CHECK(named("all_to_allv", 1000, 600, R"(,"In split size":"[750, 250]")")->counts ==
        std::vector<std::int64_t>{3000, 1000});
  CHECK(named("all_to_allv", 1000, 1000, R"(,"In split size":[500, 500])")->counts.empty());
  CHECK(named("send", 1000, 1000, R"(,"Dst Rank":1)")->peer == 1);
  CHECK(named("recv", 1000, 1000, R"(,"Src Rank":1)")->receives);
  CHECK_FALSE(named("send", 1000, 1000));
  CHECK_FALSE(named("gather", 1000, 1000));
  CHECK_FALSE(named("allreduce", 0, 0));
  CHECK(profiler::bytes_of_dtype("BFloat16") == 2);
  CHECK(profiler::bytes_of_dtype("Float8_e4m3fn") == 1);
}

TEST_CASE("ranks of a group are read of texts, also where most are left out") {
  using Ranks = std::vector<std::uint32_t>;
  CHECK(profiler::ranks_of_text("[0, 1, 5]", 3) == Ranks{0, 1, 5});
  CHECK(profiler::ranks_of_text("[0, 8, ..., 56]", 8) == Ranks{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(profiler::ranks_of_text("[0, 8, ..., 50]", 8).empty());
  CHECK(profiler::ranks_of_text("[0, 0]", 2).empty());
  CHECK(profiler::ranks_of_text("none", 2).empty());
}

TEST_CASE("a transfer has a sender and a receiver") {
  const auto rank = [](int number) {
    TraceText trace;
    trace.launched(
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 0, 5, 10, 20, 1, 1,
        number == 0 ? nccl("send", 256, 256, R"(,"Dst Rank":1)") : nccl("recv", 256, 256, R"(,"Src Rank":0)"));
    return trace.of_rank(number, 2);
  };
  const Imported imported = import_text({rank(0), rank(1)});
  REQUIRE(imported.programs.ranks.dimensions.size() == 1);
  CHECK(imported.programs.ranks.dimensions[0].kind == core::workload::DimensionKind::pairs);
  CHECK_FALSE(communications(imported.programs.programs[0]).at(0).receives);
  CHECK(communications(imported.programs.programs[1]).at(0).receives);
  CHECK(communications(imported.programs.programs[1]).at(0).bytes == 1024);
  CHECK(step_us(imported.programs) > 5);
}

TEST_CASE("collectives that are not of all ranks, or say nothing, keep their times as kernels") {
  const Imported alone = import_text({reducing(0, 100, 2, 0).of_rank(0, 2)});
  CHECK(communications(alone.programs.programs[0]).empty());
  CHECK(account(alone).find("2 kernels of NCCL or RCCL are of groups with ranks whose traces are not there") !=
        std::string::npos);
  CHECK(step_us(alone.programs) == Approx(alone.recorded_us).epsilon(0.01));
  TraceText silent;
  silent.launched(kNccl, 0, 5, 10, 20, 1);
  CHECK(account(import_text({silent.of_rank(0, 2)})).find("do not say what, how much or among which ranks") !=
        std::string::npos);
  // One rank has one more at the end: the others are matched from the beginning.
  const Imported more = import_text({reducing(0, 100, 3, 0).of_rank(0, 2), reducing(1, 300, 2, 0).of_rank(1, 2)});
  CHECK(communications(more.programs.programs[0]).size() == 2);
  CHECK(account(more).find("1 kernels of NCCL or RCCL are not in the traces of all their ranks") != std::string::npos);
}

TEST_CASE("communication is told by group, with how long nothing computes beside it") {
  TraceText trace;
  trace.launched("compute", 0, 5, 35, 7, 1);
  trace.launched(kNccl, 6, 10, 100, 20, 2, 1, nccl("allreduce", 1000, 1000));  // 30 us of 100 beside the first
  // Two exchanges meet, 60 us in all, and 10 us of them pass beside a kernel that counts tokens.
  trace.launched("void deep_ep::internode::dispatch<false, 8>(int4*)", 120, 125, 40, 27, 3);
  trace.launched("void deep_ep::internode::combine<false, 8>(int4*)", 130, 145, 40, 28, 4);
  trace.launched("void deep_ep::internode::get_dispatch_layout<256>(long*)", 140, 150, 10, 29, 5);
  trace.launched(kNccl, 200, 205, 7, 20, 6);
  const Imported imported = import_text({trace.of_rank(0, 2)});
  const std::vector<std::string> told(imported.account.end() - 3, imported.account.end());
  CHECK(told == std::vector<std::string>{
                    "communication of 'default_pg', 2 ranks: 0.100 ms, of which 0.070 ms beside no kernel that "
                    "computes: 1 allreduce 0.100 ms",
                    "communication of DeepEP, whose group the trace does not tell: 0.080 ms, of which 0.050 ms beside "
                    "no kernel that computes: 1 combine 0.040 ms, 1 dispatch 0.040 ms",
                    "communication of NCCL or RCCL, whose groups the trace does not tell: 0.007 ms, of which 0.007 ms "
                    "beside no kernel that computes: 1 ncclDevKernel_AllReduce_Sum_f32_RING_LL 0.007 ms"});
  std::map<core::workload::StepPart, int> parts;
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (const auto* kernel = std::get_if<KernelWork>(&op.work)) ++parts[kernel->part];
  CHECK(parts[core::workload::StepPart::exposed_ep] == 2);
  CHECK(parts[core::workload::StepPart::exposed_other] == 2);
}

TEST_CASE("of many groups those are told that communicated for longest, and how many are left") {
  TraceText trace;
  for (int group = 0; group < 14; ++group)
    trace.launched(
        kNccl, 100 * group, 100 * group + 10, 50 + group, 20, group + 1, 1,
        fmt::format(R"(,"Collective name":"allreduce","Group size":{},"Process Group Name":"{}")", group + 2, group));
  const Imported imported = import_text({trace.of_rank(0, 64)});
  const std::string told = account(imported);
  CHECK(told.find("communication of '13', 15 ranks: 0.063 ms") < told.find("communication of '2', 4 ranks: 0.052 ms"));
  CHECK(told.find("communication of '1'") == std::string::npos);
  CHECK(imported.account.back() == "communication of 2 more groups, which took less");
}

TEST_CASE("what computes beside communication is what a count of every microsecond finds") {
  std::minstd_rand random(7);
  for (int draw = 0; draw < 20; ++draw) {
    TraceText trace;
    std::set<int> communicating, computing;
    int sum = 0;
    for (int i = 0; i < 40; ++i) {
      const int start = 300 + static_cast<int>(random() % 700), duration = 1 + static_cast<int>(random() % 40);
      const bool communicates = random() % 2 == 0;
      trace.launched(communicates ? kNccl : "compute", 5 * i, start, duration, 7 + i, i + 1);
      for (int at = start; at < start + duration; ++at) (communicates ? communicating : computing).insert(at);
      if (communicates) sum += duration;
    }
    const auto alone =
        std::count_if(communicating.begin(), communicating.end(), [&](int at) { return !computing.contains(at); });
    const std::string told = import_text({trace.of_rank(0, 2)}).account.back();
    CHECK(told.find(fmt::format(": {:.3f} ms, of which {:.3f} ms beside", 1e-3 * sum,
                                1e-3 * static_cast<double>(alone))) != std::string::npos);
  }
}

TEST_CASE("one trace stands for all ranks in groups like its own") {
  TraceText trace;
  const auto grouped = [](const std::string& ranks, int size, const std::string& more) {
    return fmt::format(R"(,"In msg nelems":1000,"Out msg nelems":1000,"Group size":{},"dtype":"Half",)"
                       R"("Process Group Ranks":"{}","Process Group Name":"{}"{})",
                       size, ranks, ranks, more);
  };
  trace.launched(kNccl, 0, 5, 10, 20, 1, 1, grouped("[1, 5]", 2, R"(,"Collective name":"allreduce")"));
  trace.launched(kNccl, 20, 25, 10, 20, 2, 1, grouped("[0, 1, 2, 3]", 4, R"(,"Collective name":"_allgather_base")"));
  trace.launched(kNccl, 40, 45, 10, 21, 3, 1, grouped("[1, 2]", 2, R"(,"Collective name":"send","Dst Rank":2)"));
  trace.launched(kNccl, 60, 65, 10, 22, 4, 1, grouped("[1, 2]", 2, R"(,"Collective name":"recv","Src Rank":0)"));
  trace.launched(kNccl, 80, 85, 10, 20, 5, 1, grouped("[1, 4]", 2, R"(,"Collective name":"allreduce")"));
  ReadOptions options;
  options.alike = true;
  const Imported imported = import_text({trace.of_rank(1, 8)}, options);
  CHECK(imported.programs.ranks.program_of_rank == std::vector<std::uint32_t>(8, 0));
  std::map<std::string, std::vector<std::vector<std::uint32_t>>> groups;
  for (const core::workload::GivenGroup& group : imported.programs.ranks.groups)
    groups[imported.programs.ranks.dimensions[group.dimension].name].push_back(group.ranks);
  using Groups = std::vector<std::vector<std::uint32_t>>;
  CHECK(groups["[1, 5]"] == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups["[0, 1, 2, 3]"] == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(groups["[1, 2] +1"].size() == 8);
  CHECK(groups["[1, 2] +1"][7] == std::vector<std::uint32_t>{7, 0});
  CHECK(communications(imported.programs.programs[0]).size() == 4);
  CHECK(account(imported).find("1 kernels of NCCL or RCCL are of groups that are no part of a grid") !=
        std::string::npos);
  core::workload::check_ranks(imported.programs.ranks, 1, "trace");
  CHECK(step_us(imported.programs) > 90);
  CHECK_THROWS_WITH(import_text({trace.text()}, options), Catch::Contains("does not say its rank, and of how many"));
}

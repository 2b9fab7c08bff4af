// Dumps of PyTorch's flight recorder: what becomes of them, and who is found to lack which collective.
#include "tests/experiments/flight_dumps.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/imported_programs.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;
using core::collective::Kind;
using nccl_logs::parse_flight_dump;

namespace {

const json kPair = {{"0", {0, 1}}};

bool tells(const Imported& imported, const std::string& part) {
  UNSCOPED_INFO(account(imported));
  return account(imported).find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("bytes of a dump's calls are those of our definitions") {
  DumpText dump(kPair);
  dump.call("0", "all_reduce", 1, {{3, 4}}, {{3, 4}});
  dump.call("0", "_all_gather_base", 2, {{500}}, {{1000}});
  dump.call("0", "_reduce_scatter_base", 3, {{1000}}, {{500}});
  dump.call("0", "all_to_all", 4, {{100}, {50}}, {{150}});
  dump.call("0", "broadcast", 5, {{7}}, {{7}});
  dump.call("0", "recv 0<-1", 5, {{10}}, {{10}}, "started", 1);
  dump.call("0", "gather", 6, {{7}}, {{7}}, "scheduled");
  const nccl_logs::FlightDump parsed = parse_flight_dump(dump.text(), "rank_0");
  REQUIRE(parsed.calls.size() == 7);
  std::vector<std::int64_t> bytes;
  for (const nccl_logs::RecordedCall& call : parsed.calls) bytes.push_back(call.bytes);
  CHECK(bytes == std::vector<std::int64_t>{48, 4000, 4000, 600, 28, 40, 0});
  CHECK(parsed.calls[1].kind == Kind::all_gather);
  CHECK(parsed.calls[5].receives);
  CHECK((parsed.calls[5].source == 1 && parsed.calls[5].destination == 0));
  CHECK(parsed.calls[5].state == nccl_logs::CallState::started);
  CHECK_FALSE(parsed.calls[6].kind);
  CHECK(parsed.groups[0].ranks == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("ranks of a group may be a list, and elements of 8 bits AMD's") {
  json document = DumpText(kPair).all_reduce("0", 1, 100).document();
  document["pg_config"]["0"]["ranks"] = {0, 1};
  document["entries"][0]["input_dtypes"][0] = "Float8_e4m3fnuz";
  const nccl_logs::FlightDump parsed = parse_flight_dump(document.dump(), "rank_0");
  CHECK(parsed.groups[0].ranks == std::vector<std::uint32_t>{0, 1});
  CHECK(parsed.calls[0].bytes == 100);
  document["pg_config"]["0"]["ranks"] = 7;
  CHECK(error_of([&] { parse_flight_dump(document.dump(), "rank_0"); }).find("'ranks' must be a list") !=
        std::string::npos);
}

TEST_CASE("a pickle says what the JSON of the same dump says") {
  DumpText dump(kPair, 3);
  dump.all_reduce("0", 1, 100).call("0", "send 0->1", 1, {{5}}, {{5}}, "scheduled", 1);
  const nccl_logs::FlightDump one = parse_flight_dump(dump.text(), "rank_0"),
                              other = parse_flight_dump(pickled(dump.document()), "rank_0");
  REQUIRE(one.calls.size() == other.calls.size());
  CHECK(one.groups == other.groups);
  for (std::size_t i = 0; i < one.calls.size(); ++i) {
    CHECK(one.calls[i].record == other.calls[i].record);
    CHECK(one.calls[i].bytes == other.calls[i].bytes);
    CHECK(one.calls[i].name == other.calls[i].name);
    CHECK(one.calls[i].created_ns == other.calls[i].created_ns);
  }
  CHECK(other.has_wrapped());
}

TEST_CASE("collectives of a group follow each other, and those of two groups run side by side") {
  const json groups = {{"0", {0, 1}}, {"1", {0, 1}}};
  const auto step = [&](const std::vector<std::string>& of_calls) {
    DumpText dump(groups);
    std::int64_t sequence = 0;
    for (const std::string& group : of_calls) dump.all_reduce(group, ++sequence, 1 << 22);
    const Imported imported = import_dumps({dump, dump});
    CHECK(imported.refused.empty());
    return step_of(imported.programs).step_ps;
  };
  const Time one = alone("all_reduce", 4 << 22, "[0,1]", 2);
  CHECK(step({"0"}) == one);
  CHECK(step({"0", "0"}) == 2 * one);
  const Time both = step({"0", "1"});
  CHECK(both >= one);
  CHECK(both < 2 * one);
}

TEST_CASE("dependencies on a stream are exact, those between groups inferred") {
  DumpText dump(json{{"0", {0, 1}}, {"1", {0, 1}}});
  dump.all_reduce("0", 1, 100).all_reduce("0", 2, 100).all_reduce("1", 1, 100).all_reduce("0", 3, 100);
  const Imported imported = import_dumps({dump, dump});
  // Of each rank: 0 before 1 and 1 before 3 on one stream; from group 0 to 1 and back.
  CHECK(imported.dependencies == Dependencies{4, 4, 0});
  CHECK(imported.programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0});
  CHECK(communications(imported.programs.programs[0]).size() == 4);
  CHECK(tells(imported, "all ranks called the same collectives in the same order"));
}

TEST_CASE("the host takes no time between its calls, unless that is asked for") {
  DumpText dump(kPair);
  dump.all_reduce("0", 1, 100).all_reduce("0", 2, 100).all_reduce("0", 3, 100);
  const auto host_us = [&](bool host_gaps) {
    double sum = 0;
    const Imported imported = import_dumps({dump, dump}, host_gaps);
    for (const StreamOp& op : imported.programs.programs[0].ops)
      if (const auto* host = std::get_if<HostWork>(&op.work)) sum += host->us;
    return sum;
  };
  CHECK(host_us(false) == 0);
  CHECK(host_us(true) == 10);  // two gaps of 5 us
}

TEST_CASE("who lacks a collective is told by group, number and rank, and there are no programs") {
  const json four = {{"0", {0, 1, 2, 3}}};
  std::vector<DumpText> dumps(4, DumpText(four));
  for (int rank = 0; rank < 4; ++rank) {
    dumps[static_cast<std::size_t>(rank)].all_reduce("0", 1, 100);
    if (rank == 2) continue;  // it hangs elsewhere
    dumps[static_cast<std::size_t>(rank)].all_reduce("0", 2, 100, "started").all_reduce("0", 3, 100, "scheduled");
  }
  const Imported imported = import_dumps(dumps);
  CHECK(tells(imported,
              "differs: group 0 (0_pg) of ranks 0-3: collective 2 differs: all_reduce of 400 bytes on ranks "
              "0-1,3, missing on rank 2, where the last is 1 (all_reduce, completed); later ones that differ: 1"));
  CHECK(tells(imported,
              "not completed: group 0 (0_pg) of ranks 0-3: collective 2 (all_reduce) is started on ranks "
              "0-1,3"));
  CHECK(imported.refused.find("its ranks did not call the same") == 0);
  CHECK(imported.programs.programs.empty());
}

TEST_CASE("ranks that call another collective, or other bytes, are told") {
  std::vector<DumpText> dumps(3, DumpText(json{{"0", {0, 1, 2}}}));
  dumps[0].all_reduce("0", 1, 100), dumps[1].all_reduce("0", 1, 100), dumps[2].all_reduce("0", 1, 50);
  CHECK(tells(import_dumps(dumps),
              "collective 1 differs: all_reduce of 200 bytes on rank 2, all_reduce of 400 bytes on ranks 0-1"));
  std::vector<DumpText> kinds(2, DumpText(kPair));
  kinds[0].all_reduce("0", 1, 100), kinds[1].call("0", "broadcast", 1, {{100}}, {{100}});
  CHECK(tells(import_dumps(kinds), "all_reduce of 400 bytes on rank 0, broadcast of 400 bytes on rank 1"));
}

TEST_CASE("dumps that have lost their beginning are compared from where all of them reach back to") {
  DumpText early(kPair), late(kPair, 7);
  for (std::int64_t i = 1; i <= 5; ++i) early.all_reduce("0", i, 100);
  for (std::int64_t i = 4; i <= 5; ++i) late.all_reduce("0", i, 100);
  const Imported imported = import_dumps({early, late});
  CHECK(imported.refused.empty());
  CHECK(communications(imported.programs.programs[0]).size() == 2);
  CHECK(tells(imported, "3 calls that not all ranks reach back to are left out"));
  // A dump that has all from its beginning lacks what it does not have.
  DumpText whole(kPair);
  for (std::int64_t i = 4; i <= 5; ++i) whole.all_reduce("0", i, 100);
  CHECK(tells(import_dumps({early, whole}), "missing on rank 1"));
}

TEST_CASE("transfers of a batch run side by side, so that two ranks may send before they receive") {
  const auto rank = [](std::int64_t self) {
    const std::int64_t other = 1 - self;
    DumpText dump(kPair);
    dump.call("0", fmt::format("send {}->{}", self, other), 1, {{1000}}, {{1000}}, "completed", 1);
    dump.call("0", fmt::format("recv {}<-{}", self, other), 1, {{1000}}, {{1000}}, "completed", 1);
    dump.call("0", "coalesced", 1, json::array(), json::array(), "completed", 1);
    return dump;
  };
  const Imported imported = import_dumps({rank(0), rank(1)});
  CHECK(imported.refused.empty());
  for (const RankProgram& program : imported.programs.programs) {
    const std::vector<Communication> calls = communications(program);
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].bytes == 4000);
    CHECK(calls[0].receives != calls[1].receives);
  }
  CHECK(step_of(imported.programs).step_ps > 0);
}

TEST_CASE("sends without their receives are told by pair") {
  DumpText sender(kPair), receiver(kPair);
  sender.call("0", "send 0->1", 0, {{8}}, {{8}}, "completed", 1).call("0", "send 0->1", 0, {{8}}, {{8}}, "started", 2);
  receiver.call("0", "recv 1<-0", 0, {{8}}, {{8}}, "completed", 1);
  CHECK(tells(import_dumps({sender, receiver}), "from rank 0 to rank 1 there are 2 sends and 1 receives"));
  DumpText other(kPair);
  other.call("0", "recv 1<-0", 0, {{9}}, {{9}}, "completed", 1).call("0", "recv 1<-0", 0, {{8}}, {{8}}, "started", 2);
  CHECK(tells(import_dumps({sender, other}), "from rank 0 to rank 1 send 1 of 2 has 32 bytes, and its receive 36"));
}

TEST_CASE("all-to-alls that differ by rank are even ones of the mean, and what takes no time is left out") {
  DumpText one(kPair), other(kPair);
  one.call("0", "all_to_all", 1, {{100}}, {{60}}), other.call("0", "all_to_all", 1, {{60}}, {{100}});
  for (DumpText* dump : {&one, &other})
    dump->call("0", "split", 2, json::array(), json::array()).call("0", "finalize", 3, json::array(), json::array());
  const Imported imported = import_dumps({one, other});
  CHECK(imported.refused.empty());
  REQUIRE(communications(imported.programs.programs[0]).size() == 1);
  CHECK(communications(imported.programs.programs[0])[0].bytes == 320);
}

TEST_CASE("a job whose dumps are not all there, or with calls that are not simulated, has no programs") {
  DumpText one(json{{"0", {0, 1, 2, 5}}});
  one.all_reduce("0", 1, 100);
  CHECK(import_dumps({one}).refused == "the dump of ranks 1-5 is not there: give those of all ranks");
  DumpText gathers(kPair);
  gathers.call("0", "gather", 1, {{10}}, {{20}}).call("0", "gather", 2, {{10}}, {{20}});
  CHECK(import_dumps({gathers, gathers}).refused == "has calls that are not simulated: 4 of gather");
}

TEST_CASE("dumps are read from files, whose names have their ranks") {
  const TemporaryFolder folder;
  DumpText dump(kPair);
  dump.all_reduce("0", 1, 100);
  folder.put("nccl_trace_rank_0", pickled(dump.document()));
  folder.put("nccl_trace_rank_1", dump.text());
  folder.put("trace", dump.text());
  folder.put("b1.json", dump.text());
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const Imported imported = nccl_logs::read_flight_recorder({path("nccl_trace_rank_1"), path("nccl_trace_rank_0")});
  CHECK(imported.refused.empty());
  CHECK(imported.programs.ranks.program_of_rank.size() == 2);
  CHECK_THROWS_WITH(nccl_logs::read_flight_recorder({path("trace")}), Catch::Contains("does not have its rank"));
  CHECK_THROWS_WITH(nccl_logs::read_flight_recorder({path("nccl_trace_rank_1"), path("b1.json")}),
                    Catch::Contains("b1.json: is of rank 1, as is"));
}

TEST_CASE("what is no dump is refused with the entry that is wrong") {
  const auto refusal = [](const std::string& text) { return error_of([&] { parse_flight_dump(text, "dump"); }); };
  CHECK(refusal("{}").find("dump: has no 'entries'") == 0);
  CHECK(refusal("[]").find("dump: is no object with 'entries' and 'pg_config', as a dump") == 0);
  CHECK(refusal("{\"entries\": []}").find("has no 'pg_config'") != std::string::npos);
  CHECK(refusal("{\"entries\"").find("dump") == 0);
  DumpText dump(kPair);
  dump.all_reduce("0", 1, 100).all_reduce("7", 1, 100);
  CHECK(refusal(dump.text()) == "dump: entry 1: is of group '7', which 'pg_config' does not have");
  json wrong = DumpText(kPair).all_reduce("0", 1, 100).document();
  wrong["entries"][0]["input_dtypes"][0] = "Strange";
  CHECK(refusal(wrong.dump()).find("elements of type Strange") != std::string::npos);
  wrong["entries"][0]["input_sizes"][0] = {1 << 30, 1 << 30};
  wrong["entries"][0]["input_dtypes"][0] = "Float";
  CHECK(refusal(wrong.dump()).find("beyond 2^50 bytes") != std::string::npos);
  wrong["entries"][0]["profiling_name"] = "nccl:send";
  CHECK(refusal(wrong.dump()).find("does not say from whom to whom") != std::string::npos);
  wrong["entries"][0].erase("record_id");
  CHECK(refusal(wrong.dump()).find("no member 'record_id'") != std::string::npos);
}

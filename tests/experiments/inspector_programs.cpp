// Logs of NCCL's Inspector as programs of communication alone.
#include "experiments/nccl_logs/read_inspector.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/imported_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;
using core::collective::Kind;

namespace {

/// Where an object is of: a rank of a communicator, in a process.
struct Of {
  std::string communicator;
  int rank = 0, ranks = 2, process = 0;
};

std::string object(const Of& of, const std::string& performance) {
  return fmt::format(
      "{{\"header\": {{\"id\": \"{}\", \"rank\": {}, \"n_ranks\": {}, \"nnodes\": 1}}, \"metadata\": {{\"hostname\": "
      "\"node\", \"pid\": {}}}, {}}}\n",
      of.communicator, of.rank, of.ranks, of.process, performance);
}
std::string logged(const Of& of, const std::string& name, int number, std::int64_t bytes, double us,
                   std::int64_t start_us = -1) {
  return object(
      of, fmt::format("\"coll_perf\": {{\"coll\": \"{}\", \"coll_sn\": {}, \"coll_msg_size_bytes\": {}, "
                      "\"coll_exec_time_us\": {}{}}}",
                      name, number, bytes, us,
                      start_us < 0 ? "" : fmt::format(", \"event_trace_ts\": {{\"coll_start_ts\": {}}}", start_us)));
}
std::string logged_transfer(const Of& of, const std::string& name, int number, int peer, std::int64_t bytes) {
  return object(of, fmt::format("\"p2p_perf\": {{\"p2p\": \"{}\", \"p2p_sn\": {}, \"p2p_peer\": {}, "
                                "\"p2p_msg_size_bytes\": {}, \"p2p_exec_time_us\": 5}}",
                                name, number, peer, bytes));
}
Imported imported(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string_view>> named;
  for (std::size_t i = 0; i < texts.size(); ++i) named.emplace_back(fmt::format("log{}", i), texts[i]);
  return nccl_logs::import_inspector(named);
}

}  // namespace

TEST_CASE("collectives of a log follow each other by their numbers, with the bytes of our definitions") {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    const Of of{"0x1", rank, 2, 10 + rank};
    texts.push_back(logged(of, "ReduceScatter", 3, 1000, 30) + logged(of, "AllReduce", 1, 4000, 10 + rank) +
                    logged(of, "AllGather", 2, 1000, 20));
  }
  const Imported one = imported(texts);
  CHECK(one.refused.empty());
  CHECK(one.programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0});
  const std::vector<Communication> calls = communications(one.programs.programs[0]);
  REQUIRE(calls.size() == 3);
  CHECK((calls[0].kind == Kind::all_reduce && calls[0].bytes == 4000));
  CHECK((calls[1].kind == Kind::all_gather && calls[1].bytes == 2000));
  CHECK((calls[2].kind == Kind::reduce_scatter && calls[2].bytes == 2000));
  CHECK(one.dependencies == Dependencies{4, 0, 0});
  CHECK(account(one).find("6 operations of 2 ranks in 1 communicators, which took 0.060 ms on each on average") !=
        std::string::npos);  // (60 + 61) / 2 us
  const Time sum = alone("all_reduce", 4000, "[0,1]", 2) + alone("all_gather", 2000, "[0,1]", 2) +
                   alone("reduce_scatter", 2000, "[0,1]", 2);
  CHECK(step_of(one.programs).step_ps == sum);
}

TEST_CASE("ranks are those of the communicator that has them all") {
  std::string log;
  for (int process = 0; process < 4; ++process) {
    log += logged({"pair", process / 2, 2, process}, "AllReduce", 1, process % 2 == 0 ? 100 : 200, 5);
    log += logged({process % 2 == 0 ? "even" : "odd", process / 2, 2, process}, "AllReduce", 1, 100, 5);
  }
  // "pair" would be of four processes with two ranks: no two may have one rank.
  CHECK(error_of([&] { imported({log}); }).find("has rank 0 of communicator pair twice") != std::string::npos);
  log.clear();
  for (int process = 0; process < 4; ++process) {
    log += logged({process % 2 == 0 ? "even" : "odd", process / 2, 2, process}, "AllReduce", 1, 100, 5);
    log += logged({"all", 3 - process, 4, process}, "AllReduce", 1, 100, 5);
  }
  const Imported one = imported({log});
  std::vector<std::vector<std::uint32_t>> groups;
  for (const core::workload::GivenGroup& group : one.programs.ranks.groups) groups.push_back(group.ranks);
  std::sort(groups.begin(), groups.end());
  CHECK(groups == std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}, {2, 0}, {3, 1}});
  CHECK(one.programs.notes.back() == "Communicators do not wait for each other, as the log is not verbose.");
}

TEST_CASE("verbose logs have the order of calls of different communicators") {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    const Of a{"a", rank, 2, rank}, b{"b", rank, 2, rank};
    texts.push_back(logged(a, "AllReduce", 1, 100, 5, 1000) + logged(a, "AllReduce", 2, 300, 5, 3000) +
                    logged(b, "AllReduce", 1, 200, 5, 2000));
  }
  const Imported one = imported(texts);
  std::vector<std::int64_t> bytes;
  for (const Communication& call : communications(one.programs.programs[0])) bytes.push_back(call.bytes);
  CHECK(bytes == std::vector<std::int64_t>{100, 200, 300});
  CHECK(one.dependencies == Dependencies{2, 4, 0});  // a's second after its first; a, b, a: of each rank
}

TEST_CASE("transfers meet in their order, each direction on a stream of its own") {
  const Of zero{"a", 0, 2, 0}, one{"a", 1, 2, 1};
  const Imported both = imported({logged_transfer(zero, "Send", 1, 1, 500) + logged_transfer(zero, "Recv", 2, 1, 700),
                                  logged_transfer(one, "Send", 1, 0, 700) + logged_transfer(one, "Recv", 2, 0, 500)});
  CHECK(both.refused.empty());
  CHECK(communications(both.programs.programs[0]).size() == 2);
  CHECK(step_of(both.programs).step_ps > 0);
  const Imported odd = imported({logged_transfer(zero, "Send", 1, 1, 500) + logged(zero, "AllReduce", 1, 100, 5),
                                 logged(one, "AllReduce", 1, 100, 5)});
  CHECK(account(odd).find("1 operations are not in the logs of all their ranks") != std::string::npos);
  CHECK(account(odd).find("sends do not match receives from rank 0 to 1 of communicator a") != std::string::npos);
}

TEST_CASE("what logs lack or contradict is told") {
  const Of zero{"a", 0, 2, 0}, one{"a", 1, 2, 1};
  CHECK(imported({logged(zero, "AllReduce", 1, 100, 5)}).refused ==
        "communicator a has 2 ranks, 1 of which are in no log: give the logs of all processes");
  CHECK(
      imported({logged(zero, "AllReduce", 1, 100, 5), logged(one, "AllReduce", 1, 200, 5)})
          .refused.find("collective 1 of communicator a is AllReduce of 100 bytes on its rank 0, and AllReduce of 200 "
                        "on rank 1") == 0);
  CHECK(imported({logged(zero, "Strange", 1, 100, 5), logged(one, "Strange", 1, 100, 5)}).refused ==
        "has operations that are not simulated: Strange");
  const Imported some = imported({logged(zero, "AllReduce", 1, 100, 5) + logged(zero, "AllReduce", 2, 100, 5),
                                  logged(one, "AllReduce", 2, 100, 5)});
  CHECK(communications(some.programs.programs[0]).size() == 1);
  CHECK(account(some).find("1 operations are not in the logs of all their ranks, and left out") != std::string::npos);
}

TEST_CASE("a process with several GPUs is told apart by its only communicator") {
  std::string log;
  for (int rank = 0; rank < 4; ++rank) log += logged({"a", rank, 4, 77}, "AllReduce", 1, 1000, 5);
  CHECK(imported({log}).programs.ranks.program_of_rank.size() == 4);
  CHECK(error_of([&] {
          imported({log + logged({"b", 0, 2, 77}, "AllReduce", 1, 8, 5)});
        }).find("several GPUs in several communicators") != std::string::npos);
}

TEST_CASE("what is no log of the Inspector is refused with its line") {
  const std::string whole = logged({"a", 0, 2, 0}, "AllReduce", 1, 100, 5);
  CHECK(error_of([&] { imported({whole + whole.substr(0, 50)}); }).find("log0:2: ") == 0);
  CHECK(error_of([&] { imported({"{\"coll_perf\": {\"coll\": \"AllReduce\"}}"}); }).find("log0:1: ") == 0);
  CHECK(error_of([&] { imported({"{}"}); }) ==
        "log0: has no operation ('coll_perf' or 'p2p_perf') of NCCL's Inspector");
}

// Records of captured programs: CUDA's rules of streams, events and the host's waits, collectives over ranks, and which
// part is a step. What is expected was worked out by hand.
#include <random>

#include "experiments/captured/periods.hpp"
#include "tests/experiments/captured_records.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::captured;

namespace {

using Lines = std::vector<std::string>;

/// The plain search: every period, every stretch.
std::optional<Repetition> plainly(const std::vector<std::uint64_t>& forms, const std::vector<bool>& work,
                                  const std::vector<bool>& communication) {
  std::optional<Repetition> best;
  std::pair<bool, std::int64_t> most{false, 0};
  const auto size = static_cast<std::uint32_t>(forms.size());
  for (std::uint32_t period = 1; period < size; ++period)
    for (std::uint32_t i = 0; i + period < size; ++i) {
      if (forms[i] != forms[i + period] || (i > 0 && forms[i - 1] == forms[i - 1 + period])) continue;
      std::uint32_t end = i + period;
      while (end < size && forms[end - period] == forms[end]) ++end;
      if (end - i < 2 * period) continue;
      const std::int64_t works = std::count(work.begin() + i, work.begin() + end, true);
      const auto first = communication.begin() + i;
      const std::pair found(std::count(first, first + period, true) > 0, works);
      if (works > 0 && found > most) best = Repetition{i, end, period}, most = found;
    }
  return best;
}

}  // namespace

TEST_CASE("the legacy default stream waits for blocking streams, and they for it") {
  const auto read = import_records({RecordText()
                                        .create()
                                        .create(false)
                                        .launch("a", 2)
                                        .launch("b", 3)
                                        .launch("c", 0)
                                        .launch("d", 2)
                                        .launch("e", 3)
                                        .launch("f", 0)});
  CHECK(operations(read) == Lines{"a on stream 2", "b on stream 3", "c on default stream, after 0",
                                  "d on stream 2, after 2", "e on stream 3", "f on default stream, after 3"});
}

TEST_CASE("each thread has a default stream of its own, which the legacy one waits for") {
  const auto read = import_records(
      {RecordText().launch("a", 1).thread(1).launch("b", 1).thread(0).launch("c", 1).launch("d", 0).thread(1).launch(
          "e", 1)});
  CHECK(operations(read) == Lines{"a on default stream of thread 0", "b on default stream of thread 1",
                                  "c on default stream of thread 0", "d on default stream, after 1 2",
                                  "e on default stream of thread 1, after 3"});
  CHECK(has_line(read.programs.notes, "Threads of a process do not wait for each other"));
}

TEST_CASE("an event is what its stream had at its last record") {
  const auto read = import_records({RecordText()
                                        .create()
                                        .create()
                                        .create()
                                        .wait(3, 7)  // never recorded: no wait
                                        .launch("a", 2)
                                        .record(7, 2)
                                        .launch("b", 2)
                                        .wait(3, 7)
                                        .launch("c", 3)
                                        .record(7, 2)
                                        .launch("d", 3)
                                        .wait(3, 7)
                                        .launch("e", 3)
                                        .record(8, 3)
                                        .wait(4, 8)
                                        .wait(4, 7)  // the other event's stream had waited for it
                                        .launch("f", 4)});
  CHECK(operations(read) == Lines{"a on stream 2", "b on stream 2", "c on stream 3, after 0", "d on stream 3",
                                  "e on stream 3, after 1", "f on stream 4, after 4"});
}

TEST_CASE("an event of the legacy default stream comes after all blocking streams") {
  const auto read =
      import_records({RecordText().create().create(false).launch("a", 2).record(1, 0).wait(3, 1).launch("b", 3)});
  CHECK(operations(read) == Lines{"a on stream 2", "b on stream 3, after 0"});
}

TEST_CASE("what a thread issues after a wait comes after what it waited for") {
  const auto after = [](const std::function<void(RecordText&)>& wait) {
    RecordText text;
    text.create(false).create(false).launch("a", 2).record(1, 2).launch("b", 2);
    wait(text);
    text.launch("c", 3);
    return operations(import_records({text})).back();
  };
  const Lines names{"c on stream 3", "c on stream 3, after 0", "c on stream 3, after 1"};
  CHECK(after([](RecordText&) {}) == names[0]);
  CHECK(after([](RecordText& text) { text.call("cudaStreamSynchronize", R"("stream":2)"); }) == names[2]);
  CHECK(after([](RecordText& text) { text.call("cudaEventSynchronize", R"("event":1)"); }) == names[1]);
  CHECK(after([](RecordText& text) { text.call("cudaEventSynchronize", R"("event":9)"); }) == names[0]);
  CHECK(after([](RecordText& text) { text.call("cudaDeviceSynchronize", R"("device":0)"); }) == names[2]);
  CHECK(after([](RecordText& text) { text.call("cudaStreamQuery", R"("stream":2)"); }) == names[0]);
  CHECK(after([](RecordText& text) {  // of another thread
          text.thread(1).call("cudaDeviceSynchronize", R"("device":0)").thread(0);
        }) == names[0]);
  CHECK(after([](RecordText& text) { text.call("cudaFree", R"("pointer":[9,0],"bytes":4)"); }) == names[2]);
}

TEST_CASE("the host waits for copies as CUDA's table of synchronization says") {
  const auto last = [](const std::string& name, const std::string& direction, const std::string& to) {
    RecordText text;
    text.create(false).create(false).copy(name, direction, 2, to).launch("a", 3);
    return operations(import_records({text})).back();
  };
  CHECK(last("cudaMemcpy", "device_to_host", "\"host\"") == "a on stream 3, after 0");
  CHECK(last("cudaMemcpy", "host_to_device", "[1,0]") == "a on stream 3, after 0");
  CHECK(last("cudaMemcpy", "device_to_device", "[1,0]") == "a on stream 3");
  CHECK(last("cudaMemcpyAsync", "device_to_host", "\"host\"") ==
        "a on stream 3, after 0");  // memory that is not pinned
  CHECK(last("cudaMemcpyAsync", "device_to_host", "[2,0]") == "a on stream 3");
  CHECK(last("cudaMemcpyAsync", "host_to_device", "[1,0]") == "a on stream 3");
}

TEST_CASE("memory that a program frees is waited for, and its peak is that of the record") {
  const auto read =
      import_records({RecordText()
                          .create(false)
                          .create(false)
                          .call("cudaMalloc", R"("bytes":1000,"allocation":1,"counted_bytes":1024,"device":0)")
                          .launch("a", 2)
                          .call("cudaMalloc", R"("bytes":512,"allocation":2,"device":0)")
                          .call("cudaFree", R"("pointer":[1,0],"bytes":1000)")
                          .launch("b", 3)
                          .call("cudaMalloc", R"("bytes":2048,"allocation":3,"device":0)")});
  CHECK(operations(read) == Lines{"a on stream 2", "b on stream 3, after 0"});
  const std::vector<programs::Allocation> expected{{0, 1024}, {1, 512}, {1, -1024}, {2, 2048}};
  CHECK(read.programs.programs[0].allocations == expected);
}

TEST_CASE("calls take time of their threads where that is asked for") {
  ReadOptions options = all_of_it();
  options.host_us = 5;
  const auto read = import_records(
      {RecordText().create(false).launch("a", 2).call("cudaStreamSynchronize", R"("stream":2)").launch("b", 2)},
      options);
  CHECK(operations(read) == Lines{"a on thread 0", "a on stream 2, after 0",
                                  "cudaStreamSynchronize on thread 0, after 1", "b on thread 0",
                                  "b on stream 2, after 3"});
  const programs::StreamOp& first = read.programs.programs[0].ops[0];
  CHECK(std::get<programs::HostWork>(first.work).us == 5);
}

TEST_CASE("the launch of a graph is what was captured of its streams") {
  RecordText text;
  text.create(false).create(false).create(false).call("cudaStreamBeginCapture", R"("stream":2,"graph":0)");
  text.launch("a", 2).record(1, 2).launch("b", 2).wait(3, 1).launch("c", 3).record(2, 3).wait(2, 2).launch("d", 2);
  text.call("cudaStreamEndCapture", R"("stream":2,"graph":0)").call("cudaGraphInstantiate", R"("graph":0)");
  text.launch("x", 4).launch("y", 3);
  for (int launch = 0; launch < 2; ++launch) text.call("cudaGraphLaunch", R"("graph":0,"stream":4)");
  text.launch("z", 4);
  const auto read = import_records({text});
  CHECK(operations(read) == Lines{"x on stream 4", "y on stream 3", "a on stream 4", "b on stream 4",
                                  "c on stream 3 in graphs, after 2", "d on stream 4, after 4", "a on stream 4",
                                  "b on stream 4", "c on stream 3 in graphs, after 6", "d on stream 4, after 8",
                                  "z on stream 4"});
  ReadOptions with_host = all_of_it();
  with_host.host_us = 2;
  const Lines hosts = operations(import_records({text}, with_host));
  CHECK(std::count(hosts.begin(), hosts.end(), "cudaGraphLaunch on thread 0") == 2);
  CHECK(std::count(hosts.begin(), hosts.end(), "a on thread 0") == 0);
  CHECK(error({RecordText().create().call("cudaGraphLaunch", R"("graph":0,"stream":2)")}) ==
        "rank0.jsonl:3: graph 0 was not captured before");
  CHECK(error({RecordText().create().call("cudaStreamEndCapture", R"("stream":2,"graph":0)")}) ==
        "rank0.jsonl:3: the capture of graph 0 has not begun");
}

TEST_CASE("a step may be the launch of a graph, with its collectives") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 2; ++rank) {
    texts.push_back(RecordText(rank, 2).create().open("k", 2, rank));
    texts.back().call("cudaStreamBeginCapture", R"("stream":2,"graph":0)");
    texts.back().launch("a", 2).communicate("ncclAllReduce", 0, 16, 2);
    texts.back().communicate("ncclSend", 0, 16, 2, fmt::format(R"("to":{},"group":0)", 1 - rank));
    texts.back().communicate("ncclRecv", 0, 16, 2, fmt::format(R"("from":{},"group":0)", 1 - rank));
    texts.back().call("cudaStreamEndCapture", R"("stream":2,"graph":0)");
    for (int step = 0; step < 3; ++step)
      texts.back().call("cudaGraphLaunch", R"("graph":0,"stream":2)").call("cudaStreamSynchronize", R"("stream":2)");
  }
  const auto read = import_records(texts, ReadOptions());
  CHECK(operations(read) == Lines{"a on stream 2", "ncclAllReduce on stream 2", "ncclSend on stream 2",
                                  "ncclRecv on stream 2, lane 1, after 1"});
  CHECK(has_line(read.account, "the last of 3 periods"));
}

TEST_CASE("transfers of a group run side by side, and the stream goes on after all") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 2; ++rank)
    texts.push_back(RecordText(rank, 2)
                        .create()
                        .open("k", 2, rank)
                        .launch("a", 2)
                        .communicate("ncclSend", 0, 16, 2, fmt::format(R"("to":{},"group":0)", 1 - rank))
                        .communicate("ncclRecv", 0, 16, 2, fmt::format(R"("from":{},"group":0)", 1 - rank))
                        .launch("b", 2));
  const auto read = import_records(texts, all_of_it(), "kernels: [{kernel: '*', bytes: 1000}]\n");
  CHECK(operations(read) == Lines{"a on stream 2", "ncclSend on stream 2", "ncclRecv on stream 2, lane 1, after 0",
                                  "b on stream 2, after 2"});
  CHECK(read.programs.programs.size() == 1);
  CHECK(read.programs.ranks.groups.size() == 2);  // pairs (0, 1) and (1, 0)
  CHECK(step_of(read.programs).step_ps > 0);      // one after the other, each would wait for the other's receive
}

TEST_CASE("communicators over four ranks become dimensions, and bytes are those of the kind") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 4; ++rank)
    texts.push_back(RecordText(rank, 4)
                        .create()
                        .open(fmt::format("row {}", rank / 2), 2, rank % 2)
                        .open(fmt::format("column {}", rank % 2), 2, rank / 2)
                        .open("all", 4, rank)
                        .open(fmt::format("alone {}", rank), 1, 0)
                        .communicate("ncclAllReduce", 0, 100, 2)
                        .communicate("ncclAllGather", 0, 100, 2, "")
                        .communicate("ncclReduceScatter", 1, 100, 2)
                        .communicate("ncclBroadcast", 2, 100, 2, R"("root":3)")
                        .communicate("ncclReduce", 2, 100, 2, R"("reduction":"sum","root":0)")
                        .communicate("ncclAllReduce", 3, 100, 2));
  const auto read = import_records(texts);
  const programs::StreamPrograms& all = read.programs;
  REQUIRE(all.programs.size() == 1);
  CHECK(all.ranks.program_of_rank == std::vector<std::uint32_t>(4, 0));
  REQUIRE(all.ranks.dimensions.size() == 3);
  std::vector<std::vector<std::uint32_t>> groups;
  for (const auto& group : all.ranks.groups) groups.push_back(group.ranks);
  CHECK(groups == std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1, 2, 3}});
  std::vector<std::int64_t> bytes;
  for (const programs::StreamOp& op : all.programs[0].ops)
    bytes.push_back(std::get<programs::Communication>(op.work).bytes);
  CHECK(bytes == std::vector<std::int64_t>{400, 800, 800, 400, 400});
  const auto& broadcast = std::get<programs::Communication>(all.programs[0].ops[3].work);
  CHECK(broadcast.split.bytes == std::vector<std::int64_t>{0, 0, 0, 400});
  CHECK(has_line(read.account, "4 collectives are left out, as their communicators have one rank"));
}

TEST_CASE("collectives of a communicator run one after the other on any streams") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 2; ++rank)
    texts.push_back(RecordText(rank, 2)
                        .create(false)
                        .create(false)
                        .open("k", 2, rank)
                        .communicate("ncclAllReduce", 0, 100, 2)
                        .communicate("ncclAllReduce", 0, 100, 3));
  CHECK(operations(import_records(texts)) == Lines{"ncclAllReduce on stream 2", "ncclAllReduce on stream 3, after 0"});
}

TEST_CASE("ranks that do not call the same are named with both lines") {
  const auto two = [](const std::function<void(RecordText&)>& first, const std::function<void(RecordText&)>& second) {
    std::vector<RecordText> texts;
    for (int rank = 0; rank < 2; ++rank) {
      texts.push_back(RecordText(rank, 2).create().open("k", 2, rank).communicate("ncclAllReduce", 0, 8, 2));
      (rank == 0 ? first : second)(texts.back());
    }
    return error(texts);
  };
  const auto sums = [](int count) {
    return [count](RecordText& text) { text.communicate("ncclAllReduce", 0, count, 2); };
  };
  CHECK(two(sums(8), sums(9)) ==
        "rank1.jsonl:5: rank 1's ncclAllReduce of 9 fp32 (sum) is number 2 in communicator 'k', where rank 0 has "
        "ncclAllReduce of 8 fp32 (sum) (rank0.jsonl:5): all of its ranks must call the same");
  CHECK(two(sums(8), [](RecordText& text) {
          text.communicate("ncclAllGather", 0, 8, 2, "");
        }).find("rank1.jsonl:5: ") == 0);
  CHECK(two(sums(8), [](RecordText& text) {
          text.communicate("ncclAllReduce", 0, 8, 2, R"("reduction":"max")");
        }).find("(max) is number 2") != std::string::npos);
  CHECK(two(sums(8), [](RecordText&) {}) ==
        "rank0.jsonl:5: rank 0's ncclAllReduce of 8 fp32 (sum) is number 2 in communicator 'k', in which rank 1 has 1 "
        "(rank1.jsonl): all of its ranks must call the same");
  const auto send = [](RecordText& text) { text.communicate("ncclSend", 0, 8, 2, R"("to":1)"); };
  CHECK(two(send, [](RecordText&) {}) ==
        "rank0.jsonl:5: rank 0's ncclSend of 8 fp32 is number 1 to rank 1 in communicator 'k', and rank 1 receives 0 "
        "(rank1.jsonl)");
  CHECK(two(send, [](RecordText& text) { text.communicate("ncclRecv", 0, 4, 2, R"("from":0)"); }) ==
        "rank0.jsonl:5: rank 0's ncclSend of 8 fp32 is number 1 from rank 0 to rank 1 in communicator 'k', and that "
        "which "
        "receives it is ncclRecv of 4 fp32 (rank1.jsonl:5): both must have one size");
  CHECK(error({RecordText(0, 2).open("k", 2, 0).launch("a", 0), RecordText(1, 2).launch("a", 0)}) ==
        "rank0.jsonl:2: communicator 'k' has 2 ranks, and no rank of the job opens it as its rank 1");
  CHECK(error({RecordText(0, 2).open("k", 2, 0), RecordText(1, 2).open("k", 2, 0)})
            .find("rank1.jsonl:2: rank 0 of communicator 'k' is rank 0 of the job, and rank 1 too") == 0);
}

TEST_CASE("the repetition with the most work is that which a plain search finds, in 3,000 drawn sequences") {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 3'000; ++trial) {
    std::vector<std::uint64_t> forms(random() % 40);
    const std::uint64_t letters = 1 + random() % 4;
    for (std::uint64_t& form : forms) form = random() % letters;
    if (forms.size() > 6 && random() % 2 == 0)  // some with a long period
      for (std::size_t i = 5; i < forms.size(); ++i) forms[i] = random() % 16 == 0 ? 9 : forms[i - 5];
    std::vector<bool> work(forms.size()), communication(forms.size());
    for (std::size_t i = 0; i < work.size(); ++i) work[i] = random() % 3 > 0;
    for (std::size_t i = 0; i < work.size(); ++i) communication[i] = trial % 3 > 0 && forms[i] == 1;
    const auto expected = plainly(forms, work, communication), found = find_repetition(forms, work, communication);
    INFO("trial " << trial);
    REQUIRE(expected.has_value() == found.has_value());
    if (expected) REQUIRE(*expected == *found);
  }
}

TEST_CASE("the step is the last whole period of what repeats") {
  RecordText text;
  text.create().launch("prepare", 2).call("cudaDeviceSynchronize", R"("device":0)");
  for (int step = 0; step < 3; ++step) {
    text.call("cudaMemGetInfo", R"("free_bytes":1)");
    for (int layer = 0; layer < 4; ++layer) text.launch("layer", 2, 10 + step);  // grids follow data
    text.record(step, 2).launch("update", 2, 1, fmt::format("[{}]", step));
    text.call("cudaDeviceSynchronize", R"("device":0)");
  }
  text.launch("sample", 2);
  ReadOptions options;
  const auto read = import_records({text}, options);
  CHECK(operations(read) == Lines{"layer on stream 2", "layer on stream 2", "layer on stream 2", "layer on stream 2",
                                  "update on stream 2"});
  // Lines 2 to 4 come first, then 8 a step, of which the query is none.
  CHECK(has_line(read.account,
                 "the step of rank 0: lines 22 to 28, the last of 3 periods of what repeats; 17 calls before, "
                 "1 after"));
  options.steps = parse_step_choice("all");
  CHECK(import_records({text}, options).programs.programs[0].ops.size() == 17);
  options.steps = parse_step_choice("3-13");
  CHECK(import_records({text}, options).programs.programs[0].ops.size() == 6);
  options.steps = parse_step_choice("900-901");
  CHECK(error({text}, options).find("rank0.jsonl: gives a device no work in lines 900 to 901") == 0);
  options.steps = parse_step_choice("profiled");
  CHECK(error({text}, options).find("rank0.jsonl: has no cudaProfilerStart") == 0);
  CHECK(error_of([] { parse_step_choice("7-3"); }).find("must be last, all, profiled") == 0);
}

TEST_CASE("copies and sets are the work of a record that has no other") {
  RecordText text;
  text.create();
  for (int step = 0; step < 3; ++step)
    text.copy("cudaMemcpyAsync", "host_to_device", 2)
        .copy("cudaMemcpyAsync", "device_to_host", 2)
        .call("cudaDeviceSynchronize", R"("device":0)");
  ReadOptions options;
  CHECK(import_records({text}, options).programs.programs[0].ops.size() == 2);
  for (const auto& [steps, copies] : {std::pair("all", std::size_t{6}), {"3-4", 2}, {"4-4", 1}}) {
    options.steps = parse_step_choice(steps);
    CHECK(import_records({text}, options).programs.programs[0].ops.size() == copies);
  }
  RecordText idle;
  idle.create().call("cudaDeviceSynchronize", R"("device":0)");
  for (const char* steps : {"last", "all"}) {
    options.steps = parse_step_choice(steps);
    CHECK(error({idle}, options) == "rank0.jsonl: gives a device no work");
  }
}

TEST_CASE("an evaluation with more work than training is not the step where ranks communicate") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 2; ++rank) {
    RecordText& text = texts.emplace_back(rank, 2).create().open("k", 2, rank);
    for (int batch = 0; batch < 20; ++batch) text.launch("forward", 2).call("cudaDeviceSynchronize", R"("device":0)");
    for (int step = 0; step < 2; ++step)
      text.launch("backward", 2).communicate("ncclAllReduce", 0, 8, 2).call("cudaDeviceSynchronize", R"("device":0)");
  }
  CHECK(operations(import_records(texts, ReadOptions())) == Lines{"backward on stream 2", "ncclAllReduce on stream 2"});
}

TEST_CASE("what the profiler was told to look at is a step") {
  ReadOptions options;
  options.steps = parse_step_choice("profiled");
  const auto read = import_records({RecordText()
                                        .launch("a", 0)
                                        .call("cudaProfilerStart")
                                        .launch("b", 0)
                                        .launch("c", 0)
                                        .call("cudaProfilerStop")
                                        .launch("d", 0)},
                                   options);
  CHECK(operations(read) == Lines{"b on default stream", "c on default stream"});
}

TEST_CASE("ranks that begin and end otherwise have one step") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 2; ++rank) {
    texts.push_back(RecordText(rank, 2).create().open("k", 2, rank));
    if (rank == 0) texts.back().launch("print", 2);
    for (int step = 0; step < 3; ++step)
      texts.back().launch("forward", 2).communicate("ncclAllReduce", 0, 64, 2).launch("update", 2);
    if (rank == 0) texts.back().launch("forward", 2).launch("sample", 2);  // the first of which a step could begin with
  }
  const auto read = import_records(texts, ReadOptions());
  CHECK(read.programs.programs.size() == 1);
  CHECK(operations(read) == Lines{"forward on stream 2", "ncclAllReduce on stream 2", "update on stream 2"});
}

TEST_CASE("ranks without records are refused, or do what another does") {
  const RecordText text = RecordText(0, 4).create().open("all", 4, 0).communicate("ncclAllReduce", 0, 64, 2);
  CHECK(error({text}).find("job: ranks 1-3 of 4 have no record: capture them, or say by --alike") == 0);
  ReadOptions options = all_of_it();
  options.alike = true;
  const auto read = import_records({text}, options);
  CHECK(read.programs.ranks.program_of_rank == std::vector<std::uint32_t>(4, 0));
  REQUIRE(read.programs.ranks.groups.size() == 1);
  CHECK(read.programs.ranks.groups[0].ranks == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(has_line(read.programs.notes, "1 ranks of 4 have records"));

  RecordText pairs = text;
  pairs.open("pair", 2, 0).communicate("ncclAllReduce", 1, 64, 2);
  CHECK(error({pairs}, options)
            .find("rank0.jsonl:5: communicator 1 ('pair') has 2 of 4 ranks, and not all ranks have "
                  "records: name its groups by --groups FILE") == 0);
  options.groups_path = "groups.json";
  const auto grouped = import_records({pairs}, options, "kernels: []\n", R"({"1": [[0, 2], [1, 3]]})");
  REQUIRE(grouped.programs.ranks.groups.size() == 3);
  CHECK(grouped.programs.ranks.groups[1].ranks == std::vector<std::uint32_t>{0, 2});
  CHECK(grouped.programs.programs.size() == 1);
  CHECK(error({pairs}, options, "kernels: []\n", R"({"1": [[2, 0], [1, 3]]})")
            .find("rank0.jsonl:5: rank 0 has number 0") == 0);
  CHECK(error({pairs}, options, "kernels: []\n", R"({"1": [[0, 2], [0, 3]]})")
            .find("groups.json:1: rank 0 stands twice") == 0);
  CHECK(error({pairs}, options, "kernels: []\n", R"({"1": [[0, 2]]})") ==
        "groups.json: communicator 1 has no group with rank 1");
}

TEST_CASE("a rank that another stands for has peers as far away") {
  const RecordText text = RecordText(0, 4)
                              .create()
                              .open("all", 4, 0)
                              .communicate("ncclSend", 0, 8, 2, R"("to":1,"group":0)")
                              .communicate("ncclRecv", 0, 8, 2, R"("from":3,"group":0)");
  ReadOptions options = all_of_it();
  options.alike = true;
  const auto read = import_records({text}, options);
  std::vector<std::vector<std::uint32_t>> pairs;
  for (const auto& group : read.programs.ranks.groups) pairs.push_back(group.ranks);
  CHECK(pairs == std::vector<std::vector<std::uint32_t>>{{0, 1}, {1, 2}, {2, 3}, {3, 0}});
}

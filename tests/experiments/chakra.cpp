// Traces of Chakra: what is read is what ASTRA-sim would run, and what is written is read again.
#include "experiments/chakra/read_traces.hpp"

#include <filesystem>
#include <fstream>
#include <set>

#include "core/step/layout/as_given.hpp"
#include "experiments/chakra/trace.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/chakra/write_traces.hpp"
#include "experiments/programs/program_file.hpp"
#include "experiments/simai/workload.hpp"
#include "experiments/text/text.hpp"
#include "experiments/traces/read_any.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::chakra;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/chakra/";

Attribute whole(std::string name, std::int64_t value) {
  return Attribute::of(std::move(name), Attribute::kInt64, static_cast<std::uint64_t>(value));
}

TraceNode node(std::uint64_t id, NodeType type, std::uint64_t us, std::vector<std::uint64_t> after = {},
               std::vector<Attribute> attributes = {}) {
  TraceNode node;
  node.id = id;
  node.name = "node";
  node.type = static_cast<std::uint32_t>(type);
  node.duration_us = us;
  node.data_deps = std::move(after);
  node.attributes = std::move(attributes);
  return node;
}

TraceNode in_group(std::uint64_t id, CommType type, std::int64_t bytes, const std::string& group = "",
                   std::vector<std::uint64_t> after = {}) {
  TraceNode one = node(id, NodeType::comm_coll, 0, std::move(after),
                       {whole("comm_type", static_cast<std::int64_t>(type)), whole("comm_size", bytes)});
  if (!group.empty()) one.attributes.push_back(Attribute::of_text("pg_name", group));
  return one;
}

TraceNode transfer(std::uint64_t id, bool receives, std::int64_t peer, std::int64_t tag) {
  return node(id, receives ? NodeType::comm_recv : NodeType::comm_send, 0, {},
              {whole(receives ? "comm_src" : "comm_dst", peer), whole("comm_tag", tag), whole("comm_size", 4096)});
}

std::vector<TraceFile> files_of(const std::vector<std::vector<TraceNode>>& ranks) {
  std::vector<TraceFile> files;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    files.push_back({fmt::format("t.{}.et", rank), trace_bytes({"0.0.4", {}, ranks[rank]})});
  return files;
}

Time step_of(const std::vector<std::vector<TraceNode>>& ranks, const std::string& groups = "",
             const TraceOptions& options = {}) {
  return tests::step_of(import_traces(files_of(ranks), groups, "t", options).programs).step_ps;
}

}  // namespace

TEST_CASE("a trace of ASTRA-sim is read as it stands, and written byte by byte the same") {
  const std::string bytes = import::read_text(kFolder + "all_reduce.1.et");
  const Trace trace = parse_trace(bytes, "all_reduce.1.et");
  CHECK(trace.version == "0.0.4");
  REQUIRE(trace.nodes.size() == 1);
  CHECK(trace.nodes[0].id == 1);
  CHECK(trace.nodes[0].name == "all_reduce_4npus_1MB");
  CHECK(trace.nodes[0].type == static_cast<std::uint32_t>(NodeType::comm_coll));
  CHECK(trace.nodes[0].attributes == std::vector<Attribute>{Attribute::of("is_cpu_op", Attribute::kBool, 0),
                                                            whole("comm_type", 0), whole("comm_size", 1 << 20)});
  CHECK(trace_bytes(trace) == bytes);
}

TEST_CASE("numbers of every type of attribute are read") {
  // name "a", then a field of each type with the value -2 or 2.
  const auto value = [](const std::string& field) {
    const std::string attribute = std::string(
                                      "\x0a\x01"
                                      "a",
                                      3) +
                                  field;
    std::string node = "\x52";
    node += static_cast<char>(attribute.size());
    node += attribute;
    const std::string file = std::string("\x00", 1) + static_cast<char>(node.size()) + node;
    return parse_trace(file, "t").nodes.at(0).attributes.at(0);
  };
  const std::string minus_two = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  CHECK(value("\x38" + minus_two).integer() == -2);                                          // int32
  CHECK(value("\x48" + minus_two).integer() == -2);                                          // int64
  CHECK(value("\x58\x02").integer() == 2);                                                   // uint32
  CHECK(value("\x68\x02").integer() == 2);                                                   // uint64
  CHECK(value("\x78\x03").integer() == -2);                                                  // sint32, zigzag
  CHECK(value("\x88\x01\x03").integer() == -2);                                              // sint64
  CHECK(value(std::string("\x9d\x01\x02\x00\x00\x00", 6)).integer() == 2);                   // fixed32
  CHECK(value(std::string("\xa9\x01\x02\x00\x00\x00\x00\x00\x00\x00", 10)).integer() == 2);  // fixed64
  CHECK(value("\xd8\x01\x01").integer() == 1);                                               // bool
  CHECK(value(std::string("\x19\x00\x00\x00\x00\x00\x00\x00\xc0", 9)).real() == -2.0);       // double
  CHECK(value(std::string("\x2d\x00\x00\x00\xc0", 5)).real() == -2.0);                       // float
  CHECK(value("\xea\x01\x02hi").text() == "hi");
  CHECK(!value("\xea\x01\x02hi").integer());
}

TEST_CASE("ASTRA-sim's microbenchmark is its all-reduce, of one program for all ranks") {
  const programs::Imported imported = read_traces(kFolder + "all_reduce");
  CHECK(imported.programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0, 0, 0});
  CHECK(tests::step_of(imported.programs).step_ps == alone("all_reduce", 1 << 20, "[0,1,2,3]", 4));
}

TEST_CASE("traces are found by their prefix, their first one or all, and none may be missing") {
  const TemporaryFolder folder;
  const std::string prefix = (folder / "job").string();
  const auto trace = [&](std::uint32_t rank) { return path_of(prefix, rank); };
  for (std::uint32_t rank = 0; rank < 11; ++rank) std::filesystem::copy_file(kFolder + "all_reduce.0.et", trace(rank));
  std::ofstream(prefix + "s.99.et").put('x'), std::ofstream(prefix + ".011.et").put('x');  // of no rank of this job
  CHECK(count_traces(prefix) == 11);
  CHECK(prefix_of({prefix}) == prefix);
  CHECK(prefix_of({trace(0)}) == prefix);
  std::vector<std::string> all;
  for (const std::uint32_t rank : {0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9})
    all.push_back(trace(rank));  // as shells sort them
  CHECK(prefix_of(all) == prefix);
  const auto refused = [](const std::vector<std::string>& paths) { return error_of([&] { prefix_of(paths); }); };
  CHECK(refused({trace(3)}) == trace(3) + ": is one of 11 traces: give their prefix, " + prefix);
  CHECK(refused({trace(0), trace(2)}) == trace(0) + ": is one of 11 traces: give their prefix, " + prefix);
  CHECK(refused({trace(0), trace(11)}) == trace(11) + ": is not there; " + prefix + " has traces of 11 ranks");
  CHECK(refused({trace(0), kFolder + "all_reduce.1.et"}) ==
        kFolder + "all_reduce.1.et: is no trace of " + prefix + ", as " + trace(0) + " is");
  CHECK(refused({trace(0), "a.json"}) == "a.json: is named as no trace of Chakra is: PREFIX.0.et, PREFIX.1.et, ...");
  std::filesystem::remove(trace(2)), std::filesystem::remove(trace(3)), std::filesystem::remove(trace(7));
  const std::string missing =
      prefix + ": has no trace " + trace(2) + ", but " + trace(4) + ": one of each rank must be there";
  CHECK(error_of([&] { count_traces(prefix); }) == missing);
  CHECK(error_of([&] { read_traces(prefix); }) == missing);
  CHECK(refused({trace(0)}) == missing);
}

TEST_CASE("collectives have the bytes that ASTRA-sim means, in the groups that are named") {
  const std::string groups = "{\"1\": [0, 1], \"2\": [2, 3], \"3\": [0, 1, 2, 3]}";
  const auto time_of = [&](CommType type, const std::string& first, const std::string& second) {
    const std::vector<TraceNode> low{in_group(1, type, 65536, first)}, high{in_group(1, type, 65536, second)};
    return step_of({low, low, high, high}, groups);
  };
  CHECK(time_of(CommType::all_reduce, "1", "2") == alone("all_reduce", 65536, "[0,1],[2,3]", 4));
  CHECK(time_of(CommType::all_gather, "1", "2") == alone("all_gather", 2 * 65536, "[0,1],[2,3]", 4));
  CHECK(time_of(CommType::all_gather, "3", "3") == alone("all_gather", 4 * 65536, "[0,1,2,3]", 4));
  CHECK(time_of(CommType::reduce_scatter, "0", "0") == alone("reduce_scatter", 65536, "[0,1,2,3]", 4));
  CHECK(time_of(CommType::all_to_all, "", "") == alone("all_to_all", 65536, "[0,1,2,3]", 4));
  CHECK(time_of(CommType::broadcast, "", "") == alone("broadcast", 65536, "[0,1,2,3]", 4));
}

TEST_CASE("a PyTorch trace's own process groups are taken, and their dimensions known by their names") {
  const auto rank = [](const std::string& list) {
    TraceNode metadata = node(1, NodeType::metadata, 0);
    WireWriter inputs;
    inputs.bytes(1, "['" + list + "']");
    metadata.inputs = inputs.written();
    return std::vector<TraceNode>{metadata, in_group(2, CommType::all_reduce, 65536, "7", {1})};
  };
  const std::string low = R"([{"pg_name": "7", "pg_desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": [0, 1]}])",
                    high = R"([{"pg_name": "7", "pg_desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": [2, 3]}])";
  const auto imported = import_traces(files_of({rank(low), rank(low), rank(high), rank(high)}), "", "t");
  CHECK(imported.programs.programs.size() == 1);
  const step::StepResult step = tests::step_of(imported.programs);
  CHECK(step.step_ps == alone("all_reduce", 65536, "[0,1],[2,3]", 4));
  CHECK(imported.programs.ranks.dimensions.at(0).exposed == workload::StepPart::exposed_tp);
}

TEST_CASE("kernels take their duration, the roofline's time, or a nanosecond") {
  const std::vector<TraceNode> rank{
      node(3, NodeType::comp, 7),
      node(4, NodeType::comp, 0, {3}, {whole("num_ops", 2'000'000), whole("tensor_size", 1000)}),
      node(5, NodeType::comp, 0, {4}, {whole("num_ops", 1000), whole("tensor_size", 2'000'000)}),
      node(6, NodeType::comp, 0, {5})};
  TraceOptions options;
  options.roofline = Roofline{1, 100};  // 2e6 operations take 2 us, 2e6 bytes 20 us
  CHECK(step_of({rank, rank}, "", options) == 7'000'000 + 2'000'000 + 20'000'000 + 1000);
  CHECK(error_of([&] { step_of({rank, rank}); }).find("t.0.et: node 4 ('node') has num_ops and no duration") == 0);
}

TEST_CASE("with ASTRA-sim's resources a rank runs one kernel and one communication at a time") {
  const std::vector<TraceNode> rank{node(1, NodeType::comp, 10), node(2, NodeType::comp, 20),
                                    node(3, NodeType::comp, 5, {}, {Attribute::of("is_cpu_op", Attribute::kBool, 1)})};
  CHECK(step_of({rank, rank}) == 20'000'000);
  TraceOptions options;
  options.one_at_a_time = true;
  CHECK(step_of({rank, rank}, "", options) == 30'000'000);
  const std::vector<TraceNode> both{in_group(1, CommType::all_reduce, 65536), in_group(2, CommType::all_reduce, 65536)};
  CHECK(step_of({both, both}, "", options) == 2 * alone("all_reduce", 65536, "[0,1]", 2));
}

TEST_CASE("transfers whose tags are out of order meet") {
  TraceNode last = transfer(2, true, 0, 8), second = transfer(2, false, 1, 9);
  last.data_deps = {1};
  second.data_deps = {1};
  const Time one = transfer_alone(4096);
  CHECK(step_of({{transfer(1, false, 1, 8), second}, {transfer(1, true, 0, 9), last}}) == 2 * one);
  TraceOptions options;
  options.rendezvous = true;
  CHECK(step_of({{transfer(1, false, 1, 8), transfer(2, false, 1, 9)}, {transfer(1, true, 0, 9), last}}, "", options) ==
        2 * one);
}

TEST_CASE("sends begin without asking, as in ASTRA-sim's ring of sends and receives") {
  std::vector<std::vector<TraceNode>> ranks;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    std::vector<TraceNode>& nodes = ranks.emplace_back();
    for (std::uint64_t round = 0; round < 3; ++round) {  // a send, a receive behind it, and a reduction of 7 us
      nodes.push_back(transfer(3 * round, false, (rank + 1) % 4, 0));
      if (round > 0) nodes.back().data_deps = {3 * round - 1};
      nodes.push_back(transfer(3 * round + 1, true, (rank + 3) % 4, 0));
      nodes.back().data_deps = {3 * round};
      nodes.push_back(node(3 * round + 2, NodeType::comp, 7, {3 * round + 1}));
    }
  }
  CHECK(step_of(ranks) == 3 * (transfer_alone(4096) + 7'000'000));
  TraceOptions options;
  options.rendezvous = true;
  CHECK(error_of([&] { step_of(ranks, "", options); }).find("deadlock") != std::string::npos);
}

TEST_CASE("what is not known in a trace is counted and told") {
  std::vector<TraceNode> rank{node(1, NodeType::comp, 7, {}, {whole("colour", 3)}), node(2, NodeType{12}, 3, {1})};
  rank[1].ctrl_deps = {1, 99};
  const programs::Imported imported = import_traces(files_of({rank, rank}), "", "t");
  const auto has = [&](const std::string& line) {
    return std::find(imported.account.begin(), imported.account.end(), line) != imported.account.end();
  };
  CHECK(has("1 nodes of type 12, which the schema does not have, take no time"));
  CHECK(has("attributes that are not known, and not followed: colour (1)"));
  CHECK(
      has("2 control dependencies are not followed, as Chakra's own feeder follows those of data alone; ASTRA-sim's "
          "follows both (--collectives as-astra)"));
  CHECK(has("1 programs for 2 ranks, on up to 1 streams"));
}

TEST_CASE("one trace stands for as many ranks as are asked for, and 1,000 equal ones are one program") {
  TraceOptions options;
  options.ranks = 1000;
  const programs::Imported imported = import_traces(
      files_of({{node(1, NodeType::comp, 7), in_group(2, CommType::all_reduce, 65536, "", {1})}}), "", "t", options);
  CHECK(imported.programs.ranks.program_of_rank == std::vector<std::uint32_t>(1000, 0));
  CHECK(imported.programs.ranks.groups.size() == 1);
  CHECK(error_of([&] {
          import_traces(files_of({{transfer(1, false, 1, 0)}}), "", "t", options);
        }).find("cannot stand for 1000") != std::string::npos);
}

TEST_CASE("what is wrong in a trace is said with its file, and its node or byte") {
  const auto error = [](const std::vector<TraceNode>& rank) { return error_of([&] { step_of({rank, rank}); }); };
  CHECK(error({node(1, NodeType::comp, 1), node(1, NodeType::comp, 1)}) == "t.0.et: has two nodes with id 1");
  CHECK(error({node(1, NodeType::comp, 1, {4})}) ==
        "t.0.et: node 1 ('node') waits for node 4, which the trace does not have");
  CHECK(error({node(1, NodeType::comp, 1, {2}), node(2, NodeType::comp, 1, {1})}).find("t.0.et: has a circle of 2") ==
        0);
  CHECK(error({in_group(1, CommType::all_reduce, 8, "5")}).find("is of group '5', which neither") != std::string::npos);
  CHECK(error({in_group(1, CommType::gather, 8)}).find("gather and scatter are not known") != std::string::npos);
  CHECK(error({node(1, NodeType::comm_coll, 1)}).find("has no attribute 'comm_size'") != std::string::npos);
  CHECK(error({in_group(1, CommType::all_reduce, -8)}).find("no integer from 0") != std::string::npos);
  CHECK(error({transfer(1, false, 1, 0)}).find("cannot") == std::string::npos);
  CHECK(error({}) == "t.0.et: has no node");
  const auto torn = [](const std::string& bytes) { return error_of([&] { parse_trace(bytes, "t.et"); }); };
  CHECK(torn("") == "t.et: is empty; a trace of Chakra begins with its metadata");
  const std::string whole_file = import::read_text(kFolder + "all_reduce.1.et");
  CHECK(torn(whole_file.substr(0, 40)) ==
        "t.et: has a part of 74 bytes where 31 follow: the file is cut, or is no trace at byte 9");
  CHECK(torn(whole_file.substr(8)).find("no metadata in its first message") != std::string::npos);
  CHECK(torn("PK\x03\x04").find("t.et: has ") == 0);
  CHECK(error_of([&] { read_traces("/nowhere/t"); }).find("has no trace /nowhere/t.0.et") != std::string::npos);
  CHECK(error_of([&] {
          import_traces(files_of({{node(1, NodeType::comp, 1)}}), "[1]", "t");
        }).find("must be an object of groups") != std::string::npos);
  CHECK(error_of([&] {
          step_of({{node(1, NodeType::comp, 1)}, {node(1, NodeType::comp, 1)}}, R"({"0": [1]})");
        }).find("group '0' has 1 of 2 ranks: 0 is all ranks") != std::string::npos);
  CHECK(error_of([&] {
          import_traces(files_of({{node(1, NodeType::comp, 1)}}), "{\"1\": [0, 4]}", "t");
        }).find("group '1' has rank 4, where there are 1") != std::string::npos);
}

TEST_CASE("every prefix of a trace is a trace or refused") {
  const std::string bytes =
      files_of({{node(1, NodeType::comp, 7), in_group(2, CommType::all_reduce, 65536, "", {1})}})[0].bytes;
  std::size_t whole_ones = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size)
    whole_ones += error_of([&] { parse_trace(std::string_view(bytes).substr(0, size), "t"); }) == "no error" ? 1 : 0;
  CHECK(whole_ones == 3);  // the metadata alone, one node, both
}

TEST_CASE("the programs of drawn experiments, written as traces, are read as the same nodes") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    step::SimulationContext context;
    const programs::StreamPrograms programs =
        programs::as_stream_programs(step::as_given(configuration, context.compile(configuration).layout()), "drawn");
    const WrittenTraces written = write_traces(programs, "drawn");
    std::vector<TraceFile> files;
    for (std::uint32_t rank = 0; rank < written.of_rank.size(); ++rank) {
      const Trace trace = trace_of_rank(written, programs, rank);
      REQUIRE(parse_trace(trace_bytes(trace), "t") == trace);  // nodes, dependencies, attributes
      REQUIRE(trace.nodes.size() == programs.programs[written.of_rank[rank]].ops.size());
      files.push_back({fmt::format("t.{}.et", rank), trace_bytes(trace)});
    }
    TraceOptions options;
    const programs::Imported imported = import_traces(files, written.groups, "t", options);
    std::multiset<std::string> given, found;  // what each rank does, by kind, bytes and time
    const auto work_of = [](const programs::StreamPrograms& of, std::uint32_t rank, std::multiset<std::string>& to) {
      for (const programs::StreamOp& op : of.programs[of.ranks.program_of_rank[rank]].ops) {
        if (const auto* kernel = std::get_if<programs::KernelWork>(&op.work))
          to.insert(fmt::format("k {}", *kernel->measured_us));
        if (const auto* host = std::get_if<programs::HostWork>(&op.work)) to.insert(fmt::format("h {}", host->us));
        if (const auto* call = std::get_if<programs::Communication>(&op.work))
          to.insert(fmt::format("c {} {} {}", static_cast<int>(call->kind), call->bytes, call->receives));
      }
    };
    for (std::uint32_t rank = 0; rank < files.size(); ++rank)
      work_of(programs, rank, given), work_of(imported.programs, rank, found);
    REQUIRE(given == found);
  }
}

TEST_CASE("a SimAI workload written as traces, and read back, has its step") {
  const std::string text =
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 8\n2\na -1 1000 ALLREDUCE 65536 2000 ALLGATHER 32768 "
      "3500 "
      "REDUCESCATTER 1048576 100\nb -1 4000 ALLTOALL 65536 5000 NONE 0 6000 ALLREDUCE 4096 100\n";
  const programs::StreamPrograms programs = simai::parse_workload(text, "w.txt").programs;
  const TemporaryFolder folder;
  write_trace_files(programs, (folder / "w").string());
  TraceOptions options;
  options.groups_path = (folder / "w.groups.json").string();
  const programs::Imported imported = read_traces((folder / "w").string(), options);
  CHECK(imported.programs.programs.size() == 1);
  CHECK(tests::step_of(imported.programs).step_ps == tests::step_of(programs).step_ps);
}

TEST_CASE("groups are of the file that is written beside traces, where none is named") {
  const programs::StreamPrograms programs = programs::parse_program_file(
      "{\"manyworlds_program\":1}\n{\"dimension\":\"tp\"}\n{\"groups\":\"tp\",\"ranks\":[[0,1],[2,3]]}\n"
      "{\"program\":\"p\",\"ranks\":\"0-3\",\"streams\":[\"s\"]}\n"
      "{\"collective\":\"all_reduce\",\"in\":\"tp\",\"bytes\":64,\"stream\":\"s\"}\n",
      "p");
  const TemporaryFolder folder;
  const std::string prefix = (folder / "w").string(), beside = prefix + ".groups.json";
  CHECK(write_trace_files(programs, prefix).empty());
  const programs::Imported imported = traces::read_any({prefix}, {});
  CHECK(imported.programs.ranks.groups.size() == 2);
  CHECK(imported.account.back() == fmt::format("groups of {}, as no --groups says others", beside));
  std::filesystem::rename(beside, folder / "others.json");
  CHECK(error_of([&] { traces::read_any({prefix}, {}); }).find("is of group '1'") != std::string::npos);
  traces::AnyOptions options;
  options.chakra.groups_path = (folder / "others.json").string();
  CHECK(traces::read_any({prefix}, options).programs.ranks.groups.size() == 2);
}

TEST_CASE("what traces do not say of the programs that they are written of is told") {
  const programs::StreamPrograms programs = programs::parse_program_file(
      "{\"manyworlds_program\":1,\"gpu\":\"a100_80\",\"tokens_per_step\":4096}\n"
      "{\"program\":\"p\",\"ranks\":\"0-1\",\"streams\":[\"s\"]}\n{\"allocate\":8}\n"
      "{\"kernel\":\"a\",\"us\":92.5,\"gemm\":[2,2,2,1],\"stream\":\"s\"}\n"
      "{\"kernel\":\"b\",\"us\":10,\"part\":\"forward\",\"stream\":\"s\"}\n"
      "{\"copy\":\"device_to_device\",\"us\":3.25,\"stream\":\"s\"}\n"
      "{\"copy\":\"host_to_device\",\"us\":4,\"stream\":\"s\"}\n",
      "p");
  // 92.5 us become 93, and 3.25 become 3.
  CHECK(write_traces(programs, "p").account ==
        std::vector<std::string>{
            "up to 2 durations of a rank are rounded to whole microseconds, 1 at least, which changes their sum by up "
            "to 0.25 us; our own measured_us is exact",
            "up to 1 copies of a rank inside GPUs are compute nodes, as its kernels are",
            "left out: the GPU of the times (a100_80), tokens of a step, allocations, shapes of kernels, parts of the "
            "step"});
}

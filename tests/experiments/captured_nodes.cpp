// Graphs that a captured program made node by node: what a launch gives its streams, and in which order.
#include "tests/experiments/captured_records.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using Lines = std::vector<std::string>;

namespace {

/// A record with streams 2 and 3, which do not wait for the default stream, and graph 0.
RecordText with_graph() {
  return RecordText().create(false).create(false).call("cudaGraphCreate", R"("graph":0)");
}

std::string launched(const std::string& kernel, int grid = 1) {
  return fmt::format(R"("kernel":"{}","grid":[{},1,1],"block":[32,1,1],"shared_bytes":0,"arguments":[])", kernel, grid);
}

RecordText& node(RecordText& text, int number, const std::string& after, const std::string& kernel, int grid = 1) {
  return text.call("cudaGraphAddKernelNode",
                   fmt::format(R"("graph":0,"node":{},"after":[{}],{})", number, after, launched(kernel, grid)));
}

RecordText& instantiate(RecordText& text, int instance = 0) {
  return text.call("cudaGraphInstantiate", fmt::format(R"("graph":0,"instance":{})", instance));
}

RecordText& launch(RecordText& text, int stream, int instance = 0) {
  return text.call("cudaGraphLaunch", fmt::format(R"("graph":0,"instance":{},"stream":{})", instance, stream));
}

}  // namespace

TEST_CASE("nodes run behind those that they wait for, and side by side where they do not") {
  RecordText text = with_graph();
  node(text, 0, "", "a"), node(text, 1, "0", "b"), node(text, 2, "0", "c"), node(text, 3, "1,2", "d");
  instantiate(text).launch("x", 2);
  for (int i = 0; i < 2; ++i) launch(text, 2);
  text.launch("y", 2);
  CHECK(operations(import_records({text})) == Lines{"x on stream 2", "a on stream 2", "b on stream 2",
                                                    "c on stream 1 of nodes, after 1", "d on stream 2, after 3",
                                                    "a on stream 2", "b on stream 2", "c on stream 1 of nodes, after 5",
                                                    "d on stream 2, after 7", "y on stream 2"});
}

TEST_CASE("nodes that wait for none wait for the stream of the launch, which goes on behind all") {
  RecordText text = with_graph();
  node(text, 0, "", "a"), node(text, 1, "", "b");
  text.call("cudaGraphAddEmptyNode", R"("graph":0,"node":2,"after":[0,1])");
  node(text, 3, "2", "c"), node(text, 4, "", "alone");
  instantiate(text).launch("x", 2);
  launch(text, 2).launch("y", 2);
  CHECK(operations(import_records({text})) == Lines{"x on stream 2", "a on stream 2", "b on stream 1 of nodes, after 0",
                                                    "c on stream 2, after 2", "alone on stream 2 of nodes, after 0",
                                                    "y on stream 2, after 4"});
}

TEST_CASE("launches of one instance follow each other, on whatever streams, and those of two do not") {
  RecordText text = with_graph();
  node(text, 0, "", "a");
  instantiate(text, 0), instantiate(text, 1);
  launch(text, 2, 0), launch(text, 3, 0), launch(text, 2, 1);
  CHECK(operations(import_records({text})) == Lines{"a on stream 2", "a on stream 3, after 0", "a on stream 2"});
}

TEST_CASE("an instance has the nodes that its graph had, and changes of its own") {
  RecordText text = with_graph();
  node(text, 0, "", "a", 8);
  instantiate(text, 0);
  text.call("cudaGraphKernelNodeSetParams", R"("graph":0,"node":0,)" + launched("b", 2));
  node(text, 1, "0", "c");
  instantiate(text, 1);
  launch(text, 2, 0), launch(text, 2, 1);
  text.call("cudaGraphExecKernelNodeSetParams", R"("graph":0,"instance":0,"node":0,)" + launched("d", 3));
  launch(text, 2, 0);
  const auto read = import_records({text}, all_of_it(), "gpu: h100_sxm\nkernels:\n  - {kernel: \"*\", us: blocks}\n");
  CHECK(operations(read) == Lines{"a on stream 2", "b on stream 2", "c on stream 2", "d on stream 2"});
  std::vector<double> us;
  for (const auto& op : read.programs.programs[0].ops)
    us.push_back(std::get<experiments::programs::KernelWork>(op.work).measured_us.value_or(0));
  CHECK(us == std::vector<double>{8, 2, 1, 3});
}

TEST_CASE("an instance takes the nodes of another graph that wait for each other alike") {
  RecordText text = with_graph();
  node(text, 0, "", "a"), node(text, 1, "0", "b");
  instantiate(text);
  text.call("cudaGraphCreate", R"("graph":1)");
  for (const auto& [number, after, kernel] : {std::tuple(0, "", "c"), {1, "0", "d"}})
    text.call("cudaGraphAddKernelNode",
              fmt::format(R"("graph":1,"node":{},"after":[{}],{})", number, after, launched(kernel)));
  launch(text, 2).call("cudaGraphExecUpdate", R"("graph":1,"instance":0)");
  text.call("cudaGraphLaunch", R"("graph":1,"instance":0,"stream":2)");
  CHECK(operations(import_records({text})) ==
        Lines{"a on stream 2", "b on stream 2", "c on stream 2", "d on stream 2"});
  text.call("cudaGraphCreate", R"("graph":2)").call("cudaGraphExecUpdate", R"("graph":2,"instance":0)");
  CHECK(error({text}) == "rank0.jsonl:15: nodes of graph 2 do not wait for each other as those of instance 0");
}

TEST_CASE("dependencies that are added later count, also on nodes that were added later") {
  RecordText text = with_graph();
  node(text, 0, "", "late"), node(text, 1, "", "early");
  text.call("cudaGraphAddDependencies", R"("graph":0,"from":[1,1],"to":[0,0])");
  launch(instantiate(text), 2);
  CHECK(operations(import_records({text})) == Lines{"early on stream 2", "late on stream 2"});
}

TEST_CASE("copies, sets and functions of the host are nodes, and no copy of a graph is waited for") {
  RecordText text = with_graph();
  text.call("cudaGraphAddMemcpyNode",
            R"("graph":0,"node":0,"after":[],"to":"host","from":[1,0],"bytes":64,"direction":"device_to_host")");
  text.call("cudaGraphAddMemsetNode", R"("graph":0,"node":1,"after":[0],"to":[1,0],"value":0,"bytes":32)");
  text.call("cudaGraphAddHostNode", R"("graph":0,"node":2,"after":[1])");
  launch(instantiate(text), 2).launch("other", 3);
  const auto read = import_records({text});
  const Lines lines = operations(read);
  REQUIRE(lines.size() == 3);
  CHECK(lines[2] == "other on stream 3");
  const auto& ops = read.programs.programs[0].ops;
  using experiments::programs::CopyDirection;
  CHECK(std::get<experiments::programs::CopyWork>(ops[0].work).direction == CopyDirection::device_to_host);
  CHECK(std::get<experiments::programs::CopyWork>(ops[1].work).direction == CopyDirection::set);
  CHECK(std::get<experiments::programs::CopyWork>(ops[1].work).bytes == 32);
  CHECK(has_line(read.account, "1 copies within the host and functions of the host on streams take no time"));
}

TEST_CASE("a step may be the launch of a graph of nodes") {
  RecordText text = with_graph();
  node(text, 0, "", "a"), node(text, 1, "", "b");
  instantiate(text);
  for (int step = 0; step < 3; ++step) launch(text, 2).call("cudaStreamSynchronize", R"("stream":2)");
  const auto read = import_records({text}, experiments::captured::ReadOptions());
  CHECK(operations(read) == Lines{"a on stream 2", "b on stream 1 of nodes"});
  CHECK(has_line(read.account, "the last of 3 periods"));
}

TEST_CASE("records of graphs that cannot be are refused with the line") {
  RecordText circle = with_graph();
  node(circle, 0, "", "a"), node(circle, 1, "0", "b");
  circle.call("cudaGraphAddDependencies", R"("graph":0,"from":[1],"to":[0])");
  CHECK(error({instantiate(circle)}) == "rank0.jsonl:8: nodes of graph 0 wait for each other");
  RecordText text = with_graph();
  CHECK(error({node(text, 1, "", "a")}) ==
        "rank0.jsonl:5: nodes are numbered from 0 in the order in which they are added: this is 0, not 1");
  text = with_graph();
  CHECK(error({node(text, 0, "0", "a")}) == "rank0.jsonl:5: graph 0 has no node 0");
  text = with_graph();
  CHECK(error({launch(text, 2)}) == "rank0.jsonl:5: instance 0 of a graph was not made before");
  text = with_graph();
  CHECK(error({text.call("cudaGraphCreate", R"("graph":0)")}) == "rank0.jsonl:5: graph 0 was created before");
  text = with_graph();
  CHECK(error({text.call("cudaGraphAddEmptyNode", R"("graph":1,"node":0,"after":[])")}) ==
        "rank0.jsonl:5: graph 1 was not created before");
  text = with_graph();
  instantiate(text);
  CHECK(error({instantiate(text)}) == "rank0.jsonl:6: instance 0 of a graph was made before");
  text = with_graph();
  node(text, 0, "", "a");
  CHECK(error({text.call("cudaGraphAddDependencies", R"("graph":0,"from":[0],"to":[])")}) ==
        "rank0.jsonl:6: 'from' and 'to' must have as many nodes");
}

TEST_CASE("what was answered by assumption about occupancy is told by kernel") {
  RecordText text;
  for (int i = 0; i < 2; ++i)
    text.call("cudaOccupancyMaxActiveBlocksPerMultiprocessor",
              R"("kernel":"a","threads":256,"shared_bytes":0,"blocks":8,"assumed":"registers")");
  text.call("cudaFuncGetAttributes", R"("kernel":"b","assumed":"registers")").launch("a", 0, 8);
  const auto read = import_records({text});
  CHECK(has_line(read.account, "was answered as if kernels had at most 32 registers a thread and no static shared"));
  CHECK(has_line(read.account, "'a' (2 queries), 'b' (1 queries)"));
  CHECK_FALSE(has_line(import_records({RecordText().launch("a", 0)}).account, "multiprocessor"));
}

// Tables of NCCL's example tuner plugin: what each line means, which of them decides, and what keys have of it.
#include "experiments/nccl/tuner_file.hpp"

#include <catch2/catch.hpp>

#include <set>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/library.hpp"
#include "core/step/compile/tuner_choices.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/run/simulation_context.hpp"
#include "tests/core/collective/calibration_figures.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
namespace testing = manyworlds::experiments::testing;
using namespace manyworlds::core::collective;
using Catch::Matchers::Contains;
using manyworlds::experiments::import::parse_tuner_file;
using manyworlds::experiments::import::TunerFile;

namespace {

constexpr std::int64_t kMib = 1 << 20;

/// With 10 GB/s in a node of eight and 1 GB/s between nodes.
Communicator communicator(std::uint32_t members, std::uint32_t per_node) {
  return {members, per_node, {80'000'000'000, core::kMicrosecond}, {8'000'000'000, 2 * core::kMicrosecond}, true};
}

Library library_with(const std::string& table, Protocol protocol = Protocol::calibrated) {
  Library library;
  library.all_reduce = Algorithm::automatic;
  library.protocol = protocol;
  library.channels = 0;
  library.calibration = tests::calibration();
  if (!table.empty()) library.tuner_rules = parse_tuner_file(table, "t.conf").rules;
  return library;
}

std::string shape(const std::string& table, std::int64_t bytes, const Communicator& who, Kind kind = Kind::all_reduce,
                  Protocol protocol = Protocol::calibrated) {
  const Shape chosen = choose_shape(library_with(table, protocol), who, kind, bytes);
  return std::string(info_of(chosen.algorithm).name) + " " + name_of(chosen.protocol);
}

/// The number of the line that decides; 0: none.
int line(const std::string& table, std::int64_t bytes, const Communicator& who, Kind kind = Kind::all_reduce,
         Protocol protocol = Protocol::calibrated) {
  const Library library = library_with(table, protocol);
  const TunerRule* rule = rule_for(library, who, kind, bytes);
  return rule == nullptr ? 0 : rule->line;
}

std::string error(const std::string& text) {
  return tests::error_of([&] { parse_tuner_file(text, "t.conf"); });
}

const std::vector<std::string> kCalibrated{"collectives.protocol=calibrated", "collectives.all_reduce=auto",
                                           "collectives.channels=0"};

/// One experiment of kSingle whose tuner has a table; an empty one: without.
experiments::Sweep sweep_with(const std::string& table, std::vector<std::string> sets = kCalibrated) {
  const TemporaryFolder folder;
  folder.put("t.conf", table);
  if (!table.empty()) sets.push_back("collectives.tuner_file=" + (folder / "t.conf").string());
  return testing::read(testing::kSingle, sets);
}

core::step::StepSummary summary_with(const std::string& table) {
  experiments::GraphCache graphs;
  core::step::SimulationContext context;
  return context.summary(configure(sweep_with(table).experiments.front(), graphs));
}

/// The keys of all collectives but all-reduces.
std::set<core::sharing::Key> others(const core::step::StepSummary& summary) {
  std::set<core::sharing::Key> keys;
  for (const auto& one : summary.collectives)
    if (one.shape.kind != Kind::all_reduce) keys.insert(one.key);
  return keys;
}

}  // namespace

TEST_CASE("a tuner's table is read as NCCL's example plugin reads it, but for what that takes silently") {
  const TunerFile file = parse_tuner_file(
      "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
      "# a comment\n\nallreduce,0,65536,tree,ll,2,4,32\n"
      " allgather , 1 ,18446744073709551615, ring,simple, -1,-1,-1,1,0\nbroadcast,0,9,ring,ll128,-1,1,-1,-1\n"
      "reducescatter,0,9,nvls,simple,-1,-1,-1\nreduce,0,9,ring,simple,64,-1,8,-1,-1\n",
      "t.conf");
  REQUIRE(file.idle.empty());
  REQUIRE(file.rules.size() == 5);
  CHECK(file.rules[0] == TunerRule{4, Kind::all_reduce, 0, 65'536, Algorithm::double_tree, Protocol::ll, 2, 4, 32});
  CHECK(file.rules[1] == TunerRule{5, Kind::all_gather, 1, INT64_MAX, Algorithm::ring, Protocol::simple, 0, 0, 0});
  CHECK(file.rules[2] == TunerRule{6, Kind::broadcast, 0, 9, Algorithm::chain, Protocol::ll128, 0, 1, 0});
  CHECK(file.rules[3] == TunerRule{7, Kind::reduce_scatter, 0, 9, Algorithm::in_switch, Protocol::simple, 0, 0, 0});
  CHECK(file.rules[4] == TunerRule{8, Kind::reduce, 0, 9, Algorithm::chain, Protocol::simple, 64, 0, 8});
}

TEST_CASE("what a tuner's table must not say is refused with its line") {
  const auto with = [](const std::string& line) { return error("# first\n" + line + "\n"); };
  CHECK_THAT(with("allreduce,0,9,ring,ll,-1,-1"), Contains("t.conf:2: has 7 columns; 8 to 10 are right: coll"));
  CHECK_THAT(with("allreduce,0,9,ring,ll,-1,-1,-1,-1,-1,-1"), Contains("t.conf:2: has 11 columns"));
  CHECK_THAT(with("sendrecv,0,9,ring,ll,-1,-1,-1"), Contains("t.conf:2: collective_type must be one of broadcast, "));
  CHECK_THAT(with("allreduce,x,9,ring,ll,-1,-1,-1"), Contains("min_bytes must be a number of bytes, not 'x'"));
  CHECK_THAT(with("allreduce,-1,9,ring,ll,-1,-1,-1"), Contains("min_bytes must be a number of bytes, not '-1'"));
  CHECK_THAT(with("allreduce,9,8,ring,ll,-1,-1,-1"), Contains("t.conf:2: max_bytes 8 is below min_bytes 9"));
  CHECK_THAT(with("allreduce,0,9,pat,simple,-1,-1,-1"), Contains("t.conf:2: algorithm pat of NCCL is not modelled"));
  CHECK_THAT(with("allreduce,0,9,nvls_tree,simple,-1,-1,-1"), Contains("algorithm nvls_tree of NCCL is not modelled"));
  CHECK_THAT(with("allreduce,0,9,collnet_chain,simple,-1,-1,-1"), Contains("collnet_chain of NCCL is not modelled"));
  CHECK_THAT(with("allreduce,0,9,Ring,simple,-1,-1,-1"), Contains("must be one of tree, ring, nvls, not 'Ring'"));
  CHECK_THAT(with("allreduce,0,9,ring,LL,-1,-1,-1"), Contains("protocol must be one of ll, ll128, simple, not 'LL'"));
  CHECK_THAT(with("allreduce,0,9,ring,ll,0,-1,-1"), Contains("channels must be -1 (any) or a number from 1 to 64"));
  CHECK_THAT(with("allreduce,0,9,ring,ll,-1,0,-1"), Contains("nNodes must be -1 (any) or a number from 1 to "));
  CHECK_THAT(with("allreduce,0,9,ring,ll,-1,-1,-1,-1,2"), Contains("regBuff must be -1 (any) or a number from 0 to 1"));
  CHECK_THAT(error("# nothing\n"), Contains("t.conf:1: chooses nothing; give lines of collective_type,"));
}

TEST_CASE("lines that no collective matches, or that NCCL passes over, are told with their reason") {
  const TunerFile file = parse_tuner_file(
      "allreduce,0,9,collnet_direct,simple,-1,-1,-1,-1,1\nallreduce,0,9,ring,simple,-1,-1,-1,4\n"
      "broadcast,0,9,tree,simple,-1,-1,-1\nreduce,0,9,nvls,simple,-1,-1,-1\nallreduce,0,9,nvls,ll,-1,-1,-1\n",
      "t.conf");
  CHECK(file.rules.empty());
  REQUIRE(file.idle.size() == 5);
  CHECK(file.idle[0].why == "regBuff 1: no buffers are registered");
  CHECK(file.idle[1].why == "numPipeOps above 1: collectives are launched one by one");
  CHECK(file.idle[2].why == "NCCL has trees for allreduce alone");
  CHECK(file.idle[3].why == "NCCL has no nvls for broadcast and reduce");
  CHECK(file.idle[4].why == "nvls has protocol simple alone");
  CHECK(file.idle[4].line == 5);
}

TEST_CASE("the first line for an operation, its bytes, nodes and ranks decides, otherwise the library") {
  const std::string table =
      "allreduce,1024,2048,ring,ll,-1,-1,-1\nallreduce,0,1000000,tree,simple,-1,2,-1\n"
      "allreduce,0,1000000,ring,ll128,-1,-1,8\nallgather,0,99999,ring,ll128,-1,-1,-1\n";
  const Communicator node = communicator(8, 8), two = communicator(16, 8);
  CHECK(line(table, 1'023, node) == 3);
  CHECK(line(table, 1'024, node) == 1);
  CHECK(line(table, 2'048, node) == 1);
  CHECK(line(table, 2'049, node) == 3);
  CHECK(line(table, 2'048, two) == 1);
  CHECK(line(table, 2'049, two) == 2);
  CHECK(line(table, 1'000'001, two) == 0);
  CHECK(line(table, 2'049, communicator(4, 4)) == 0);
  CHECK(line(table, 99'999, node, Kind::all_gather) == 4);
  CHECK(line(table, 99'999, node, Kind::reduce_scatter) == 0);
  CHECK(shape(table, 2'048, node) == "ring calibrated ll");
  CHECK(shape(table, 2'049, two) == "double_tree calibrated simple");
  for (const std::int64_t bytes : {1'000'001ll, 64ll * kMib})
    CHECK(choose_shape(library_with(table), two, Kind::all_reduce, bytes) ==
          choose_shape(library_with(""), two, Kind::all_reduce, bytes));
  // Under protocol auto it is the protocol of that name, with the channels of the line.
  const std::string wide = "allreduce,0,1000000,ring,ll128,3,-1,-1\n";
  CHECK(shape(wide, kMib / 2, two, Kind::all_reduce, Protocol::automatic) == "ring ll128");
  CHECK(choose_shape(library_with(wide, Protocol::automatic), two, Kind::all_reduce, 999).channels == 3);
  // A calibrated library has the channels that were measured: those of a table without any.
  CHECK(choose_shape(library_with(wide), two, Kind::all_reduce, 999) ==
        choose_shape(library_with("allreduce,0,1000000,ring,ll128,-1,-1,-1\n"), two, Kind::all_reduce, 999));
}

TEST_CASE("what the library does not have is passed over for the next line, as NCCL does") {
  const std::string nvls = "allreduce,0,100000000,nvls,simple,-1,-1,-1\nallreduce,0,100000000,ring,simple,-1,-1,-1\n";
  Communicator mesh = communicator(8, 8);
  mesh.node_switches = false;
  for (const Protocol protocol : {Protocol::calibrated, Protocol::automatic}) {
    const auto decides = [&](const Communicator& who) { return line(nvls, kMib, who, Kind::all_reduce, protocol); };
    CHECK(decides(mesh) == 2);
    CHECK(decides(communicator(16, 8)) == 2);
  }
  // NCCL's tuner finds a rate for the channels of reductions in switches from 20 GB/s of a GPU's links on.
  Communicator fast = communicator(8, 8);
  fast.intra_node.bits_per_second = 3'600'000'000'000;
  CHECK(shape(nvls, kMib, fast) == "in_switch calibrated simple");
  CHECK(line(nvls, kMib, communicator(2, 2)) == 2);
  const std::string ll128 = "allreduce,0,100000000,ring,ll128,-1,-1,-1\n";
  Library apart = library_with(ll128);
  apart.ll128_between_nodes = false;
  CHECK(rule_for(apart, communicator(16, 8), Kind::all_reduce, kMib) == nullptr);
  CHECK(rule_for(apart, communicator(8, 8), Kind::all_reduce, kMib) != nullptr);
}

TEST_CASE("keys have of a tuner's table what it changes, and nothing else") {
  experiments::GraphCache graphs;
  const auto choices = tuner_choices(configure(sweep_with("allreduce,0,1,ring,ll,-1,-1,-1\n").experiments[0], graphs));
  REQUIRE(!choices.empty());
  for (const auto& one : choices) CHECK(one.line == 0);
  const core::step::StepSummary without = summary_with("");
  CHECK(summary_with("allreduce,0,1,ring,ll,-1,-1,-1\n").step == without.step);
  // Of the three protocols, a ring of one is what the library chooses, in some line with a comment before it or not.
  int same = 0;
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    const std::string table = fmt::format("allreduce,0,99999999999,ring,{},-1,-1,-1\n", protocol);
    const core::step::StepSummary with = summary_with(table);
    CHECK(summary_with("# a comment\n" + table).step == with.step);
    CHECK(others(with) == others(without));
    same += with.step == without.step ? 1 : 0;
    for (const auto& one : tuner_choices(configure(sweep_with(table).experiments[0], graphs)))
      CHECK(one.line == (one.kind == Kind::all_reduce ? 1 : 0));
  }
  CHECK(same <= 1);
  CHECK(sweep_with("allreduce,0,9,ring,ll,-1,-1,-1\n").experiments[0].config().configuration.collectives.tuner_rules ==
        parse_tuner_file("allreduce,0,9,ring,ll,-1,-1,-1\n", "t").rules);
}

TEST_CASE("a group with an algorithm of its own does not ask the tuner for that operation") {
  auto sets = kCalibrated;
  sets.push_back("collectives.data.all_reduce=ring");
  experiments::GraphCache graphs;
  const auto configuration = configure(
      sweep_with("allreduce,0,99,ring,ll,-1,-1,-1\nallgather,0,99,ring,ll,-1,-1,-1\n", sets).experiments[0], graphs);
  CHECK(configuration.collectives.tuner_rules.size() == 2);
  const auto& own = configuration.library_of(core::workload::Role::data).tuner_rules;
  REQUIRE(own.size() == 1);
  CHECK(own[0].kind == Kind::all_gather);
}

TEST_CASE("a sweep says where it tells which lines chose, and which have no effect") {
  const std::string assumed = sweep_with(
                                  "allreduce,0,99,ring,ll,-1,-1,-1,-1,1\nallreduce,0,99,ring,ll,4,-1,-1\n"
                                  "broadcast,0,99,tree,ll,-1,-1,-1\nreduce,0,99,tree,ll,-1,-1,-1\n")
                                  .assumed;
  CHECK_THAT(assumed, Contains("t.conf chose is in the column collectives_tuner"));
  CHECK_THAT(assumed, Contains("its line 1 never matches (regBuff 1: no buffers are registered)"));
  CHECK_THAT(assumed, Contains("its lines 3, 4 never match (NCCL has trees for allreduce alone)"));
  CHECK_THAT(assumed, Contains("the channels of its line 2 are not heeded"));
}

TEST_CASE("a tuner's table needs a library that has protocols to choose from, and a file that can be read") {
  const TemporaryFolder folder;
  folder.put("t.conf", "allreduce,0,99,ring,ll,-1,-1,-1\n");
  const std::string file = "collectives.tuner_file=" + (folder / "t.conf").string();
  CHECK_THAT(testing::error_of(testing::kSingle, {file}),
             Contains("violates rule tuner_protocol: ") && Contains("protocol is none"));
  CHECK(testing::error_of(testing::kSingle, {file, "collectives.protocol=auto"}) == "(no error)");
  folder.put("t.conf", "allreduce,0,99,ring\n");
  CHECK_THAT(testing::error_of(testing::kSingle, {file}), Contains("t.conf:1: has 4 columns"));
  CHECK_THAT(testing::error_of(testing::kSingle, {"collectives.tuner_file=nowhere.conf"}), Contains("nowhere.conf"));
}

TEST_CASE("lower bounds are below steps whose collectives a tuner's table chooses") {
  for (const char* table :
       {"allreduce,0,99999999999,tree,simple,-1,-1,-1\n", "allreduce,0,99999999999,ring,ll,-1,2,-1\n",
        "allreduce,0,99999999999,ring,ll,-1,1,-1\nallreduce,0,99999999999,tree,ll128,-1,-1,-1\n"})
    for (const char* protocol : {"calibrated", "auto"}) {
      const auto sweep = sweep_with(table, {std::string("collectives.protocol=") + protocol, "collectives.channels=0",
                                            "collectives.all_reduce=auto", "strategy.pp=1", "fidelity=analytic"});
      experiments::GraphCache graphs;
      const auto configuration = configure(sweep.experiments.front(), graphs);
      core::step::SimulationContext context;
      core::step::IsolatedResults known;
      const auto step_ps = context.run(context.compile(configuration), known).step_ps;
      CAPTURE(table, protocol);
      CHECK(core::step::LowerBounds().of(configuration) <= step_ps);
    }
}

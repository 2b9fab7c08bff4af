// GOAL: schedules take what their closed forms say, and programs written as GOAL are what they were.
#include <sstream>

#include "core/step/layout/as_given.hpp"
#include "experiments/goal/goal_file.hpp"
#include "experiments/goal/read_goal.hpp"
#include "experiments/goal/write_goal.hpp"
#include "tests/experiments/given_steps.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::goal;

namespace {

/// Returns the step of programs inside one node.
Time in_one_node(const programs::StreamPrograms& programs, network::Fidelity fidelity = network::Fidelity::analytic) {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = static_cast<std::uint32_t>(programs.ranks.program_of_rank.size());
  step::Configuration machines = config_of(cluster, 1, 1, 1);
  machines.programs = std::make_shared<const workload::GivenPrograms>(
      programs::timed_on(programs, machines.gpu, nullptr, programs.name).programs);
  machines.model = {};
  machines.strategy = {};
  return run_at(machines, fidelity).step_ps;
}

/// A broadcast of one byte over a binomial tree, as LogGOPSim's example binary_tree_32.goal: rank r sends to r + 2^k
/// for every 2^k above r, the nearest first.
std::string tree(std::uint32_t ranks) {
  std::string text = fmt::format("num_ranks {}\n", ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    text += fmt::format("\nrank {} {{\n", rank);
    std::uint32_t power = 1, label = 1;
    while (power <= rank) power *= 2;
    if (rank > 0) text += fmt::format("l{}: recv 1b from {} tag 0\n", label++, rank - power / 2);
    for (; rank + power < ranks; power *= 2, ++label) {
      text += fmt::format("l{}: send 1b to {} tag 0\n", label, rank + power);
      if (rank > 0) text += fmt::format("l{} requires l1\n", label);
    }
    text += "}\n";
  }
  return text;
}

/// When the last rank of the tree has it: LogP with o for each end and `transfer_ps` between them.
Time tree_ps(std::uint32_t ranks, Time overhead_ps, Time transfer_ps) {
  std::vector<Time> has(ranks);
  Time last = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    last = std::max(last, has[rank]);
    std::uint32_t power = 1, sends = 0;
    while (power <= rank) power *= 2;
    for (; rank + power < ranks; power *= 2)
      has[rank + power] = has[rank] + ++sends * overhead_ps + transfer_ps + overhead_ps;
  }
  return last;
}

void put(std::string& to, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to.push_back(static_cast<char>(number >> (8 * i) & 0xff));
}

/// A binary schedule, written plainly after LogGOPSim's Parser.hpp: of each rank a count of nodes and one of those that
/// nothing precedes, these, the nodes, and behind them the nodes that wait for each, for its end and then its start.
std::string binary_of(const GoalFile& file) {
  std::string jumps, ranks;
  const std::size_t first = 6 + 16 * file.ranks.size();
  for (const std::vector<GoalOp>& ops : file.ranks) {
    std::string roots, nodes, waiting;
    std::uint32_t root_count = 0, waiting_count = 0;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const GoalOp& op = ops[i];
      if (op.waits.empty() && op.starts.empty()) put(roots, i, 4), ++root_count;
      put(nodes, op.waits.size() + op.starts.size(), 4);
      put(nodes, op.kind == GoalKind::send ? 1 : op.kind == GoalKind::receive ? 2 : 3, 1);
      put(nodes, op.peer, 4), put(nodes, static_cast<std::uint64_t>(op.size), 8), put(nodes, op.tag, 4);
      put(nodes, op.cpu, 1), put(nodes, op.nic, 1);
      for (const bool start : {false, true}) {
        std::uint32_t count = 0;
        for (std::uint32_t other = 0; other < ops.size(); ++other)
          for (const std::uint32_t before : start ? ops[other].starts : ops[other].waits)
            if (before == i) put(waiting, other, 4), ++count;
        put(nodes, count, 4), put(nodes, waiting_count, 4);
        waiting_count += count;
      }
    }
    put(jumps, first + ranks.size(), 8);
    put(ranks, ops.size(), 4), put(ranks, root_count, 4);
    ranks += roots + nodes + waiting;
    put(jumps, first + ranks.size(), 8);
  }
  std::string data;
  put(data, 4223, 8), put(data, file.ranks.size(), 4), put(data, 0, 2);
  return data + jumps + ranks;
}

std::string error(const std::string& text) {
  return error_of([&] { import_goal(text, "g.goal"); });
}

}  // namespace

TEST_CASE("a text of GOAL is read as it stands") {
  const GoalFile file = parse_goal_file(
      "num_ranks 2\n// a comment\nrank 0 {\n a: calc 100 cpu 1\nb: send 8b to 1 tag 3 cpu 2 nic 1\n/* more\n lines */\n"
      "b requires a\nc: recv 9b from 1\nc irequires b\ncalc 5\n}\n",
      "g");
  REQUIRE(file.ranks.size() == 2);
  CHECK(file.ranks[1].empty());
  const std::vector<GoalOp>& ops = file.ranks[0];
  REQUIRE(ops.size() == 4);
  CHECK(ops[0].cpu == 1);
  CHECK(ops[1].kind == GoalKind::send);
  CHECK(ops[1].size == 8);
  CHECK(ops[1].peer == 1);
  CHECK(ops[1].tag == 3);
  CHECK(ops[1].waits == std::vector<std::uint32_t>{0});
  CHECK(ops[2].kind == GoalKind::receive);
  CHECK(ops[2].starts == std::vector<std::uint32_t>{1});
  CHECK(ops[2].line == 9);
  CHECK(ops[3].size == 5);
}

TEST_CASE("a binary schedule of GOAL is the program of its text") {
  const std::string text =
      "num_ranks 2\nrank 0 {\na: calc 100 cpu 1\nb: send 80000b to 1 tag 3 cpu 2 nic 1\nb requires a\nc: recv 9b from "
      "1\nc irequires b\nd: calc 5\nd requires b\nd requires c\n}\nrank 1 {\nrecv 80000b from 0 tag 3\nsend 9b to "
      "0\n}\n";
  const std::string data = binary_of(parse_goal_file(text, "g.goal"));
  CHECK(is_goal_binary(data));
  CHECK_FALSE(is_goal_binary(text));
  const programs::Imported given = import_goal(text, "g"), read = import_goal(data, "g");
  CHECK(read.programs.programs == given.programs.programs);
  CHECK(read.account == given.account);
  // Cut anywhere, it is refused; so it is with another node, count or cookie.
  for (std::size_t size = 8; size < data.size(); ++size)
    CHECK(error_of([&] { import_goal(data.substr(0, size), "g.bin"); }).find("g.bin: ") == 0);
  const auto changed = [&](std::size_t at, char to) {
    std::string other = data;
    other[at] = to;
    return error_of([&] { import_goal(other, "g.bin"); });
  };
  const std::size_t node = 8 + 6 + 32 + 8 + 4;  // the first one of rank 0, which has one root
  CHECK(changed(node + 4, 7) == "g.bin: rank 0, operation 0: is of sort 7, where 1 to 3 are right");
  CHECK(changed(node, 5).find("g.bin: rank 0, operation 0: waits for 5 operations, and 0 are said") == 0);
  CHECK(changed(node + 39 + 5, 9).find("g.bin: rank 0, operation 1: has peer 9 of 2 ranks") == 0);
  std::string used;
  put(used, 2342, 8);
  CHECK(error(used).find("g.goal: is a schedule that LogGOPSim has used up") == 0);
}

TEST_CASE("schedules as ATLAHS writes them are read: tags of many digits, more processors, comments before all") {
  const std::string text =
      "// made by a tool\n/* of one\n   sort */\nnum_ranks 2\nrank 0 {\nsend 8b to 1 tag 12070123107 cpu 300\n}\n"
      "rank 1 {\nrecv 8b from 0 tag 12070123107\n}\n";
  CHECK(is_goal_file(text));
  const GoalFile file = parse_goal_file(text, "g");
  CHECK(file.ranks[0][0].tag == 12'070'123'107);
  CHECK(file.ranks[0][0].cpu == 300);
  CHECK(in_one_node(import_goal(text, "g").programs) == transfer_alone(8));
}

TEST_CASE("thousands of receives that are open at once are streams of their own, and what waits for them waits") {
  constexpr int kMessages = 1500;  // of tags of their own, more than the graph looks through for what others imply
  std::string sends = "a: calc 1000000\n", receives = "e: calc 1000\n";
  for (int i = 0; i < kMessages; ++i) {
    sends += fmt::format("s{0}: send 8b to 1 tag {0}\n", i);
    receives += fmt::format("r{0}: recv 8b from 0 tag {0}\ne requires r{0}\n", i);
  }
  const std::string text = "num_ranks 2\nrank 0 {\n" + sends + fmt::format("s{} requires a\n", kMessages - 1) +
                           "}\nrank 1 {\n" + receives + "}\n";
  const programs::Imported imported = import_goal(text, "g");
  CHECK(imported.programs.programs[1].ops.size() == kMessages + 1);
  CHECK(in_one_node(imported.programs) == 1'000'000'000 + transfer_alone(8) + 1'000'000);
}

TEST_CASE("a broadcast over a binomial tree takes its closed form") {
  const Time transfer =
      in_one_node(import_goal("num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n", "t").programs);
  for (const std::uint32_t ranks : {2u, 3u, 8u, 32u})
    for (const network::Fidelity fidelity : {network::Fidelity::packet, network::Fidelity::analytic}) {
      INFO("ranks " << ranks);
      GoalOptions options;
      options.overhead_ns = 200;  // LogGOPSim's parameters of this example
      const programs::Imported imported = import_goal(tree(ranks), "tree.goal", options);
      CHECK(in_one_node(imported.programs, fidelity) == tree_ps(ranks, 200'000, transfer));
    }
}

TEST_CASE("calculations of one cpu take turns, and those of others run beside them") {
  const auto time_of = [](const std::string& ops) {
    return in_one_node(import_goal("num_ranks 2\nrank 0 {\n" + ops + "}\nrank 1 {\ncalc 1\n}\n", "g").programs);
  };
  CHECK(time_of("calc 1000\ncalc 2000\n") == 3'000'000);
  CHECK(time_of("calc 1000 cpu 0\ncalc 2000 cpu 1\n") == 2'000'000);
  CHECK(time_of("a: calc 1000 cpu 0\nb: calc 2000 cpu 1\nb requires a\n") == 3'000'000);
  CHECK(time_of("a: calc 1000 cpu 0\nb: calc 2000 cpu 1\nb irequires a\n") == 2'000'000);
}

TEST_CASE(
    "small messages of one rank and tag go one after the other, which is told, and those of other tags together") {
  const auto read = [](const char* second) {
    return import_goal(fmt::format("num_ranks 2\nrank 0 {{\nsend 8b to 1 tag 1\nsend 8b to 1 tag {0}\n}}\nrank 1 {{\n"
                                   "recv 8b from 0 tag 1\nrecv 8b from 0 tag {0}\n}}\n",
                                   second),
                       "g");
  };
  CHECK(in_one_node(read("1").programs) == 2 * transfer_alone(8));
  CHECK(read("1").account.back().find("1 transfers of up to S bytes begin when the one before them has arrived") == 0);
  CHECK(in_one_node(read("2").programs) < 2 * transfer_alone(8));
  CHECK(read("2").account.back().find("the order of a cpu's work is fixed") == 0);
}

TEST_CASE("small messages travel before their receiver asks for them, and nobody waits for their sends") {
  const auto time_of = [](std::int64_t bytes) {
    return in_one_node(
        import_goal(fmt::format("num_ranks 2\nrank 0 {{\na: send {0}b to 1\nb: calc 1000\nb requires a\n}}\n"
                                "rank 1 {{\nc: calc 9000\nd: recv {0}b from 0\nd requires c\n}}\n",
                                bytes),
                    "g")
            .programs);
  };
  CHECK(time_of(100'000) == 9'000'000 + transfer_alone(100'000) + 1'000'000);
  CHECK(time_of(10'000) == 9'000'000);  // it has come before the receiver asks for it
}

TEST_CASE("collectives written as GOAL are the transfers of their algorithm, and take its time") {
  const auto goal_of = [](const std::string& kind, std::int64_t bytes) {
    return goal_text(programs::parse_program_file(
                         fmt::format("{{\"manyworlds_program\":1,\"name\":\"one\"}}\n{{\"dimension\":\"c\"}}\n"
                                     "{{\"groups\":\"c\",\"ranks\":[[0,1,2,3]]}}\n{{\"program\":\"p\",\"ranks\":\"0-"
                                     "3\",\"streams\":[\"s\"]}}\n"
                                     "{{\"collective\":\"{}\",\"in\":\"c\",\"bytes\":{},\"stream\":\"s\"}}\n",
                                     kind, bytes),
                         "one"),
                     "one");
  };
  const auto sends_of = [&](const std::string& kind) {
    std::map<std::int64_t, int> sends;  // of rank 0, by bytes
    const GoalFile file = parse_goal_file(goal_of(kind, 65536), "g");
    for (const GoalOp& op : file.ranks[0])
      if (op.kind == GoalKind::send) ++sends[op.size];
    return sends;
  };
  using Sends = std::map<std::int64_t, int>;
  CHECK(sends_of("all_reduce") == Sends{{16384, 6}});  // a ring of 4: 2 (n - 1) chunks of a quarter
  CHECK(sends_of("all_gather") == Sends{{16384, 3}});
  CHECK(sends_of("reduce_scatter") == Sends{{16384, 3}});
  CHECK(sends_of("all_to_all") == Sends{{16384, 3}});
  CHECK(sends_of("broadcast") == Sends{{65536, 2}});  // the root of a binomial tree of 4
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    INFO(kind);
    CHECK(in_one_node(import_goal(goal_of(kind, 65536), "g").programs) == alone(kind, 65536, "[0,1,2,3]", 4));
  }
}

TEST_CASE("the programs of drawn experiments, written as GOAL, are schedules whose ranks meet") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    step::SimulationContext context;
    const programs::StreamPrograms programs =
        programs::as_stream_programs(step::as_given(configuration, context.compile(configuration).layout()), "drawn");
    const std::string text = goal_text(programs, "drawn");
    const GoalFile file = parse_goal_file(text, "drawn.goal");
    REQUIRE(file.ranks.size() == programs.ranks.program_of_rank.size());
    std::int64_t sent = 0, received = 0;
    for (const std::vector<GoalOp>& rank : file.ranks)
      for (const GoalOp& op : rank)
        (op.kind == GoalKind::send ? sent : received) += op.kind == GoalKind::calculate ? 0 : op.size;
    REQUIRE(sent == received);
    REQUIRE(import_goal(text, "drawn.goal").programs.programs.size() > 0);
  }
}

TEST_CASE("programs are written as GOAL line by line, and no text of them is held") {
  class LongestWrite final : public std::streambuf {
   public:
    std::string text;
    std::streamsize longest = 0;

   private:
    std::streamsize xsputn(const char* data, std::streamsize count) override {
      longest = std::max(longest, count);
      text.append(data, static_cast<std::size_t>(count));
      return count;
    }
    int_type overflow(int_type c) override {
      text.push_back(traits_type::to_char_type(c));
      return c;
    }
  };
  const programs::StreamPrograms programs = programs::parse_program_file(
      "{\"manyworlds_program\":1,\"name\":\"one\"}\n{\"dimension\":\"c\"}\n"
      "{\"groups\":\"c\",\"ranks\":[[0,1,2,3]]}\n{\"program\":\"p\",\"ranks\":\"0-3\",\"streams\":[\"s\"]}\n"
      "{\"collective\":\"all_reduce\",\"in\":\"c\",\"bytes\":65536,\"stream\":\"s\"}\n",
      "one");
  LongestWrite buffer;
  std::ostream out(&buffer);
  write_goal(out, programs, "one");
  CHECK(buffer.text == goal_text(programs, "one"));
  CHECK(buffer.text.size() > 1'000);
  CHECK(buffer.longest < 100);
}

TEST_CASE("what GOAL does not say of the programs that it is written of is told") {
  const programs::StreamPrograms programs = programs::parse_program_file(
      "{\"manyworlds_program\":1,\"gpu\":\"a100_80\"}\n{\"dimension\":\"c\"}\n"
      "{\"groups\":\"c\",\"ranks\":[[0,1]]}\n{\"program\":\"p\",\"ranks\":\"0-1\",\"streams\":[\"s\"]}\n"
      "{\"kernel\":\"a\",\"us\":0.0004,\"stream\":\"s\"}\n{\"kernel\":\"a\",\"us\":2.5,\"stream\":\"s\"}\n"
      "{\"collective\":\"all_reduce\",\"in\":\"c\",\"bytes\":64,\"stream\":\"s\"}\n",
      "p");
  std::ostringstream text;
  CHECK(write_goal(text, programs, "p") ==
        std::vector<std::string>{"kernels, copies and work of hosts are calc, without names and bytes",
                                 "collectives are the transfers of an algorithm: all_reduce by ring",
                                 "up to 1 durations of a rank are rounded to whole nanoseconds, which changes their "
                                 "sum by up to 0.0004 us",
                                 "left out: the GPU of the times (a100_80)"});
}

TEST_CASE("what is wrong in a text of GOAL is said with its line") {
  CHECK(error("") == "g.goal:1: has no num_ranks");
  CHECK(error("rank 0 {\n}\n") == "g.goal:1: has a rank before num_ranks");
  CHECK(error("num_ranks 2\nrank 2 {\n}\n") == "g.goal:2: has '2' as rank, where an integer from 0 to 1 is right");
  CHECK(error("num_ranks 2\nrank 0 {\ncalc 1\n") == "g.goal:4: has no } of rank 0");
  CHECK(error("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n") == "g.goal:4: has rank 0 twice");
  CHECK(error("num_ranks 2\nrank 0 {\nsend 5 to 1\n}\n") == "g.goal:3: has no 'b' where it must stand");
  CHECK(error("num_ranks 2\nrank 0 {\nrecv 5b from -1\n}\n").find("g.goal:3: has -1 as peer: receives of any source") ==
        0);
  CHECK(error("num_ranks 2\nrank 0 {\na: calc 1\na: calc 1\n}\n") == "g.goal:4: has label 'a' twice in a rank");
  CHECK(error("num_ranks 2\nrank 0 {\na: calc 1\nb requires a\n}\n") == "g.goal:4: has no operation 'b' in this rank");
  CHECK(error("num_ranks 2\nrank 0 {\na: calc 1 tag 2\n}\n").find("'tag' where tag, cpu, nic or the end") !=
        std::string::npos);
  CHECK(error("num_ranks 2\nrank 0 {\na: calc 1 }\n").find("no error") == 0);
  CHECK(
      error("num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n").find("has a circle of 2") !=
      std::string::npos);
  CHECK(error("num_ranks 2\nrank 0 {\nsend 5b to 0\n}\n") == "g.goal:3: has rank 0 sending to itself");
  CHECK(error("num_ranks 2\nrank 0 {\nsend 5b to 1\n}\n").find("do not match 0 receives there") != std::string::npos);
  CHECK(error("num_ranks 2\n/* never ends\n").find("a comment without an end") != std::string::npos);
}

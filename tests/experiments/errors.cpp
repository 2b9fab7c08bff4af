// Every kind of bad sweep ends in one line with file, line, key and what would be right.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::StartsWith;

namespace {

struct Case {
  const char* from;  // replaced in kSingle
  const char* to;
  int line;
  std::vector<std::string> says;
};

void check(const std::string& text, int line, const std::vector<std::string>& says) {
  const std::string message = error_of(text);
  CAPTURE(text);
  CHECK_THAT(message, StartsWith(fmt::format("s.yaml:{}: ", line)));
  for (const std::string& part : says) CHECK_THAT(message, Contains(part));
  CHECK(message.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("the experiment that these tests bend is valid") {
  REQUIRE(read(kSingle).experiments.size() == 1);
}

TEST_CASE("faults in the document name line, key and what would be right") {
  const std::vector<Case> cases{
      {"tp: 2", "tpp: 2", 6, {"'strategy.tpp'", "did you mean 'tp'"}},
      {"strategy:", "stratgy:", 6, {"'stratgy'", "did you mean 'strategy'"}},
      {"tp: 2, pp", "tp: 2, tp: 2, pp", 6, {"'tp' is repeated"}},
      {"tp: 2", "tp: two", 6, {"'strategy.tp'", "an integer from 1 to 1024", "'two'"}},
      {"tp: 2", "tp: 0", 6, {"'strategy.tp'", "from 1", "not 0"}},
      {"tp: 2", "tp: -2", 6, {"'strategy.tp'", "not -2"}},
      {"tp: 2", "tp: [2]", 6, {"'strategy.tp'", "a list"}},
      {"tp: 2", "tp: 2.5", 6, {"'strategy.tp'", "'2.5'"}},
      {"tp: 2", "tp: 99999", 6, {"'strategy.tp'", "to 1024", "99999"}},
      {"tp: 2", "dp: 2", 6, {"unknown key 'strategy.dp'"}},
      {"tp: 2", "sequence_parallel: yes", 6, {"true or false"}},
      {"tp: 2", "recompute: some", 6, {"none, selective, full"}},
      {"tp: 2", "recompute_modules: [layernorm, mlpact]", 6, {"some of core_attn", "or none", "mlpact"}},
      {"tp: 2", "recompute_modules: mlp+mlp", 6, {"some of core_attn", "'mlp+mlp'"}},
      {"tp: 2", "stage_layers: [2, many]", 6, {"a list of integers from 0", "'2+many'"}},
      {"tp: 2", "stage_layers: [[2]]", 6, {"a list of integers from 0", "a list"}},
      {"layers: 4", "layers: 99999999", 2, {"'model.layers'", "10000"}},
      {"layers: 4, ", "", 2, {"'model.layers' is missing"}},
      {"nic_gbps: 200", "nic_gbps: nan", 3, {"'cluster.nic_gbps'", "a number (Gb/s)"}},
      {"nic_gbps: 200", "nic_gbps: 0", 3, {"'cluster.nic_gbps'"}},
      {"nic_gbps: 200", "nic_gbps: 1e400", 3, {"'cluster.nic_gbps'"}},
      {", nic_gbps: 200", "", 3, {"'cluster.nic_gbps' is missing"}},
      {"nodes: 2", "nodes: 1000000000000", 3, {"'cluster.nodes'", "131072"}},
      {"a100_40", "a100_41", 3, {"unknown gpu 'a100_41'", "did you mean 'a100_40'"}},
      {"rail_optimized:", "rail_optimised:", 4, {"unknown topology 'rail_optimised'", "did you mean 'rail_optimized'"}},
      {"oversubscription: 1",
       "oversubscribed: 1",
       4,
       {"topology.rail_optimized.oversubscribed", "did you mean 'oversubscription'"}},
      {"oversubscription: 1", "oversubscription: 0", 4, {"topology.rail_optimized.oversubscription"}},
      {"{rail_optimized: {oversubscription: 1}}", "[fat_tree]", 4, {"'topology'", "one name"}},
      {"dcqcn",
       "{routing: ecmp_hash}",
       5,
       {"unknown transport 'routing', but an option: transport: {NAME: {routing: …}}", "or transport.routing beside"}},
      {"dcqcn", "dcqnc", 5, {"unknown transport 'dcqnc'", "did you mean 'dcqcn'"}},
      {"dcqcn", "{dcqcn: {payload_bytes: 4KiB, header_bytes: 2MiB}}", 5, {"'transport.dcqcn.header_bytes'", "1024"}},
      {"dcqcn", "{dcqcn: {window_bytes: 1MiB}}", 5, {"unknown key 'transport.dcqcn.window_bytes'"}},
      {"base:\n", "base:\n  fidelity: flow\n", 2, {"'fidelity' must be one of packet, analytic, fluid, not 'flow'"}},
      {"base:\n", "base:\n  composition: both\n", 2, {"composed, coupled"}},
      {"base:\n", "base:\n  limit: {events: 0}\n", 2, {"'limit.events'"}},
      {"base:\n", "base:\n  tick_ns: -1\n", 2, {"'tick_ns' must be an integer (ns) from 0 to 1000000"}},
      {"base:\n", "base:\n  tick_ns: 1000001\n", 2, {"'tick_ns' must be an integer (ns) from 0 to 1000000"}},
      {"base:\n", "base:\n  tick_ns: 0.5\n", 2, {"'tick_ns' must be an integer (ns)"}},
      {"base:\n", "base:\n  tick_ns: often\n", 2, {"'tick_ns' must be an integer"}},
      {"base:\n", "base:\n  ticks_ns: 200\n", 2, {"unknown key 'ticks_ns'", "did you mean 'tick_ns'"}},
      {"base:\n", "base:\n  placement: {order: pp-tp}\n", 2, {"tp-cp-ep-dp-pp"}},
      {"{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}",
       "gpt3-14b",
       2,
       {"unknown model 'gpt3-14b'", "did you mean 'gpt3-13b'"}},
      {"{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", "{like: gpt4}", 2, {"unknown model 'gpt4'"}},
      {"{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}",
       "[gpt3-13b]",
       2,
       {"'model'", "a mapping or a name"}},
  };
  for (const Case& one : cases) check(with(kSingle, one.from, one.to), one.line, one.says);
}

TEST_CASE("faults around the base name their line") {
  check(kSingle + "axis: {}\n", 7, {"unknown key 'axis'", "did you mean 'axes'"});
  check(kSingle + "strategy: {}\n", 7, {"unknown key 'strategy'", "under 'base'"});
  check("name: x\n", 1, {"'base' is missing"});
  check(kSingle + "objective: speed\n", 7, {"'objective'", "tokens_per_s_per_gpu"});
  check(kSingle + "measured: {step_time_s: -1, source: x}\n", 7, {"measured.step_time_s"});
  check(kSingle + "measured: {step_time_s: 1}\n", 7, {"'measured' needs"});
}

TEST_CASE("faults in axes and zip groups name their line") {
  const auto axes = [](const std::string& line) { return kSingle + "axes:\n  strategy.pp: [1, 2]\n  " + line + "\n"; };
  check(axes("strategy.tpp: [1]"), 9, {"unknown key 'strategy.tpp'", "did you mean 'tp'"});
  check(axes("stategy.tp: [1]"), 9, {"unknown key 'stategy.tp'", "did you mean 'strategy.tp'"});
  check(axes("strategy.tp.x: [1]"), 9, {"unknown key 'strategy.tp.x'"});
  check(axes("topology.oversubscribe: [1]"), 9, {"did you mean 'oversubscription'"});
  check(axes("strategy.tp: 1"), 9, {"'strategy.tp' must be a list"});
  check(axes("strategy.tp: []"), 9, {"an empty list"});
  check(axes("strategy.tp: [1, 0]"), 9, {"'strategy.tp' must be an integer from 1"});
  check(axes("strategy.tp: [1, x]"), 9, {"'strategy.tp' must be an integer"});
  check(axes("strategy.tp: [1, 2, 1]"), 9, {"repeats the value 1"});
  check(kSingle + "zip:\n  - {strategy.tp: [1, 2, 1], strategy.pp: [1, 2, 1]}\n", 8, {"repeats 1, 1 together"});
  check(axes("strategy.tp: {range: [1, 8]}"), 9, {"a range must be"});
  check(axes("strategy.tp: {range: [1, 8, 2]}"), 9, {"\"*N\""});
  check(axes("strategy.tp: {range: [1, 8, \"*1\"]}"), 9, {"N > 1"});
  check(axes("strategy.tp: {range: [1, 8, \"+0\"]}"), 9, {"N > 0"});
  check(axes("strategy.tp: {range: [8, 1, \"*2\"]}"), 9, {"begin at most where it ends"});
  check(axes("strategy.tp: {ranges: [1, 8, \"*2\"]}"), 9, {"'ranges'"});
  check(axes("strategy.global_batch: {range: [1, 1000000, \"+1\"]}"), 9, {"more than 10000 values"});
  check(axes("model: {range: [1, 8, \"*2\"]}"), 9, {"no number"});
  check(axes("strategy: [{pp: 1}]"), 8, {"'strategy.pp' is also set by the values of axis 'strategy'"});
  check(kSingle + "zip:\n  - {strategy.tp: [1, 2], strategy.pp: [1]}\n", 8,
        {"'strategy.pp' has 1 values", "move together"});
  check(kSingle + "axes: {strategy.tp: [1, 2]}\nzip:\n  - {strategy.tp: [1, 2]}\n", 9,
        {"'strategy.tp' is an axis twice"});
  check(kSingle + "axes: {topology.fat_tree.spines: [1, 2]}\n", 7, {"'fat_tree'", "'rail_optimized' is chosen"});
}

TEST_CASE("faults in a where name its line before any combination is judged") {
  const auto where = [](const std::string& expression) { return kSingle + "where:\n  - '" + expression + "'\n"; };
  check(where("strategy.tp <"), 8, {"where 'strategy.tp <'"});
  check(where("strategy.tp * (2 <= 3"), 8, {"where"});
  check(where("strategy.tpp <= 3"), 8, {"unknown key 'strategy.tpp'", "did you mean 'tp'"});
  check(where("strategy.tp = 3"), 8, {"'==' compares"});
  check(where("strategy.tp + 3"), 8, {"true or false"});
  check(where("strategy <= 3"), 8, {"is a section"});
  check(where("1 <= 3"), 8, {"names no key"});
  check(where("strategy.tp == \"2"), 8, {"not closed"});
  check(where("{strategy.tp}"), 8, {"'{' means nothing"});
  check(where("topology.spines <= 3 and topology.pod_leaves < 1"), 8, {"'topology.pod_leaves' has no value"});
  check(where(""), 8, {"where"});
}

TEST_CASE("an override that is wrong is named as it was given") {
  const auto message = [](const std::string& given) { return error_of(kSingle, {given}); };
  CHECK_THAT(message("strategy.tp=two"), StartsWith("--set strategy.tp=two: 'strategy.tp' must be an integer"));
  CHECK_THAT(message("strategy.tpp=2"), Contains("did you mean 'tp'"));
  CHECK_THAT(message("strategy.tp"), Contains("key=value"));
  CHECK_THAT(message("strategy.tp="), StartsWith("--set strategy.tp=: has no value behind '='"));
  CHECK_THAT(message("transport="), StartsWith("--set transport=: has no value behind '='"));
  CHECK_THAT(message("strategy.tp=3"), StartsWith("--set strategy.tp=3: 'strategy.tp' violates rule"));
  CHECK_THAT(error_of(kSingle, {"strategy.tp=1", "strategy.tp=2"}), Contains("set twice"));
}

TEST_CASE("an override without a value takes away a text that a sweep sets") {
  const std::string fails = kSingle + "  faults: {fails: gpu0@1ms, reconverge_us: 1}\n";
  CHECK_THAT(error_of(fails), Contains("failures_fit"));
  CHECK(error_of(fails, {"faults.fails="}) == error_of(kSingle));
  CHECK(read(fails, {"faults.fails="}).experiments.front().settings.text("faults.fails").empty());
}

TEST_CASE("files and folders that cannot be read are named") {
  CHECK_THROWS_WITH(read_sweep("/nowhere/x.yaml"), StartsWith("/nowhere/x.yaml: cannot be read: No such file"));
  CHECK_THROWS_WITH(read_sweep("/"), Contains("is a folder"));
  CHECK_THROWS_WITH(Catalog("/nowhere"), StartsWith("/nowhere: is no readable folder"));
}

TEST_CASE("a sweep without a valid point says what left its points out") {
  const std::string text = kSingle + "axes:\n  strategy.tp: [3, 5]\n";
  CHECK_THAT(error_of(text), StartsWith("s.yaml:8: no valid point: ") &&
                                 Contains("(tp_by_node); all 2 combinations are excluded: tp_by_node 2"));
}

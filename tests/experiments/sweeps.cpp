// What a sweep expands to: order, ranges, zip groups, constraints, overrides, columns, and the sweeps we ship.
#include <catch2/catch.hpp>

#include <cmath>

#include "experiments/sweep/space.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::OptionValue;
using Row = std::vector<OptionValue>;

namespace {

const std::string kSweeps = source_folder() + "/experiments/sweeps/";

std::vector<std::int64_t> column(const Sweep& sweep, const std::string& key) {
  std::vector<std::int64_t> values;
  for (const Experiment& experiment : sweep.experiments) values.push_back(integer(experiment, key));
  return values;
}
std::vector<std::int64_t> batches(const std::string& range) {
  return column(read(kSingle + "axes:\n  strategy.global_batch: {range: " + range + "}\n"), "strategy.global_batch");
}

}  // namespace

TEST_CASE("the last axis moves fastest, and zip groups come after axes") {
  const Sweep sweep = read(kSingle +
                           "axes:\n  strategy.tp: [1, 2]\n  strategy.pp: [1, 2]\n"
                           "zip:\n  - {strategy.micro_batch: [1, 2], strategy.recompute: [none, full]}\n"
                           "where: ['strategy.global_batch >= strategy.dp * strategy.micro_batch']\n");
  CHECK(column(sweep, "strategy.tp") == std::vector<std::int64_t>{1, 1, 1, 2, 2, 2, 2});
  CHECK(column(sweep, "strategy.pp") == std::vector<std::int64_t>{1, 2, 2, 1, 1, 2, 2});
  CHECK(column(sweep, "strategy.micro_batch") == std::vector<std::int64_t>{1, 1, 2, 1, 2, 1, 2});
  for (const Experiment& one : sweep.experiments)
    CHECK((text(one, "strategy.recompute") == "full") == (integer(one, "strategy.micro_batch") == 2));
  REQUIRE(sweep.excluded.size() == 1);  // tp 1, pp 1: 8 replicas of 2 are more than 8
  CHECK(sweep.excluded[0].rule == "where");
}

TEST_CASE("ranges multiply or add up to their end") {
  CHECK(batches("[8, 64, \"*2\"]") == std::vector<std::int64_t>{8, 16, 32, 64});
  CHECK(batches("[8, 70, \"*2\"]") == std::vector<std::int64_t>{8, 16, 32, 64});
  CHECK(batches("[8, 24, \"+8\"]") == std::vector<std::int64_t>{8, 16, 24});
  CHECK(batches("[8, 8, \"+8\"]") == std::vector<std::int64_t>{8});
  const Sweep reals = read(kSingle + "axes:\n  cluster.nic_gbps: {range: [0.1, 0.5, \"+0.1\"]}\n");
  REQUIRE(reals.experiments.size() == 5);
  CHECK(std::get<double>(reals.experiments[4].settings.at("cluster.nic_gbps")) == 0.5);
}

TEST_CASE("constraints compare numbers, names and what follows from the layout") {
  const auto count = [](const std::string& expression) {
    return read(kSingle + "axes:\n  strategy.tp: [1, 2, 4]\n  topology: [one_switch, rail_optimized]\nwhere: ['" +
                expression + "']\n")
        .experiments.size();
  };
  CHECK(count("strategy.tp <= 2") == 4);
  CHECK(count("strategy.tp == 1 or strategy.tp == 4") == 4);
  CHECK(count("strategy.tp > 1 and topology == \"one_switch\"") == 2);
  CHECK(count("topology != \"one_switch\"") == 3);
  CHECK(count("strategy.dp == cluster.gpus / (strategy.tp * strategy.pp)") == 6);
  CHECK(count("cluster.gpu == \"a100_40\"") == 6);
  CHECK(count("strategy.dp >= 2 && strategy.tp >= 2") == 2);
  CHECK(count("transport == \"dcqcn\"") == 6);
}

TEST_CASE("an axis over mappings gives a label and a column per leaf that differs") {
  const Sweep sweep =
      read(kSingle +
           "axes:\n  topology: [{fat_tree: {oversubscription: 1, leaf_hosts: 4}}, {fat_tree: "
           "{oversubscription: 4, leaf_hosts: 4}}, one_switch]\n  strategy: [{tp: 1, pp: 2}, {tp: 2}]\n");
  std::vector<std::string> names;
  for (const AxisColumn& one : sweep.columns) names.push_back(one.name);
  CHECK(names == std::vector<std::string>{"topology", "topology.leaf_hosts", "topology.oversubscription", "strategy",
                                          "strategy.tp"});
  REQUIRE(sweep.experiments.size() == 6);
  const Row& row = sweep.experiments[2].axes;
  CHECK(std::get<std::string>(row[0]) == "fat_tree(oversubscription=4,leaf_hosts=4)");
  CHECK(std::get<double>(row[2]) == 4.0);
  CHECK(std::get<std::string>(row[3]) == "tp=1,pp=2");
  CHECK(std::get<std::int64_t>(row[4]) == 1);
  CHECK(std::isnan(std::get<double>(sweep.experiments[5].axes[2])));   // one_switch has no oversubscription
  CHECK(integer(sweep.experiments[3], "strategy.global_batch") == 8);  // a section keeps what an axis leaves unsaid
}

TEST_CASE("an option of the chosen component is an axis of its own") {
  const Sweep sweep =
      read(kSingle + "axes:\n  topology.oversubscription: [1, 2]\n  topology: [rail_optimized, fat_tree]\n");
  REQUIRE(sweep.experiments.size() == 4);
  CHECK(text(sweep.experiments[3], "topology") == "fat_tree");
  CHECK(std::get<double>(sweep.experiments[3].settings.at("topology.oversubscription")) == 2.0);
}

TEST_CASE("overrides change the base, and give an axis one value") {
  const std::string axes = kSingle + "axes:\n  strategy.tp: [1, 2]\n";
  CHECK(column(read(axes, {"strategy.global_batch=32"}), "strategy.global_batch") == std::vector<std::int64_t>{32, 32});
  const Sweep pinned = read(axes, {"strategy.tp=4"});
  CHECK(column(pinned, "strategy.tp") == std::vector<std::int64_t>{4});
  CHECK(pinned.columns.size() == 1);
  CHECK(text(read(kSingle, {"model=gpt3-13b", "model.sequence=1024", "model.layers=8"}).experiments[0], "model.name") ==
        "gpt3-13b");
}

TEST_CASE("a dotted key within a section is the key below it") {
  const auto with = [](const std::string& strategy) {
    const Sweep sweep = read(
        "base:\n  model: gpt3-1.3b\n  cluster: {like: dgx_h100_superpod, nodes: 1}\n  strategy: {" + strategy + "}\n");
    return sweep.experiments.front().settings;
  };
  CHECK(with("stack.precision: fp8, tp: 2, global_batch: 8") ==
        with("stack: {precision: fp8}, tp: 2, global_batch: 8"));
  CHECK_THROWS_WITH(with("stack: {precision: fp8}, stack.nothing: 1, global_batch: 8"),
                    Catch::Contains("unknown key 'strategy.stack.nothing'"));
}

TEST_CASE("a catalog entry can be taken and changed") {
  const Sweep sweep = read(with(kSingle, "gpu: a100_40", "gpu: {like: metax_c500, scale_up_gb_per_s: 100}"));
  CHECK(std::get<double>(sweep.experiments[0].settings.at("cluster.gpu.scale_up_gb_per_s")) == 100.0);
  CHECK(std::get<double>(sweep.experiments[0].settings.at("cluster.gpu.memory_gib")) == 64.0);
}

TEST_CASE("a resolved document reads back as the same experiment") {
  const Sweep once = read(kSingle);
  const nlohmann::json base = document(once.experiments[0].settings);
  const Sweep again = read(nlohmann::json{{"base", base}}.dump());  // JSON is YAML
  CHECK(again.experiments[0].settings == once.experiments[0].settings);
  CHECK(base["model"]["kv_heads"] == 4);
  CHECK(base["model"]["ffn_hidden"] == 256);
}

TEST_CASE("the first sweep is 1008 experiments on 128 GPUs") {
  // tp x pp x micro-batch x recompute x fabrics is 4 x 4 x 3 x 3 x 4; sequence parallelism has two ways where tp > 1.
  const Sweep sweep = read_sweep(kSweeps + "first.yaml");
  CHECK(sweep.experiments.size() == (1 + 2 * 3) * 4 * 3 * 3 * 4);
  CHECK(sweep.excluded.size() == 4 * 3 * 3 * 4);
  for (const Excluded& one : sweep.excluded) CHECK(one.rule == "sequence_parallel_needs_tp");
  GraphCache graphs;
  CHECK(configure(sweep.experiments[0], graphs).graph->gpus == 128);
  CHECK(text(sweep.experiments[0], "model.name") == "gpt3-13b");
  CHECK(sweep.name == "gpt3-13b-on-128-h100");
}

TEST_CASE("the published 175B configuration is one valid experiment with its measured time") {
  const Sweep sweep = read_sweep(kSweeps + "korthikanti-175b.yaml");
  REQUIRE(sweep.experiments.size() == 1);
  CHECK(sweep.single);
  REQUIRE(sweep.measured);
  CHECK(sweep.measured->step_time_s == 13.75);
  GraphCache graphs;
  const auto result = configure(sweep.experiments[0], graphs);
  CHECK(result.strategy.dp == 1);
  CHECK(result.strategy.micro_batches() == 64);
  CHECK(result.strategy.virtual_stages == 3);
  CHECK(result.transport.kind == "dcqcn");
}

TEST_CASE("the tiny sweep is 20 experiments") {
  const Sweep sweep = read_sweep(kSweeps + "tiny.yaml");
  CHECK(sweep.experiments.size() == 5 * 2 * 2);  // (tp, pp) but (4, 2); fabrics; zip
  CHECK(sweep.excluded.size() == 4);
}

TEST_CASE("keys that vary together are set together") {
  const std::string document = kSingle +
                               "axes: {strategy.tp: [1, 2]}\n"
                               "zip: [{strategy.micro_batch: [1, 2], strategy.recompute: [none, full]}]\n";
  const Catalog catalog;
  const auto read_with = [&](const std::vector<std::string>& set) {
    return parse_sweep(document, "s.yaml", set, catalog);
  };
  const Sweep set = read_with({"micro_batch=1", "strategy.recompute=full", "strategy.tp=2"});
  REQUIRE(set.experiments.size() == 1);
  CHECK(integer(set.experiments[0], "strategy.micro_batch") == 1);
  CHECK(text(set.experiments[0], "strategy.recompute") == "full");
  CHECK_THROWS_WITH(read_with({"strategy.recompute=full"}),
                    Catch::Contains("'strategy.recompute' is varied together with others in a zip; set "
                                    "strategy.micro_batch too, or edit the zip"));
  CHECK_THROWS_WITH(read_with({"strategy.recompute=full", "strategy.recompute=none", "strategy.micro_batch=1"}),
                    Catch::Contains("'strategy.recompute' is set twice; keep one"));
}

TEST_CASE("every point of a sweep is one document with what --set has to be given") {
  const std::string text = kSingle +
                           "axes:\n  strategy.tp: [1, 2]\n"
                           "  topology: [one_switch, {fat_tree: {leaf_hosts: 2, oversubscription: 2}}]\n"
                           "zip: [{strategy.micro_batch: [1, 2], strategy.recompute: [none, full]}]\n";
  const Catalog catalog;
  const std::vector<std::string> given{"strategy.pp=1", "tp=2"};
  const Sweep all = parse_sweep(text, "s.yaml", given, catalog);
  Space space(text, "s.yaml", given, catalog);
  space.prepare();
  std::size_t id = 0;
  for (std::uint32_t topology = 0; topology < 2; ++topology)
    for (std::uint32_t zip = 0; zip < 2; ++zip, ++id) {
      const std::vector<std::string> set = space.overrides_of({0, topology, zip});
      CHECK(set.front() == "strategy.pp=1");
      const Sweep one = parse_sweep(text, "s.yaml", set, catalog);
      REQUIRE(one.experiments.size() == 1);
      CHECK(one.experiments[0].settings == all.experiments.at(id).settings);
    }
  CHECK(id == all.experiments.size());
}

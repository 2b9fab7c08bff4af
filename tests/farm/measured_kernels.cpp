// A sweep with a table of measured kernels: its columns, what it shares, and the way from a table's writing to its use.
#include <catch2/catch.hpp>
#include <iostream>
#include <sstream>

#include "io/results/canonical_bytes.hpp"
#include "tests/farm/said.hpp"
#include "tests/farm/sweep_samples.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

const std::string kSpec =
    "base:\n"
    "  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}\n"
    "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
    "  strategy: {tp: 2, global_batch: 16}\n"
    "assume: 2021\n";

struct SpecFolder : TemporaryFolder {
  SpecFolder() { put("s.yaml", kSpec); }
  std::string file(const std::string& name) const { return (path / name).string(); }
};

/// What is printed, or how it ended.
std::string printed(const std::vector<std::string>& words) {
  const Said said = say(words);
  return said.exit_code == 0 ? said.output : fmt::format("exit {}", said.exit_code);
}

io::Results answer(const experiments::Sweep& sweep, bool share) {
  const SweepJob job(serialize_job(sweep, {share, {}}));
  const auto outcomes = run_all(job);
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.ok());
  return make_results(sweep, job.plan(), looking_into(outcomes));
}

double number(const io::Results& results, const std::string& column, std::size_t row = 0) {
  const io::Column* found = results.experiments.find(column);
  REQUIRE(found);
  return found->number_at(row);
}

}  // namespace

TEST_CASE("the table that `run --kernels` writes, read back, gives the same step to the picosecond") {
  const SpecFolder folder;
  const std::string plain = printed({"run", folder.file("s.yaml"), "--json"});
  REQUIRE(plain.starts_with("{"));
  const auto figure = [](const std::string& json, const std::string& name) {
    const auto at = json.find("\"" + name + "\": ");
    REQUIRE(at != std::string::npos);
    return json.substr(at, json.find('\n', at) - at);
  };
  for (const std::string level : {"kernel", "submodule", "layer"}) {
    const std::string table = printed({"run", folder.file("s.yaml"), "--kernels=" + level});
    REQUIRE(table.starts_with("level,"));
    folder.put("k.csv", table);
    const std::string set = "cluster.gpu.measured_kernels=k.csv";
    const std::string measured = printed({"run", folder.file("s.yaml"), "--json", "--set", set});
    for (const char* name : {"step_time_ps", "forward_s", "backward_s", "host_s", "exposed_tp_s", "mfu"})
      CHECK(figure(measured, name) == figure(plain, name));
    CHECK(printed({"run", folder.file("s.yaml"), "--kernels=" + level, "--set", set}).size() == table.size());
    const std::string told = printed({"run", folder.file("s.yaml"), "--set", set});
    CHECK_THAT(told, Catch::Contains("measured times") && Catch::Contains("the model is off by up to +0.0 %"));
  }
  CHECK_THAT(printed({"run", folder.file("s.yaml")}), !Catch::Contains("measured times"));
  CHECK(printed({"run", folder.file("s.yaml"), "--kernels=operator"}) == "exit 2");
  CHECK(printed({"run", folder.file("s.yaml"), "--set", "cluster.gpu.measured_only=true"}) == "exit 2");
}

TEST_CASE("a sweep over tables has their columns, the same bytes with sharing and without, and NaN without a table") {
  const SpecFolder folder;
  folder.put("k.csv",
             "level,name,pass,kind,dtype,m,n,k,batch,time_us\n"
             "layer,layer,forward,gemm,bf16,256,256,768,1,5000\n"
             "layer,layer,backward,gemm,bf16,256,256,768,1,9000\n");
  const auto sweep = small_sweep("axes: {cluster.gpu.measured_kernels: [\"\", \"" + folder.file("k.csv") + "\"]}\n");
  const io::Results results = answer(sweep, true);
  CHECK(io::canonical_bytes(answer(sweep, false)) == io::canonical_bytes(results));
  CHECK(std::isnan(number(results, "time_by_layers", 0)));
  CHECK(number(results, "measured_rows", 0) == -1);
  CHECK(number(results, "measured_rows", 1) == 2);
  CHECK(number(results, "time_by_layers", 1) > 0.9);
  CHECK(number(results, "time_by_layers", 1) + number(results, "time_by_model", 1) == Approx(1));
  CHECK(number(results, "forward_s", 1) > 4 * 4 * 0.005);
  CHECK(number(results, "step_time_s", 1) > number(results, "step_time_s", 0));
  CHECK(answer(small_sweep(""), true).experiments.find("measured_rows") == nullptr);
}

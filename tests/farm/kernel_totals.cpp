// Totals of kernels by each source of their times, side by side.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "experiments/text/csv.hpp"
#include "tests/farm/said.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::testing;
using nlohmann::json;

namespace {

const std::string kSpec =
    "base:\n"
    "  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}\n"
    "  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 4, nic_gbps: 200}\n"
    "  strategy: {tp: 1, global_batch: 8, micro_batch: 2}\n"
    "assume: 2021\n";
constexpr int kPasses = 4 * 1;  // four layers, and one micro-batch on each of four replicas

struct SpecFolder : TemporaryFolder {
  SpecFolder() { put("s.yaml", kSpec); }
  Said run(std::vector<std::string> words) const {
    words.insert(words.begin(), {"run", (path / "s.yaml").string()});
    return say(words);
  }
  std::string table(const std::string& level) const { return run({"--kernels=" + level}).output; }
  json totals(const std::string& table = "") {
    std::vector<std::string> words{"--totals", "--json"};
    if (!table.empty()) put("k.csv", table), words.insert(words.end(), {"--set", "cluster.gpu.measured_kernels=k.csv"});
    const Said said = run(words);
    REQUIRE(said.exit_code == 0);
    return json::parse(said.output);
  }
};

/// The rows of a table whose name is one of these, with times that are `factor` times as long.
std::string scaled(const std::string& table, double factor, const std::vector<std::string>& names = {}) {
  const auto parsed = experiments::import::parse_csv(table, "t");
  std::string text = table.substr(0, table.find('\n') + 1);
  for (const auto& row : parsed.rows) {
    if (!names.empty() && std::find(names.begin(), names.end(), row.text("name")) == names.end()) continue;
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{:.6f},x\n", row.text("level"), row.text("name"),
                    row.text("pass"), row.text("kind"), row.text("dtype"), row.text("m"), row.text("n"), row.text("k"),
                    row.text("batch"), row.text("bytes"), row.text("flops"), factor * *row.real("time_us"));
  }
  return text;
}

double time_us(const std::string& table, const std::string& name, const std::string& pass) {
  for (const auto& row : experiments::import::parse_csv(table, "t").rows)
    if (row.text("name") == name && row.text("pass") == pass) return *row.real("time_us");
  FAIL("no row " << name);
  return 0;
}

json item(const json& totals, const std::string& name) {
  for (const json& one : totals["items"])
    if (one["name"] == name) return one;
  FAIL("no item " << name);
  return {};
}

}  // namespace

TEST_CASE("without a table the model alone has a total, that of its kernels") {
  SpecFolder folder;
  const json totals = folder.totals();
  CHECK(totals["layer"].is_null());
  CHECK(totals["kernel"].is_null());
  CHECK(totals["items"].empty());
  CHECK(totals["model"]["kernel_time_s"].get<double>() > 0);
  CHECK(totals["launches"].get<int>() > 0);
}

TEST_CASE("each level counts alone: a layer's rows change its total by what they differ by, and no other") {
  SpecFolder folder;
  const std::string layers = folder.table("layer"), submodules = folder.table("submodule");
  const double model_s = folder.totals()["model"]["kernel_time_s"].get<double>();
  // Layers take twice as long, submodules of one kind half as long again.
  const json totals =
      folder.totals(scaled(layers, 2, {"layer"}) + scaled(submodules, 1.5, {"qkv"}).substr(submodules.find('\n') + 1));
  const double forward = time_us(layers, "layer", "forward"), backward = time_us(layers, "layer", "backward");
  const double qkv = time_us(submodules, "qkv", "forward") + time_us(submodules, "qkv", "backward");
  CHECK(totals["model"]["kernel_time_s"].get<double>() == Approx(model_s).epsilon(1e-12));
  CHECK(totals["layer"]["kernel_time_s"].get<double>() ==
        Approx(model_s + kPasses * (forward + backward) * 1e-6).epsilon(1e-9));
  CHECK(
      totals["layer"]["measured_share"].get<double>() ==
      Approx(2 * kPasses * (forward + backward) * 1e-6 / totals["layer"]["kernel_time_s"].get<double>()).epsilon(1e-9));
  CHECK(totals["submodule"]["kernel_time_s"].get<double>() == Approx(model_s + kPasses * qkv / 2 * 1e-6).epsilon(1e-9));
  CHECK(totals["kernel"].is_null());
  // The submodules do not cover the layer, so that it has no sum of them.
  CHECK(item(totals, "layer forward")["layer_us"].get<double>() == Approx(2 * forward).epsilon(1e-9));
  CHECK(item(totals, "layer forward")["model_us"].get<double>() == Approx(forward).epsilon(1e-9));
  CHECK_FALSE(item(totals, "layer forward").contains("submodule_us"));
  CHECK(item(totals, "qkv forward")["submodule_us"].get<double>() ==
        Approx(1.5 * time_us(submodules, "qkv", "forward")).epsilon(0).margin(0.51e-6));  // whole picoseconds
}

TEST_CASE("what a layer takes beyond its submodules is its residual") {
  SpecFolder folder;
  const std::string layers = folder.table("layer"), submodules = folder.table("submodule");
  folder.put("k.csv", scaled(layers, 1.25) + submodules.substr(submodules.find('\n') + 1));
  const std::string told = folder.run({"--totals", "--set", "cluster.gpu.measured_kernels=k.csv"}).output;
  CHECK_THAT(told, Catch::Matches("[^]*layer forward [^\n]* 20\\.0 %\n[^]*"));
  CHECK_THAT(told, Catch::Contains("kernels             not measured"));
}

TEST_CASE("another stack stands beside, and what does not go together is refused") {
  SpecFolder folder;
  const Said said =
      folder.run({"--totals", "--json", "--set", "strategy.stack=torchtitan", "--beside", "torchtitan-eager"});
  REQUIRE(said.exit_code == 0);
  const json totals = json::parse(said.output);
  CHECK(totals["stack"] == "torchtitan");
  CHECK(totals["beside"]["stack"] == "torchtitan-eager");
  // What the compiler fuses is more kernels without it, and more bytes.
  CHECK(totals["beside"]["launches"].get<int>() > totals["launches"].get<int>());
  CHECK(totals["beside"]["model"]["kernel_time_s"].get<double>() > totals["model"]["kernel_time_s"].get<double>());
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"--beside", "torchtitan"},
                                                                                     {"--aiob", "x"},
                                                                                     {"--kernels=layer", "--aiob", "x"},
                                                                                     {"--totals", "--beside", "none"}})
    CHECK(folder.run(wrong).exit_code == 2);
}

TEST_CASE("times of AIOB become rows of the submodules that the experiment has") {
  SpecFolder folder;
  folder.put("a.txt",
             "train_iter:10\natten_qkv:\n    time_gpu_max: 9\n    time_gpu_avg: 7.5\nEmb:\n    time_gpu_avg: 3\n"
             "atten_flash:\n    time_gpu_avg: 4\nparam_time:\n    time_gpu_avg: 5\n");
  const std::string file = (folder.path / "a.txt").string();
  const Said said = folder.run({"--kernels=submodule", "--aiob", file});
  REQUIRE(said.exit_code == 0);
  CHECK(time_us(said.output, "qkv", "forward") == 7.5);
  CHECK(time_us(said.output, "embedding", "forward") == 3);
  CHECK(experiments::import::parse_csv(said.output, "t").rows.size() == 2);
  const json totals = folder.totals(said.output);
  CHECK(item(totals, "qkv forward")["submodule_us"].get<double>() == 7.5);
  CHECK(item(totals, "embedding forward")["layer_us"].get<double>() == 3);
}

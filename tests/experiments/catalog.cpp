// The catalog, the lists and the schema that are made from it.
#include <catch2/catch.hpp>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/sweep/schema.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

const SourcedValue& figure(const Catalog& catalog, const std::string& gpu, const std::string& key) {
  return catalog.entries("gpus").at(gpu).values.at(key);
}

}  // namespace

TEST_CASE("the catalog holds the GPUs and models that the project promises") {
  const Catalog catalog;
  for (const char* name : {"v100_32", "a100_40", "a100_80", "h100_sxm", "h800_sxm", "h200_sxm", "b200_hgx", "mi300x",
                           "ascend_910b", "metax_c500", "metax_c550"})
    CHECK(catalog.entries("gpus").count(name) == 1);
  for (const char* name :
       {"gpt3-125m", "gpt3-13b", "gpt3-175b", "megatron-22b", "megatron-530b", "megatron-1t", "llama2-7b", "llama2-70b",
        "llama3-8b", "llama3-70b", "llama3-405b", "qwen3-30b-a3b", "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-20b",
        "gpt-oss-120b", "kimi-k2", "mixtral-8x7b", "mixtral-8x22b"})
    CHECK(catalog.entries("models").count(name) == 1);
  CHECK(catalog.entries("clusters").size() >= 2);
}

TEST_CASE("every figure has a source, and what nobody publishes is a guess with a range") {
  const Catalog catalog;
  for (const char* kind : {"gpus", "models", "clusters"})
    for (const auto& [name, entry] : catalog.entries(kind))
      for (const auto& [key, one] : entry.values) CHECK(one.source.size() > 3);
  for (const char* gpu : {"metax_c500", "metax_c550"})
    for (const char* key : {"matrix_tflops", "compute_units", "clock_ghz", "scale_up_gb_per_s"}) {
      CHECK(figure(catalog, gpu, key).certainty == "guess");
      CHECK(figure(catalog, gpu, key).range);
    }
  CHECK(std::get<double>(figure(catalog, "a100_80", "memory_gb_per_s").value) == 2039.0);
  CHECK(std::get<std::string>(figure(catalog, "mi300x", "scale_up").value) == "full_mesh");
}

TEST_CASE("a GPU of the catalog multiplies what its datasheet names, below its peak, and nothing else") {
  const Catalog catalog;
  std::size_t allowed = 0, refused = 0;
  for (const auto& [gpu, entry] : catalog.entries("gpus")) {
    const auto has = core::split_list(std::get<std::string>(figure(catalog, gpu, "precisions").value));
    for (const std::string& precision : core::compute::precision_names()) {
      const std::string said = error_of(kSingle, {"cluster.gpu=" + gpu, "strategy.stack.precision=" + precision});
      if (said.find("not published") != std::string::npos) continue;
      CAPTURE(gpu, precision, said);
      const bool one = std::find(has.begin(), has.end(), precision) != has.end();
      CHECK((said.find("violates rule precision_on_gpu") == std::string::npos) == one);
      ++(one ? allowed : refused);
    }
  }
  CHECK(allowed > 20);
  CHECK(refused > 20);
}

TEST_CASE("what nobody says is trained in bf16, and in fp16 on a GPU without bf16") {
  const auto precision = [](std::vector<std::string> sets) {
    const Sweep sweep = read(kSingle, sets);
    return std::get<std::string>(sweep.experiments.front().settings.at("strategy.stack.precision"));
  };
  CHECK(precision({}) == "bf16");
  CHECK(precision({"cluster.gpu=v100_32"}) == "fp16");
  CHECK(precision({"cluster.gpu=h100_sxm", "strategy.stack.precision=fp8"}) == "fp8");
}

TEST_CASE("every constant that was fitted or guessed has a meaning, a unit and a source, and belongs to a GPU") {
  const Catalog catalog;
  const auto open_to_doubt = [](const SourcedValue& figure) {
    return figure.certainty == "fitted" || figure.certainty == "guess";
  };
  std::size_t constants = 0;
  for (const auto& [gpu, entry] : catalog.entries("gpus"))
    for (const auto& [key, one] : entry.values) {
      if (!open_to_doubt(one)) continue;
      CAPTURE(gpu, key);
      const core::OptionInfo* info = find_option(catalog_section("gpus").options, key);
      REQUIRE(info != nullptr);
      CHECK(info->help.size() > 20);
      CHECK((!info->unit.empty() || !info->choices.empty()));
      CHECK(one.source.size() > 10);
      ++constants;
    }
  for (const auto& [library, entry] : catalog.entries("libraries"))
    for (const auto& [key, one] : entry.values) constants += open_to_doubt(one) && one.source.size() > 10;
  CHECK(constants > 150);
  // What was fitted or guessed is nowhere else: not in a model, and the only numbers of a stack are its host's times
  // and what its allocator holds between tensors.
  for (const char* kind : {"models", "stacks"})
    for (const auto& [name, entry] : catalog.entries(kind))
      for (const auto& [key, one] : entry.values) {
        CAPTURE(name, key);
        if (kind == std::string("stacks") && (key.starts_with("host_") || key == "fragmentation")) continue;
        CHECK_FALSE(open_to_doubt(one));
        if (kind == std::string("stacks")) CHECK_FALSE(std::holds_alternative<double>(one.value));
        if (kind == std::string("stacks")) CHECK_FALSE(std::holds_alternative<std::int64_t>(one.value));
      }
}

TEST_CASE("every catalog model runs somewhere, with widths that fit its heads") {
  const Catalog catalog;
  for (const auto& [name, entry] : catalog.entries("models")) {
    CAPTURE(name);
    const std::string ep = name.starts_with("dlrm") ? "8" : "1";  // ranks share embedding tables out
    CHECK(error_of("base: {model: " + name + ", cluster: {like: dgx_h100_superpod, nodes: 1}, strategy: {ep: " + ep +
                   ", global_batch: 8}}") == "(no error)");
  }
}

TEST_CASE("catalog models with experts have the parameters of the released checkpoints") {
  const auto parameters = [](const std::string& name) {
    const Sweep sweep =
        read("base: {model: " + name + ", cluster: {like: dgx_h100_superpod, nodes: 1}, strategy: {global_batch: 8}}");
    return core::workload::model_parameters(sweep.experiments.at(0).config().configuration.model);
  };
  CHECK(parameters("qwen3-30b-a3b") == 30'532'122'624);
  CHECK(parameters("qwen3-235b-a22b") == 235'093'634'560);
  CHECK(parameters("deepseek-v3") == 671'026'419'200 - 58 * 256);  // besides: a correction bias per expert
  CHECK(parameters("gpt-oss-120b") == 116'829'156'672 - 36 * 64);  // besides: a sink logit per head
  CHECK(parameters("gpt-oss-20b") == 20'914'757'184 - 24 * 64);
  CHECK(parameters("mixtral-8x7b") == 46'702'792'704);
  CHECK(parameters("mixtral-8x22b") == 140'620'634'112);
}

TEST_CASE("layers for multi-token prediction have the parameters that released checkpoints add") {
  const auto added = [](const std::string& name) {
    const auto parameters = [&](const char* layers) {
      const Sweep sweep = read("base: {model: {like: " + name + ", mtp_layers: " + layers +
                               "}, cluster: {like: dgx_h100_superpod, nodes: 1}, strategy: {global_batch: 8}}");
      return core::workload::model_parameters(sweep.experiments.at(0).config().configuration.model);
    };
    return parameters("1") - parameters("0");
  };
  // docs/facts/architectures.md, sections 3, 4 and 7.
  CHECK(added("deepseek-v3") == 11'610'068'224 - 256);  // besides: a correction bias per expert
  CHECK(added("glm-5") == 9'952'920'576);
  CHECK(static_cast<double>(added("qwen3.5-27b")) == Approx(425e6).margin(0.5e6));
  CHECK(static_cast<double>(added("qwen3.5-35b-a3b")) == Approx(845e6).margin(0.5e6));
  CHECK(static_cast<double>(added("qwen3.5-122b-a10b")) == Approx(2'524e6).margin(0.5e6));
  // Nemotron's are two layers each, attention and experts, which no single layer of the model is.
  // DeepSeek-V4's have two projections and join streams of their own.
  for (const std::string name : {"nemotron3-super-120b-a12b", "deepseek-v4-flash"})
    CHECK(error_of("base: {model: {like: " + name +
                   ", mtp_layers: 1}, cluster: {like: dgx_h100_superpod, nodes: 1}, strategy: {global_batch: 8}}")
              .find("mtp_of_last_layer") != std::string::npos);
}

TEST_CASE("a folder of the user's adds to the catalog, and its faults are named") {
  const TemporaryFolder folder;
  folder.put("gpus/mine.yaml",
             "help: mine\nsource: bench\ncertainty: read\nvalues: {matrix_tflops: 100, memory_gib: 10}\n");
  CHECK(std::get<double>(figure(Catalog(folder.path.string()), "mine", "matrix_tflops").value) == 100.0);
  const Catalog catalog(folder.path.string());
  CHECK_THROWS_WITH(parse_sweep(with(kSingle, "a100_40", "mine"), "s.yaml", {}, catalog),
                    Catch::StartsWith("s.yaml:3: 'cluster.gpu.memory_gb_per_s' of mine is not published; give"));
  const auto fails = [&](const std::string& name, const std::string& text, const std::string& says) {
    folder.put("gpus/" + name, text);
    CHECK_THROWS_WITH(Catalog(folder.path.string()), Catch::Contains(name) && Catch::Contains(says));
    std::filesystem::remove(folder / "gpus" / name);
  };
  fails("x.yaml", "help: x\nvalues: {matrix_tflops: 100}\n", "needs a source and a certainty");
  fails("x.yaml", "source: s\ncertainty: read\nvalues: {matrix_tflop: 1}\n",
        "x.yaml:3: unknown key 'matrix_tflop'; did you mean 'matrix_tflops'");
  fails("x.yaml", "source: s\ncertainty: sure\nvalues: {}\n", "x.yaml:2: 'certainty' must be one of");
  fails("x.yaml", "source: s\ncertainty: read\nvalues: {memory_gib: -1}\n", "'memory_gib' must be");
  fails("a100_40.yaml", "source: s\ncertainty: read\nvalues: {memory_gib: 1}\n", "in the catalog already");
  fails("x.txt", "", "no .yaml file");
  fails("x.yaml", "source: " + std::string(1'001, 's') + "\ncertainty: read\nvalues: {}\n", "one line of 1 to 1000");
}

TEST_CASE("one file of the user's adds entries of several kinds to the catalog, and its faults are named by line") {
  const TemporaryFolder folder;
  const std::string path = (folder / "mine.yaml").string();
  folder.put(
      "mine.yaml",
      "gpus:\n  mine:\n    source: bench\n    certainty: read\n    values: {matrix_tflops: 100, memory_gib: 10}\n"
      "libraries:\n  nccl-mine:\n    gpus: [mine]\n    source: bench\n    certainty: fitted\n"
      "    values: {library_launch_us: 5}\n");
  const Catalog catalog(path);
  CHECK(std::get<double>(figure(catalog, "mine", "matrix_tflops").value) == 100.0);
  CHECK(catalog.entries("libraries").at("nccl-mine").gpus == std::vector<std::string>{"mine"});
  const auto fails = [&](const std::string& text, const std::string& says) {
    folder.put("mine.yaml", text);
    CHECK_THROWS_WITH(Catalog(path), Catch::Contains(says));
  };
  fails("gpu:\n  mine: {values: {}}\n", "mine.yaml:1: unknown key 'gpu'; did you mean 'gpus'");
  fails("gpus: 7\n", "mine.yaml:1: 'gpus' must be a mapping of names to entries");
  fails("- 1\n", "must be a mapping of clusters, gpus, libraries, models, stacks");
  fails("gpus:\n  a100_40: {source: s, certainty: read, values: {}}\n", "'a100_40' is in the catalog already");
  fails("gpus:\n  mine:\n    source: s\n    certainty: read\n    values: {matrix_tflop: 1}\n",
        "mine.yaml:5: unknown key 'matrix_tflop'");
}

TEST_CASE("a catalog's files have names of one line of text, and there are at most 1,000 of a kind") {
  const TemporaryFolder folder;
  const std::string good = "source: s\ncertainty: read\nvalues: {}\n";
  for (const char* name : {"a\nb", "a\x1b[31mb", "a\xff", "a\tb"}) {
    folder.put(std::string("gpus/") + name + ".yaml", good);
    CHECK_THROWS_WITH(Catalog(folder.path.string()), Catch::Contains("whose name is no line of UTF-8"));
    std::filesystem::remove_all(folder / "gpus");
  }
  for (int i = 0; i < 1'001; ++i) folder.put("gpus/g" + std::to_string(i) + ".yaml", good);
  CHECK_THROWS_WITH(Catalog(folder.path.string()), Catch::Contains("more than 1000 files"));
  std::filesystem::remove(folder / "gpus" / "g7.yaml");
  CHECK(Catalog(folder.path.string()).entries("gpus").contains("g1000"));
}

TEST_CASE("GPUs and models are found by what nvidia-smi and the hub call them") {
  const Catalog catalog;
  const import::Node nowhere;
  for (const auto& [name, gpu] : {std::pair("NVIDIA H100 80GB HBM3", "h100_sxm"),
                                  {"NVIDIA H100 PCIe", "h100_pcie"},
                                  {"NVIDIA H200", "h200_sxm"},
                                  {"NVIDIA A100-SXM4-80GB", "a100_80"},
                                  {"NVIDIA A100-SXM4-40GB", "a100_40"},
                                  {"NVIDIA B200", "b200_hgx"},
                                  {"H100", "h100_sxm"}})
    CHECK(catalog.find_named("gpus", name, nowhere).first == gpu);
  for (const auto& [name, model] : {std::pair("meta-llama/Llama-3.1-70B", "llama3-70b"),
                                    {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"},
                                    {"qwen/qwen3-235b-a22b", "qwen3-235b-a22b"},
                                    {"llama3.1-405b", "llama3-405b"}})
    CHECK(catalog.find_named("models", name, nowhere).first == model);
}

TEST_CASE("every kind of list has rows, and an unknown kind is named") {
  const Catalog catalog;
  for (const std::string& kind : listings()) CHECK_FALSE(list(kind, catalog).empty());
  CHECK_THROWS_WITH(list("gpu", catalog), Catch::Contains("did you mean 'gpus'"));
  const TemporaryFolder folder;
  folder.put("gpus/mine.yaml", "source: bench\ncertainty: read\nvalues: {matrix_tflops: 100}\n");
  const auto shown = [](const std::string& gpu, const std::string& key, const Catalog& from) {
    for (const ListEntry& row : list("gpus", from))
      for (const auto& [name, text] : row.details)
        if (row.name == gpu && name == key) return text;
    return std::string();
  };
  CHECK(shown("mine", "memory_gb_per_s", Catalog(folder.path.string())) == "not published");
  CHECK_THAT(shown("metax_c500", "scale_up_gb_per_s", catalog), Catch::StartsWith("100 (50 to 189) GB/s (guess: "));
}

TEST_CASE("the schema knows every key of a resolved document, and closes every object") {
  const auto schema = nlohmann::json::parse(json_schema(Catalog()));
  const auto& base = schema["properties"]["base"];
  CHECK(base["additionalProperties"] == false);
  const auto resolved = document(read(kSingle).experiments[0].settings);
  for (const auto& [key, value] : resolved.items()) CHECK(base["properties"].contains(key));
  for (const auto& [key, value] : resolved["strategy"].items()) {
    CHECK(base["properties"]["strategy"]["properties"].contains(key));
    CHECK(schema["$defs"]["axes"]["properties"].contains("strategy." + key));
  }
  CHECK(base["properties"]["strategy"]["properties"]["tp"]["minimum"] == 1.0);
  CHECK(schema["$defs"]["axes"]["properties"].contains("topology.fat_tree.oversubscription"));
}

TEST_CASE("an axis takes lists of what its key takes, and each key's schema stands once") {
  const auto schema = nlohmann::json::parse(json_schema(Catalog()));
  const auto target = [&](const nlohmann::json& reference) {
    const std::string place = reference.at("$ref").get<std::string>();
    REQUIRE(place.starts_with("#/"));
    return schema.at(nlohmann::json::json_pointer(place.substr(1)));
  };
  const auto& axes = schema["$defs"]["axes"]["properties"];
  CHECK(axes.size() > 500);
  for (const auto& [key, axis] : axes.items()) {
    CAPTURE(key);
    const nlohmann::json& list = axis.contains("anyOf") ? axis["anyOf"][0] : axis;
    REQUIRE(list["items"].size() == 1);
    CHECK_FALSE(target(list["items"])["description"].get<std::string>().empty());
  }
  const auto values_of = [&](const std::string& key) { return target(axes.at(key)["anyOf"][0]["items"]); };
  CHECK(values_of("strategy.tp") == schema["properties"]["base"]["properties"]["strategy"]["properties"]["tp"]);
  CHECK(values_of("cluster.gpu.memory_gib")["description"] ==
        schema["$defs"]["gpus"]["anyOf"][1]["properties"]["memory_gib"]["description"]);
  CHECK(values_of("cluster.second.gpu.memory_gib") == values_of("cluster.gpu.memory_gib"));
  const auto topologies = target(axes["topology"]["items"])["anyOf"];
  const auto of_fat_trees = std::find_if(topologies.begin(), topologies.end(), [](const auto& one) {
    return one.contains("properties") && one["properties"].contains("fat_tree");
  });
  REQUIRE(of_fat_trees != topologies.end());
  CHECK(values_of("topology.fat_tree.oversubscription") ==
        (*of_fat_trees)["properties"]["fat_tree"]["properties"]["oversubscription"]);
  CHECK(target(schema["properties"]["base"]["properties"]["model"])["anyOf"][1]["properties"].contains("hidden"));
}

TEST_CASE("a GPU as nvidia-smi prints it is found, or the catalog's of its chip are named") {
  const experiments::Catalog catalog;
  experiments::import::Node at;
  at.file = std::make_shared<const std::string>("--gpu");
  const auto found = [&](const std::string& name) { return catalog.find_named("gpus", name, at).first; };
  CHECK(found("NVIDIA H100 80GB HBM3") == "h100_sxm");
  CHECK(found("NVIDIA A100-SXM4-80GB") == "a100_80");
  CHECK_THROWS_WITH(found("NVIDIA H100 NVL"),
                    "--gpu: unknown gpu 'NVIDIA H100 NVL'; did you mean 'h100_96' or 'h100_pcie' or 'h100_sxm'?");
  CHECK_THROWS_WITH(found("AMD Instinct MI300X"), Catch::Contains("did you mean 'mi300x'?"));
  CHECK_THROWS_WITH(found("h101"), "--gpu: unknown gpu 'h101'; did you mean 'h100_sxm'?");
  CHECK_THROWS_WITH(found("V101"), Catch::EndsWith("; did you mean 'v100_32'?"));
  CHECK_THROWS_WITH(found("NVIDIA RTX 4090"), Catch::Contains("`manyworlds list gpus` names the"));
}

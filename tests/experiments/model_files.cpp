// Models named by the path of their configuration, in sweeps and beside the catalog.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/models/read_model_config.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::workload::active_parameters;
using core::workload::model_parameters;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/models/";

}  // namespace

TEST_CASE("a configuration has the layers of the catalog's model of that name") {
  const Catalog catalog;
  for (const auto& [file, name] : std::map<std::string, std::string>{{"deepseek-ai--DeepSeek-V3", "deepseek-v3"},
                                                                     {"moonshotai--Kimi-K2-Instruct", "kimi-k2"},
                                                                     {"openai--gpt-oss-20b", "gpt-oss-20b"},
                                                                     {"mistralai--Mixtral-8x7B-v0.1", "mixtral-8x7b"},
                                                                     {"meta-llama--Meta-Llama-3.1-8B", "llama3-8b"},
                                                                     {"Qwen--Qwen3-30B-A3B", "qwen3-30b-a3b"}}) {
    CAPTURE(file);
    const auto base = [&](const std::string& model) {
      return with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}",
                  "{like: \"" + model + "\", sequence: 4096}");
    };
    const auto settings = [&](const std::string& model) {
      Settings all = read(base(model), {"strategy.pp=1", "strategy.tp=1"}).experiments.front().settings;
      all.erase("model.name");
      all.erase("model.carried");                        // compared below
      all["model.ffn_hidden"] = std::int64_t{0};         // without effect where all layers have experts
      all["model.expert_ffn_hidden"] = std::int64_t{0};  // 0: as ffn_hidden
      all["model.head_dim"] = std::int64_t{0};           // 0: hidden / heads
      return all;
    };
    CHECK(settings(kFolder + file + ".json") == settings(name));
    core::OptionSet of_catalog;
    for (const auto& [key, one] : catalog.entries("models").at(name).values)
      if (key != "carried") of_catalog[key] = one.value;
    core::workload::Model model = models::read_model_config(kFolder + file + ".json").model();
    model.sequence = 4096;
    CHECK(model_parameters(model) == model_parameters(core::workload::model_options().make(of_catalog)));
    CHECK(active_parameters(model) == active_parameters(core::workload::model_options().make(of_catalog)));
  }
}

TEST_CASE("the catalog carries what a model's published configuration says of its positions, norms and routers") {
  const Catalog catalog;
  const auto of_catalog = [&](const std::string& name) {
    return models::carried_in(std::get<std::string>(catalog.entries("models").at(name).values.at("carried").value));
  };
  const auto of_file = [](const std::string& file) {
    return models::carried_in(models::carried_text(models::read_model_config(kFolder + file + ".json").carried));
  };
  for (const auto& [file, name] : std::map<std::string, std::string>{{"deepseek-ai--DeepSeek-V3", "deepseek-v3"},
                                                                     {"moonshotai--Kimi-K2-Instruct", "kimi-k2"},
                                                                     {"openai--gpt-oss-20b", "gpt-oss-20b"},
                                                                     {"mistralai--Mixtral-8x7B-v0.1", "mixtral-8x7b"},
                                                                     {"meta-llama--Meta-Llama-3.1-405B", "llama3-405b"},
                                                                     {"Qwen--Qwen3-30B-A3B", "qwen3-30b-a3b"}}) {
    CAPTURE(file);
    CHECK(of_catalog(name) == of_file(file));
  }
  // Llama 3 and 3.1 are one entry, with what both have.
  const auto llama = of_file("meta-llama--Meta-Llama-3.1-8B");
  for (const models::CarriedArgument& one : of_catalog("llama3-8b")) CHECK(std::count(llama.begin(), llama.end(), one));
  // Of every entry the words are arguments and values that can be carried.
  for (const auto& [name, entry] : catalog.entries("models")) {
    CAPTURE(name);
    if (entry.values.count("carried") == 0) continue;
    for (const models::CarriedArgument& one : of_catalog(name))
      for (const std::string& value : one.values) CHECK(models::is_carried_value(value));
  }
}

TEST_CASE("a sweep names a configuration by its path, says what it assumed, and keeps the values") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "mine");
  folder.put("mine/config.json", R"({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256,
      "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 512, "max_position_embeddings": 8192})");
  const auto spec = [&](const std::string& model, const std::string& more = "") {
    folder.put("s.yaml",
               with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", model) + more);
    return (folder / "s.yaml").string();
  };
  const Sweep sweep = read_sweep(spec("mine"));  // relative to the document, and a folder's config.json
  const Experiment& experiment = sweep.experiments.front();
  CHECK(text(experiment, "model.name") == "mine");
  CHECK(integer(experiment, "model.hidden") == 256);
  CHECK(integer(experiment, "model.sequence") == 4096);
  CHECK(sweep.assumed.find("model.sequence=4096") != std::string::npos);
  CHECK(sweep.assumed.find("model mine read from") != std::string::npos);
  CHECK(sweep.assumed.find("tie_word_embeddings=false") != std::string::npos);
  for (const auto& [key, value] : experiment.settings) CHECK_FALSE(key.ends_with(".open"));
  const std::string bytes = serialize(sweep);
  std::filesystem::remove(folder / "mine/config.json");
  CHECK(serialize(deserialize(bytes)) == bytes);  // a run is continued without the file
  CHECK_THROWS_AS(read_sweep(spec("mine")), core::InputError);

  folder.put("mine/config.json", R"({"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 256,
      "num_attention_heads": 4, "vocab_size": 512})");
  const Sweep given = read_sweep(spec("{like: mine/config.json, sequence: 2048, name: ours}"));
  CHECK(integer(given.experiments.front(), "model.sequence") == 2048);
  CHECK(text(given.experiments.front(), "model.name") == "ours");
  CHECK(given.assumed.find("model.sequence") == std::string::npos);
  CHECK(given.assumed.find("model mine read from") != std::string::npos);
  const Sweep axis = read_sweep(spec("gpt3-125m", "axes: {model: [gpt3-125m, mine/config.json]}\n"));
  REQUIRE(axis.experiments.size() == 2);
  CHECK(integer(axis.experiments[0], "model.layers") == 12);
  CHECK(integer(axis.experiments[1], "model.layers") == 8);
  CHECK(integer(axis.experiments[0], "model.sequence") == 2048);
  CHECK(integer(axis.experiments[1], "model.sequence") == 2048);  // as many as LlamaConfig has positions
  const Sweep mappings =
      read_sweep(spec("gpt3-125m", "axes: {model: [{like: mine, layers: 4}, {like: mine, layers: 8}]}\n"));
  CHECK(mappings.experiments.size() == 2);
}

TEST_CASE("a model that is neither in the catalog nor a file is told with its nearest name") {
  const auto said = [](const std::string& model) {
    return error_of(with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", model));
  };
  const std::string unknown = said("Qwen/Qwen3-30B-A3C");
  CHECK(unknown.find("s.yaml:2: unknown model 'Qwen/Qwen3-30B-A3C'") == 0);
  CHECK(unknown.find("config.json") != std::string::npos);
  CHECK(said("meta-llama/Llama-3.1-70B-Instruct-FP8").find("did you mean 'llama3-70b', which has its shape?") !=
        std::string::npos);
  CHECK(said("meta-llama/Llama-3.1-70B") == said("llama3-70b"));
  CHECK(said("no-such-thing-at-all").size() < 200);
  CHECK(said("llama3-80b").find("did you mean 'llama3-70b'?") != std::string::npos);
  CHECK(said("./nothing") == "s.yaml:2: model './nothing': ./nothing: no such file or folder");
  CHECK(said("/nothing/config.json#text") ==
        "s.yaml:2: model '/nothing/config.json#text': /nothing/config.json: no such file or folder");
  CHECK(said("\"\"").find("s.yaml:2: unknown model ''") == 0);
  const TemporaryFolder folder;
  folder.put("s.yaml", with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", "llama3-80b"));
  CHECK_THROWS_WITH(read_sweep((folder / "s.yaml").string()), Catch::Contains("did you mean 'llama3-70b'?"));
  folder.put("empty/readme", "");
  folder.put("s.yaml", with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", "empty"));
  CHECK_THROWS_WITH(read_sweep((folder / "s.yaml").string()),
                    Catch::Contains("s.yaml:2: model 'empty': the folder") && Catch::Contains("has no config.json"));
}

TEST_CASE("samples longer than a model's positions are refused where these are learned, and told where they are not") {
  const TemporaryFolder folder;
  folder.put("learned.json", R"({"model_type": "gpt2", "n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 512})");
  folder.put("rotary.json", R"({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256,
      "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 512, "max_position_embeddings": 512})");
  const auto spec = [&](const std::string& model, const std::string& more = "") {
    folder.put("s.yaml",
               with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", model) + more);
    return (folder / "s.yaml").string();
  };
  const std::string said = "samples of 1024 tokens need as many learned positions, and the model has 512";
  CHECK(read_sweep(spec("{like: learned.json, sequence: 512}")).experiments.size() == 1);
  try {
    read_sweep(spec("{like: learned.json, sequence: 1024}"));
    FAIL("a table of positions has no rows for the last tokens");
  } catch (const core::InputError& error) {
    CHECK(std::string(error.what()).find("'model.sequence': " + said) != std::string::npos);
  }
  const Sweep axis = read_sweep(spec("{like: learned.json}", "axes: {model.sequence: [256, 512, 1024]}\n"));
  CHECK(axis.experiments.size() == 2);
  REQUIRE(axis.excluded.size() == 1);
  CHECK(axis.excluded.front().rule == "sequence_by_positions");
  CHECK(axis.excluded.front().reason.find(said) == 0);
  const std::string beyond = "samples of 1024 tokens are beyond the 512 positions that the model was made for";
  CHECK(read_sweep(spec("{like: rotary.json, sequence: 1024}")).assumed.find(beyond) != std::string::npos);
  CHECK(read_sweep(spec("{like: rotary.json, sequence: 512}")).assumed.find("positions") == std::string::npos);
}

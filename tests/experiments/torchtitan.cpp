// Files that torchtitan is launched with become the settings of an experiment, or are refused with line and key.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <sstream>

#include "core/base/error.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/model_keys/carried.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/text.hpp"
#include "experiments/torchtitan/flavors.hpp"
#include "experiments/torchtitan/key_table.hpp"
#include "experiments/torchtitan/stages.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/toml.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/torchtitan/";

std::string value_of(const Job& job, const std::string& key) {
  std::string value = "(not set)";
  for (const JobSetting& one : job.settings)
    if (one.key == key) value = one.value;
  return value;
}

struct Written {
  explicit Written(const std::string& text, const std::string& name = "job.toml") : path((folder / name).string()) {
    std::ofstream(path) << text;
  }
  TemporaryFolder folder;
  std::string path;
};

Job job_of(const std::string& text, std::int64_t gpus = 64) {
  const Written file(text);
  return read_job(file.path, {{}, gpus}, Catalog());
}

/// The message of what is refused, without the file's folder.
std::string refusal(const std::string& text, std::int64_t gpus = 64, const std::string& name = "job.toml",
                    const std::string& member = "") {
  const Written file(text, name);
  try {
    read_job(file.path + member, {{}, gpus}, Catalog());
  } catch (const core::InputError& error) {
    std::string what = error.what();
    for (std::size_t at; (at = what.find(file.path)) != std::string::npos;) what.replace(at, file.path.size(), "");
    return what;
  }
  return "(no error)";
}

Settings settings_of(const Job& job, const std::string& cluster) {
  return parse_sweep(document_of(job, cluster), job.file, {}, Catalog()).experiments.at(0).settings;
}

}  // namespace

TEST_CASE("the files of torchtitan v0.2.2 have the models, layouts and batches that they are known by") {
  struct Known {
    const char* file;
    std::int64_t gpus;
    std::vector<std::pair<const char*, const char*>> settings;
  };
  const Known all[] = {
      {"llama3_8b_v0.2.2.toml",
       64,
       {{"model.layers", "32"},
        {"model.ffn_hidden", "14336"},
        {"model.vocabulary", "128256"},
        {"model.sequence", "8192"},
        {"strategy.zero", "3"},
        {"strategy.micro_batch", "1"},
        {"strategy.global_batch", "64"},
        {"strategy.recompute", "per_op"},
        {"strategy.sequence_parallel", "false"}}},
      {"llama3_70b_v0.2.2.toml",
       64,
       {{"model.hidden", "8192"},
        {"strategy.tp", "8"},
        {"strategy.global_batch", "64"},
        {"strategy.recompute", "full"}}},
      {"llama3_405b_v0.2.2.toml",
       128,
       {{"model.layers", "126"},
        {"strategy.tp", "8"},
        {"strategy.stack.overlap_tensor", "true"},
        {"strategy.stack.precision", "fp8"},
        {"strategy.global_batch", "32"},
        {"strategy.stack.cross_entropy_fusion", "true"}}},
      {"qwen3_32b_v0.2.2.toml",
       8,
       {{"model.layers", "64"},
        {"model.head_dim", "128"},
        {"model.query_key_norm", "true"},
        {"strategy.global_batch", "16"}}},
      {"deepseek_v3_671b_v0.2.2.toml",
       256,
       {{"model.experts", "256"},
        {"model.experts_per_token", "8"},
        {"model.attention", "latent"},
        {"model.dense_layers", "3"},
        {"model.shared_ffn_hidden", "2048"},
        {"strategy.ep", "1"},
        {"strategy.micro_batch", "4"},
        {"strategy.global_batch", "1024"},
        {"strategy.stack.cross_entropy_fusion", "true"}}},
  };
  for (const Known& known : all) {
    INFO(known.file);
    const Job job = read_job(kFolder + known.file, {{}, known.gpus}, Catalog());
    CHECK(job.gpus == known.gpus);
    CHECK(job.stack == (std::string(known.file) == "llama3_405b_v0.2.2.toml" ? "torchtitan" : "torchtitan-eager"));
    for (const auto& [key, value] : known.settings) {
      INFO(key);
      CHECK(value_of(job, key) == value);
    }
    // Recomputation op by op is modelled of dense layers, which a rule says of the file's line.
    const std::string cluster =
        "{like: dgx_h100_superpod, nodes: " + std::to_string(known.gpus / 8) + ", gpus_per_node: 8}";
    if (value_of(job, "model.experts") == "(not set)")
      CHECK_NOTHROW(settings_of(job, cluster));
    else
      CHECK_THROWS_WITH(settings_of(job, cluster), Catch::Contains(".toml:64: 'strategy.recompute' violates rule"));
  }
  CHECK(read_job(kFolder + "llama3_8b_v0.2.2.toml", {}, Catalog()).gpus == 0);
}

TEST_CASE("the functions of torchtitan's registry of 2026 are read without being run") {
  const std::string path = kFolder + "llama3_config_registry_2026-08.py";
  const auto read = [&](const std::string& name) { return read_job(path + ":" + name, {{}, 64}, Catalog()); };
  const Job large = read("llama3_70b");
  CHECK(large.name == "llama3_70b");
  CHECK(large.file == path);
  for (const auto& [key, value] : {std::pair("model.layers", "80"),
                                   {"model.hidden", "8192"},
                                   {"strategy.tp", "8"},
                                   {"model.sequence", "8192"},
                                   {"strategy.micro_batch", "8"},
                                   {"strategy.global_batch", "64"},
                                   {"strategy.recompute", "full"},
                                   {"strategy.stack.loss_chunks", "8"},
                                   {"strategy.stack.cuda_graphs", "all"}}) {
    INFO(key);
    CHECK(value_of(large, key) == value);
  }
  const Job small = read("llama3_8b_mxfp8");  // calls llama3_8b() and changes what it returned
  CHECK(value_of(small, "strategy.stack.precision") == "mxfp8");
  CHECK(value_of(small, "strategy.recompute") == "per_op");
  CHECK(small.stack == "torchtitan");
  CHECK(read("llama3_8b").stack == "torchtitan-eager");
  const auto why = [&](const std::string& member) {
    try {
      read_job(path + member, {{}, 64}, Catalog());
    } catch (const core::InputError& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string("(no error)");
  };
  CHECK(why("").find("has several configurations; give one as ") != std::string::npos);
  CHECK(why("").find("llama3_70b, llama3_405b") != std::string::npos);
  CHECK(why(":llama3_71b") == ": has no configuration 'llama3_71b'; did you mean 'llama3_70b'?");
  CHECK(why(":llama3_405b").find("quantize.linear.float8.recipe_name rowwise: one scale a row is not modelled") !=
        std::string::npos);
  CHECK(why(":llama3_8b_first_85_pct_layers_nvfp4").find("layers of two precisions are not modelled") !=
        std::string::npos);
  CHECK(why(":llama3_debugmodel_float8_emulate_lora") != "(no error)");
}

TEST_CASE("what a function of a registry computes otherwise is refused where it matters") {
  const auto why = [](const std::string& body) {
    return refusal(
        "from torchtitan.trainer import Trainer\nfrom . import model_registry\nSEQ = 4 * 1024\n\n"
        "def llama3_mine() -> Trainer.Config:\n" +
            body,
        64, "config_registry.py", ":llama3_mine");
  };
  const std::string begin = "    return Trainer.Config(model_spec=model_registry(\"8B\"), ";
  CHECK(why(begin + "training=TrainingConfig(max_context_length=SEQ,\n"
                    "      num_tokens_per_microbatch_per_dp_rank=2 * SEQ))\n") == "(no error)");
  CHECK(why(begin + "training=TrainingConfig(steps=len(x)))\n") == "(no error)");
  CHECK(why(begin + "\n  parallelism=ParallelismConfig(\n    tensor_parallel_degree=int(os.environ['TP'])))\n") ==
        ":8: parallelism.tensor_parallel_degree follows from int(…), which is no literal");
  CHECK(why(begin + "parallelism=ParallelismConfig(tensor_paralel_degree=2))\n") ==
        ":6: 'parallelism.tensor_paralel_degree' is no key of torchtitan that is known here; did you mean "
        "'parallelism.tensor_parallel_degree'?");
  CHECK(why("    if True:\n        pass\n" + begin + ")\n") ==
        ":6: 'if' of llama3_mine is not followed: a configuration is read from assignments and the constructor calls "
        "that it returns");
  CHECK(why("    return make()\n") == ":6: llama3_mine does not return a Trainer.Config of literals");
  CHECK(why("    return llama3_mine()\n") == ":5: 'llama3_mine' calls itself");
  CHECK(why("    return Trainer.Config(\n") == ":7: no valid Python: a bracket is not closed");
}

TEST_CASE("a registry of a model that is not known is refused, even where its name begins with that of one") {
  const auto why = [](const std::string& function) {
    return refusal("from torchtitan.trainer import Trainer\n\ndef " + function + "() -> Trainer.Config:\n" +
                       "    return Trainer.Config(model_spec=model_registry(\"4B\"))\n",
                   64, "config_registry.py");
  };
  CHECK(why("qwen3_4b") == "(no error)");
  CHECK(why("qwen35_4b").starts_with(": no function or folder tells the model; known are llama3, "));
  CHECK(why("qwen3_5_4b").starts_with(": no function or folder tells the model; known are llama3, "));
}

TEST_CASE("layers are split over stages as torchtitan splits them") {
  std::string why;
  const auto split = [&](std::int64_t layers, std::int64_t stages, std::int64_t first, std::int64_t last) {
    why.clear();
    return torchtitan::stage_layers({layers, stages, first, last}, why);
  };
  CHECK(split(126, 8, 1, 1) == std::vector<std::int64_t>{15, 16, 16, 16, 16, 16, 16, 15});
  CHECK(split(3, 2, 2, 2) == std::vector<std::int64_t>{2, 1});  // the example of its docstring: 7 layers counted
  CHECK(split(32, 4, 0, 0) == std::vector<std::int64_t>{8, 8, 8, 8});
  CHECK(split(4, 8, 1, 1).empty());
  CHECK(!why.empty());
  const auto modules = torchtitan::modules_of_stages({1, 2, 0});
  CHECK(modules == std::vector<std::vector<std::string>>{
                       {"tok_embeddings", "layers.0"}, {"layers.1", "layers.2"}, {"norm", "output"}});
  CHECK(torchtitan::stage_layers_of_modules(modules, 3) == std::vector<std::int64_t>{1, 2, 0});
  CHECK_FALSE(torchtitan::stage_layers_of_modules({{"tok_embeddings", "layers.1"}, {"layers.0", "norm"}}, 2));
  CHECK(torchtitan::stage_layers_of_points({"layers.2", "layers.5"}, 8) == std::vector<std::int64_t>{2, 3, 3});
}

TEST_CASE("degrees, batches and stages follow from one another as torchtitan has them") {
  const std::string model = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
  const auto setting = [&](const std::string& text, const std::string& key, std::int64_t gpus = 64) {
    return value_of(job_of(model + text, gpus), key);
  };
  const std::string hybrid = "[parallelism]\ndata_parallel_replicate_degree = 4\ncontext_parallel_degree = 2\n";
  CHECK(setting(hybrid, "strategy.zero_group") == "16");
  CHECK(setting(hybrid, "strategy.cp_comm") == "gathered_blocks");
  CHECK(setting(hybrid, "strategy.global_batch") == "256");
  CHECK(setting("[training]\nglobal_batch_size = 1024\n", "strategy.global_batch") == "1024");
  const std::string alone = "[parallelism]\ndata_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n";
  CHECK(setting(alone, "strategy.zero", 0) == "0");
  CHECK(setting(alone, "strategy.bucket_parameters", 0) == "26214400");
  CHECK(job_of(model + alone, 0).gpus == 8);
  const std::string pipeline = "[parallelism]\npipeline_parallel_degree = 2\n";
  CHECK(setting(pipeline, "strategy.zero") == "2");
  CHECK(setting(pipeline, "strategy.split") == "even");  // 17 each, embedding and head counted
  CHECK(setting(pipeline, "strategy.micro_batch") == "1");
  CHECK(setting(pipeline + "fsdp_reshard_after_forward = \"always\"\n", "strategy.zero") == "3");
  CHECK(setting(pipeline + "pipeline_parallel_schedule = \"interleaved1F1B\"\n", "strategy.virtual_stages") == "2");
  CHECK(setting(pipeline + "pipeline_parallel_schedule = \"Interleaved1F1B\"\npipeline_parallel_layers_per_stage = 4\n"
                           "pipeline_parallel_first_stage_less_layers = 0\n"
                           "pipeline_parallel_last_stage_less_layers = 0\n",
                "strategy.virtual_stages") == "4");
  CHECK(setting("[parallelism]\npipeline_parallel_degree = 4\n", "strategy.stage_layers") == "[8, 9, 8, 7]");
  CHECK(setting("[activation_checkpoint]\nselective_ac_option = \"4\"\n", "strategy.recompute_layers") == "8");
  CHECK(setting("[activation_checkpoint]\nmode = \"none\"\n", "strategy.recompute") == "none");
  const std::string first = "[training]\nbatch_size = 2\nfp8_linear = ";
  CHECK(setting(first + "\"\"\n", "strategy.stack.precision") == "bf16");
  CHECK(setting(first + "\"dynamic\"\n", "strategy.stack.precision") == "fp8");
  // Names of 2024: micro-batches were counted, as many as pipeline ranks by default.
  const std::string old =
      "[training]\nbatch_size = 32\ntensor_parallel_degree = 2\n[experimental]\n"
      "pipeline_parallel_degree = 8\npipeline_parallel_schedule = \"1f1b\"\n";
  CHECK(setting(old, "strategy.micro_batch") == "4");
  CHECK(setting(old + "pipeline_parallel_microbatches = 16\n", "strategy.micro_batch") == "2");
}

TEST_CASE("what torchtitan would not run, or is not modelled, is refused with its line and key") {
  CHECK(refusal("[model]\nname = \"llama3\"\nflavor = \"80B\"\n") ==
        ":3: model.flavor '80B' is no flavor of llama3; did you mean '8B'?");
  CHECK(refusal("[model]\nname = \"mamba\"\n").starts_with(":2: model.name 'mamba' is no model of torchtitan that is"));
  CHECK(refusal("[model]\nname = \"llama4\"\nflavor = \"17bx128e\"\n") ==
        ":3: model.flavor 17bx128e of llama4: experts in every other layer are not modelled");
  CHECK(refusal("[trainin]\nsteps = 3\n") == ":1: 'trainin' is no key of torchtitan that is known here");
  CHECK(refusal("[training]\nbatch = 3\n").starts_with(":2: 'training.batch' is no key of torchtitan that is known"));
  CHECK(refusal("[training]\nseq_len = \"8192\"\n") ==
        ":2: training.seq_len must be a whole number of 1 at least, not the text \"8192\"");
  CHECK(refusal("[training]\nseq_len = 8192\nseq_len = 4096\n").starts_with(":3: no valid TOML: "));
  CHECK(refusal("[optimizer]\nname = \"Muon\"\n") ==
        ":2: optimizer.name Muon: only Adam with states in 32 bits is modelled");
  CHECK(refusal("[training]\ndtype = \"bfloat16\"\n") ==
        ":2: training.dtype bfloat16: weights are kept in 32 bits and used in 16");
  CHECK(refusal("[parallelism]\ntensor_parallel_degree = 3\n") ==
        ":2: parallelism.tensor_parallel_degree: 64 GPUs are no multiple of replicate 1 x cp 1 x tp 3 x pp 1; give "
        "--gpus N");
  CHECK(refusal("[parallelism]\ndata_parallel_shard_degree = 8\n") ==
        ":2: parallelism.data_parallel_shard_degree 8 x replicate 1 x cp 1 x tp 1 x pp 1 are 8 GPUs, not 64; -1 takes "
        "what is left");
  CHECK(refusal("[parallelism]\ntensor_parallel_degree = 64\n").find("in 32 bits, which is not modelled") !=
        std::string::npos);
  CHECK(refusal("[parallelism]\nenable_async_tensor_parallel = true\n") ==
        ":2: parallelism.enable_async_tensor_parallel needs compile.enable with 'model' in its components");
  CHECK(refusal("[training]\nglobal_batch_size = 1024\n[parallelism]\npipeline_parallel_degree = 2\n")
            .starts_with(":2: training.global_batch_size 1024: pipelines that run empty 4 times a step"));
  CHECK(refusal("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"LoopedBFS\"\n") ==
        ":3: parallelism.pipeline_parallel_schedule 'loopedbfs' is not modelled; known are 1f1b, gpipe, "
        "interleaved1f1b, zbvzerobubble, dualpipev");
  CHECK(refusal("[activation_checkpoint]\nmode = \"memory_budget\"\n") ==
        ":2: activation_checkpoint.mode 'memory_budget' is not modelled; known are none, full");
  CHECK(refusal("[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\nconverters = [\"quantize.linear.float8\"]\n")
            .starts_with(":4: model.converters: experts in another precision"));
  CHECK(refusal("[training\n").starts_with(":1: no valid TOML: "));
  CHECK(refusal("[|raining]\n").starts_with(":1: no valid TOML: "));
  std::string deep = "a";
  for (int i = 0; i < 2'000; ++i) deep += ".a";
  CHECK(refusal(deep + " = 1\n") == ":1: more than 1000 points in one line");
}

namespace {

std::string text_at(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : import::value_text(found->second);
}

/// The TOML with which a published step is measured, by its row.
std::string toml_of(const Settings& row) {
  const auto at = [&](const std::string& key) { return text_at(row, key); };
  const auto number = [&](const std::string& key) { return std::stoll(at(key)); };
  const std::string name = at("model.name");  // "llama3-8b"
  std::string flavor = name.substr(name.find('-') + 1);
  flavor.back() = 'B';
  const std::int64_t ranks = number("cluster.nodes") * number("cluster.gpus_per_node") /
                             (number("strategy.tp") * number("strategy.pp") * number("strategy.cp"));
  const bool compiled = at("strategy.stack.name") == "torchtitan", pipelined = number("strategy.pp") > 1;
  const std::string recompute = at("strategy.recompute"), layers = at("strategy.recompute_layers");
  const bool every = recompute == "full" && layers != "0";
  std::string text = "[model]\nname = \"" + name.substr(0, name.find('-')) + "\"\nflavor = \"" + flavor + "\"\n";
  if (!compiled && at("strategy.stack.norm_fusion") == "true") text += "norm_type = \"fused_rmsnorm\"\n";
  if (at("strategy.stack.precision") == "fp8") text += "converters = [\"quantize.linear.float8\"]\n";
  text += "[training]\nseq_len = " + at("model.sequence") + "\nlocal_batch_size = " +
          std::to_string(pipelined ? number("strategy.global_batch") / ranks : number("strategy.micro_batch")) +
          "\nglobal_batch_size = " + at("strategy.global_batch") + "\n[parallelism]\n" +
          "tensor_parallel_degree = " + at("strategy.tp") + "\ncontext_parallel_degree = " + at("strategy.cp") +
          "\npipeline_parallel_degree = " + at("strategy.pp") + "\npipeline_parallel_schedule = \"" +
          (at("strategy.schedule") == "interleaved" ? "Interleaved1F1B" : "1F1B") +
          "\"\npipeline_parallel_microbatch_size = " + at("strategy.micro_batch") +
          "\nenable_async_tensor_parallel = " + at("strategy.stack.overlap_tensor") +
          "\n[activation_checkpoint]\nmode = \"" + (recompute == "per_op" || every ? "selective" : recompute) +
          "\"\nselective_ac_option = \"" +
          (every ? std::to_string(number("model.layers") / std::stoll(layers)) : "op") +
          "\"\n[compile]\nenable = " + (compiled ? "true" : "false") + "\ncomponents = [\"model\"" +
          (at("strategy.stack.cross_entropy_fusion") == "true" ? ", \"loss\"]" : "]") +
          "\n[optimizer]\nimplementation = \"" +
          (at("strategy.stack.optimizer_fusion") == "true" ? "fused" : "foreach") + "\"\n";
  // The published ones ran before v0.2.0, which this key tells.
  if (at("strategy.stack.attention") == "flash2") text += "[checkpoint]\nenable_checkpoint = false\n";
  return text;
}

core::Time step_time(const Settings& settings) {
  GraphCache graphs;
  Experiment experiment;
  experiment.settings = settings;
  const auto config = configure(experiment, graphs);
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  return context.run(context.compile(config), results).step_ps;
}

}  // namespace

TEST_CASE("published steps of torchtitan are predicted from a TOML as from their rows") {
  const auto rows = measured::read_training_steps(
      import::parse_csv(measured::compiled_table("torchtitan"), "torchtitan.csv"), Catalog());
  int compared = 0, simulated = 0;
  for (const auto& row : rows) {
    if (!row.family.starts_with("torchtitan") || !row.unsupported.empty()) continue;
    INFO(row.id);
    const Settings& expected = row.experiments.at(0);
    const auto number = [&](const char* key) { return std::get<std::int64_t>(expected.at(key)); };
    const std::int64_t nodes = number("cluster.nodes"), gpus = nodes * number("cluster.gpus_per_node");
    const Job job = job_of(toml_of(expected), gpus);
    const Settings read = settings_of(job, "{like: dgx_h100_superpod, nodes: " + std::to_string(nodes) + "}");
    Settings predicted = expected;
    for (const auto& [key, value] : expected) {
      if (key == "model.name" || key == "model.carried") continue;  // of which rows say nothing
      if (!key.starts_with("model.") && !key.starts_with("strategy.")) continue;
      INFO(key);
      CHECK(text_at(read, key) == import::value_text(value));
      predicted[key] = read.at(key);
    }
    ++compared;
    if (gpus > 8) continue;
    CHECK(step_time(predicted) == step_time(expected));
    ++simulated;
  }
  CHECK(compared == 39);
  CHECK(simulated == 7);
}

TEST_CASE("torchtitan's attention is cuDNN's since v0.2.0 and FlashAttention 2 before, which a key of then tells") {
  // pytorch/torchtitan, models/attention.py: sdpa_backends of v0.2.2 begins with CUDNN_ATTENTION, that of v0.1.0 with
  // FLASH_ATTENTION unless the GPU is a Blackwell; flavors of attn_type flex have FlexAttention.
  const auto attention = [](const std::string& text) {
    const Job job = job_of(text);
    std::string found = value_of(job, "strategy.stack.attention") + ":";
    for (const std::string& note : job.notes)
      for (const char* word : {"cuDNN's attention", "FlashAttention 2, as", "FlexAttention"})
        if (note.find(word) != std::string::npos) found += std::string(" ") + word;
    return found;
  };
  const std::string model = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n";
  CHECK(attention(model) == "cudnn: cuDNN's attention");
  CHECK(attention(model + "deterministic = false\n") == "cudnn: cuDNN's attention");  // of v0.2.0, too
  CHECK(attention(model + "batch_size = 1\n") == "flash2: FlashAttention 2, as");
  CHECK(attention(model + "compile = true\n") == "flash2: FlashAttention 2, as");
  CHECK(attention("[model]\nname = \"llama3\"\nflavor = \"8B_flex\"\n") == "flash2: FlexAttention");
  // Of all keys of these versions those alone are old that v0.2.0 has not.
  const std::string table = import::read_text(kFolder + "keys.tsv");
  int old = 0, all = 0;
  for (const std::string_view line : import::words_of(table, "\n")) {
    const auto cells = import::words_of(line, "\t");
    if (cells.at(0) == "key") continue;
    INFO(line);
    const bool is_old = !torchtitan::key_before_v0_2({{std::string(cells.at(0)), {}}}).empty();
    CHECK(is_old == (cells.at(1) == "v0.1.0"));
    old += is_old ? 1 : 0, ++all;
  }
  CHECK(old == 22);
  CHECK(all == 175);
}

TEST_CASE("a damaged job of torchtitan is read or refused") {
  std::mt19937_64 random(2026);
  const Catalog catalog;
  const struct {
    const char *file, *member;
  } all[] = {{"llama3_405b_v0.2.2.toml", ""},
             {"deepseek_v3_671b_v0.2.2.toml", ""},
             {"llama3_config_registry_2026-08.py", ":llama3_70b"},
             {"llama3_config_registry_2026-08.py", ":llama3_8b_mxfp8"}};
  for (const auto& [name, member] : all) {
    const std::string text = import::read_text(kFolder + name);
    for (int i = 0; i < 150; ++i) {
      const Written file(experiments::testing::mutated(text, random), name);
      try {
        document_of(read_job(file.path + member, {{}, 64}, catalog), "{like: dgx_h100_superpod}");
      } catch (const core::InputError&) {
      }
    }
  }
}

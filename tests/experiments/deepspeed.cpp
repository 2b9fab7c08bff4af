// Configurations of DeepSpeed and scripts of Megatron-DeepSpeed become the settings of an experiment, or are refused.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "core/base/error.hpp"
#include "experiments/deepspeed/arguments.hpp"
#include "experiments/deepspeed/config_keys.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/text.hpp"
#include "experiments/torchtitan/flavors.hpp"
#include "experiments/torchtitan/key_table.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/deepspeed/";

std::string value_of(const Job& job, const std::string& key) {
  std::string value = "(not set)";
  for (const JobSetting& one : job.settings)
    if (one.key == key) value = value == "(not set)" ? one.value : "(twice)";
  return value;
}

struct Written {
  Written(const std::string& text, const std::string& name) : path((folder / name).string()) {
    std::ofstream(path) << text;
  }
  TemporaryFolder folder;
  std::string path;
};

Job job_of(const std::string& text, std::int64_t gpus, const std::string& name, const std::string& model = "") {
  const Written file(text, name);
  return read_job(file.path, {{}, gpus, model}, Catalog());
}

std::string refusal(const std::string& text, std::int64_t gpus = 16, const std::string& name = "ds_config.json",
                    const std::string& model = "llama2-7b") {
  const Written file(text, name);
  try {
    read_job(file.path, {{}, gpus, model}, Catalog());
  } catch (const core::InputError& error) {
    std::string what = error.what();
    for (std::size_t at; (at = what.find(file.path)) != std::string::npos;) what.replace(at, file.path.size(), "");
    return what;
  }
  return "(no error)";
}

/// A configuration with ZeRO `stage` in bf16, and `more`.
std::string config(int stage,
                   const std::string& more = "\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2") {
  return "{\n \"bf16\": {\"enabled\": true},\n \"zero_optimization\": {\"stage\": " + std::to_string(stage) + "},\n " +
         more + "}\n";
}

/// A script of one command whose configuration it writes itself.
std::string script(const std::string& arguments, const std::string& written) {
  return "cat <<END > ds.json\n" + written +
         "END\ndeepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py "
         "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2 "
         "--global-batch-size 64 --bf16 --deepspeed --deepspeed_config ds.json " +
         arguments + "\n";
}

}  // namespace

TEST_CASE("published configurations of DeepSpeed have the batch and sharding that they say") {
  const auto read = [](const std::string& name, std::int64_t gpus) {
    return read_job(kFolder + name, {{}, gpus, "llama2-7b"}, Catalog());
  };
  const Job tuned = read("finetune_hf_llama_ds_config.json", 8);
  for (const auto& [key, value] : {std::pair("strategy.micro_batch", "16"),
                                   {"strategy.global_batch", "256"},
                                   {"strategy.zero", "0"},
                                   {"strategy.stack.precision", "bf16"},
                                   {"strategy.overlap_grad_reduce", "false"},
                                   {"model.layers", "32"}}) {
    INFO(key);
    CHECK(value_of(tuned, key) == value);
  }
  const Job first = read("curriculum_learning_ds_zero_stage_1_config_baseline.json", 128);
  for (const auto& [key, value] : {std::pair("strategy.micro_batch", "4"),
                                   {"strategy.global_batch", "512"},
                                   {"strategy.zero", "1"},
                                   {"strategy.stack.precision", "fp16"},
                                   {"strategy.stack.reduce_in_16bit", "true"}}) {
    INFO(key);
    CHECK(value_of(first, key) == value);
  }
  const std::string document = document_of(tuned, "{like: dgx_a100_superpod, nodes: 1, gpus_per_node: 8}");
  CHECK(parse_sweep(document, tuned.file, {}, Catalog()).experiments.size() == 1);
  CHECK_THROWS_WITH(read("MoE_ds_config_gpt_TEMPLATE.json", 64),
                    Catch::EndsWith(":2: CONFIG_BATCH_SIZE is a placeholder of a template; write its value"));
}

TEST_CASE("sizes of a batch follow from one another as DeepSpeed has them") {
  const auto sizes = [](const std::string& more, std::int64_t gpus) {
    const Job job = job_of(config(1, more), gpus, "ds_config.json", "llama2-7b");
    return value_of(job, "strategy.micro_batch") + " of " + value_of(job, "strategy.global_batch");
  };
  CHECK(sizes("\"train_batch_size\": 64", 16) == "4 of 64");
  CHECK(sizes("\"train_batch_size\": 64, \"gradient_accumulation_steps\": 2", 16) == "2 of 64");
  CHECK(sizes("\"train_micro_batch_size_per_gpu\": 3", 16) == "3 of 48");
  CHECK(sizes("\"train_micro_batch_size_per_gpu\": 3, \"gradient_accumulation_steps\": 4", 16) == "3 of 192");
  CHECK(refusal(config(1, "\"train_batch_size\": 60")) ==
        ":4: train_batch_size 60 is not micro-batch 3 x accumulation 1 x 16 data-parallel ranks");
  CHECK(refusal(config(1, "\"train_batch_size\": \"auto\"")) ==
        ":4: train_batch_size auto is what the trainer's arguments tell; write the number");
}

TEST_CASE("sharding and reductions are DeepSpeed's") {
  const auto setting = [](const std::string& zero, const std::string& key) {
    return value_of(
        job_of("{\"bf16\": {\"enabled\": true}, \"train_batch_size\": 16, \"zero_optimization\": {" + zero + "}}", 16,
               "ds_config.json", "llama2-7b"),
        key);
  };
  CHECK(setting("\"stage\": 3", "strategy.overlap_grad_reduce") == "true");
  CHECK(setting("\"stage\": 2", "strategy.overlap_grad_reduce") == "false");
  CHECK(setting("\"stage\": 2, \"overlap_comm\": true", "strategy.overlap_grad_reduce") == "true");
  CHECK(setting("\"stage\": 2", "strategy.bucket_parameters") == "500000000");
  CHECK(setting("\"stage\": 2, \"reduce_bucket_size\": 2e8", "strategy.bucket_parameters") == "200000000");
  CHECK(setting("\"stage\": 2, \"reduce_bucket_size\": \"auto\"", "strategy.bucket_parameters") == "16777216");
  CHECK(setting("\"stage\": 3, \"mics_shard_size\": 8", "strategy.zero_group") == "8");
}

TEST_CASE("what DeepSpeed's configuration says of what is not modelled is refused by line and key") {
  CHECK(refusal(config(1), 16, "ds_config.json", "").ends_with("has no model; give --model NAME or config.json"));
  CHECK(refusal(config(4)) == ":3: zero_optimization.stage must be 0, 1, 2 or 3");
  CHECK(refusal("{\n \"train_batch_size\": 16,\n \"zero_optimisation\": {}}")
            .starts_with(":3: 'zero_optimisation' is no key of DeepSpeed that is known here"));
  CHECK(
      refusal("{\n \"train_batch_size\": 16,\n \"zero_optimization\": {\n  \"stage\": 2,\n  \"offload_optimizer\": {\n"
              "   \"device\": \"cpu\"}}}") ==
      ":6: zero_optimization.offload_optimizer.device cpu: offloading to the host or to disks is not modelled");
  CHECK(refusal("{\"train_batch_size\": 16}") ==
        "fp16.enabled: training in 32 bits, without bf16 or fp16, is not modelled");
  CHECK(refusal("{\"train_batch_size\": 16, \"fp16\": {\"enabled\": \"auto\"}}") ==
        ":1: fp16.enabled auto is what the trainer's arguments tell; write true or false");
  CHECK(refusal("{\n\"train_batch_size\": 16, // all\n}") == ":2:25: bad JSON: JSON has no comments: leave it out");
  CHECK(refusal(config(1), 16, "ds_config.json", "mixtral-8x7b").find("has experts, which are not modelled") !=
        std::string::npos);
}

TEST_CASE("a script of Megatron-DeepSpeed is Megatron-LM's arguments with DeepSpeed's engine") {
  const Job llama = read_job(kFolder + "pretrain_llama_distributed.sh", {}, Catalog());
  CHECK(llama.gpus == 8);
  CHECK(llama.stack == "deepspeed-2023");
  for (const auto& [key, value] : {std::pair("model.layers", "24"),
                                   {"model.hidden", "2048"},
                                   {"model.ffn_hidden", "5504"},
                                   {"model.norm", "rms_norm"},
                                   {"strategy.tp", "2"},
                                   {"strategy.pp", "2"},
                                   {"strategy.micro_batch", "4"},
                                   {"strategy.global_batch", "32"},
                                   {"strategy.zero", "0"},
                                   {"strategy.stack.precision", "bf16"},
                                   {"strategy.stack.attention", "unfused"}}) {
    INFO(key);
    CHECK(value_of(llama, key) == value);
  }
  const Job job = job_of(script("--ds-sequence-parallel-size 4 --num-key-value-heads 4 --use-flash-attn-v2 "
                                "--num-experts 1 --topk 2 --zero-stage 2",
                                config(2)),
                         0, "train.sh");
  for (const auto& [key, value] : {std::pair("strategy.cp", "4"),
                                   {"strategy.cp_comm", "ulysses"},
                                   {"strategy.zero", "2"},
                                   {"model.kv_heads", "4"},
                                   {"strategy.stack.attention", "flash2"}}) {
    INFO(key);
    CHECK(value_of(job, key) == value);
  }
  const auto split_of = [](const std::string& method) {
    const std::string pipelined = "--pipeline-model-parallel-size 2";
    return value_of(job_of(script(pipelined + " --pp-partition-method '" + method + "'", config(1)), 0, "train.sh"),
                    "strategy.split");
  };
  CHECK(split_of("uniform") == "even");
  CHECK(split_of("parameters") == "by_parameters");
  CHECK(split_of("type:transformer") == "even");
  CHECK(split_of("type:transformer|embedding") == "light_ends");
  const auto why = [](const std::string& arguments, const std::string& written) {
    return refusal(script(arguments, written), 0, "train.sh", "");
  };
  CHECK(why("--num-experts 8", config(1)) ==
        ":7: --num-experts 8: DeepSpeed's experts (in every second layer, tokens sent by einsum) are not modelled; 1 "
        "is a "
        "dense model");
  CHECK(why("--pp-partition-method type:mlp", config(1)) ==
        ":7: --pp-partition-method type:mlp: stages by modules of other types are not modelled; known are uniform, "
        "parameters, type:transformer and type:transformer|embedding");
  CHECK(why("--zero-stage 3", config(1)) == ":7: --zero-stage 3, but the configuration has stage 1");
  CHECK(why("", config(1, "\"train_batch_size\": 32")) ==
        ":5: train_batch_size makes train_batch_size 32, but the arguments have 64");
  CHECK(why("--pipeline-model-parallel-size 2", config(2)) ==
        ":7: --deepspeed: ZeRO 2 and 3 do not go with pipelines in DeepSpeed");
  CHECK(why("--cpu-optimizer", config(1)) == ":7: --cpu-optimizer: an optimizer on the host is not modelled");
  CHECK(why("", config(1, "\"train_batch_size\": $BATCH"))
            .starts_with(":2: DeepSpeed's configuration, written here, follows from $BATCH"));
  CHECK_THROWS_WITH(read_job(kFolder + "MoE_ds_pretrain_gpt_1.3B_MoE128.sh", {}, Catalog()),
                    Catch::Contains(":260: --num-experts 128: DeepSpeed's experts"));
}

TEST_CASE("keys and arguments of DeepSpeed's own sources are known") {
  std::istringstream keys(import::read_text(kFolder + "keys.tsv"));
  std::string row;
  std::getline(keys, row);
  std::size_t count = 0;
  for (; std::getline(keys, row); ++count) {
    INFO(row);
    CHECK(deepspeed::known_keys().find(row.substr(0, row.find('\t'))) != nullptr);
  }
  CHECK(count > 80);
  std::istringstream arguments(import::read_text(kFolder + "arguments.txt"));
  count = 0;
  for (std::string name; std::getline(arguments, name); ++count) {
    INFO(name);
    const bool other = name.starts_with("retro-") || name == "retriever-seq-length";  // of another program than GPT's
    CHECK((other || find_argument(name) != nullptr));
  }
  CHECK(count > 300);
  for (const KnownNames* table : {&deepspeed::known_keys(), &deepspeed::known_arguments()})
    for (const KnownName& one : table->all()) {
      INFO(one.name);
      if (table == &deepspeed::known_arguments() && one.name != "deepspeed-config")
        CHECK(find_argument(one.name) != nullptr);
      std::istringstream settings(one.means);
      for (std::string key; std::getline(settings >> std::ws, key, ',');) CHECK_FALSE(find_key(key, {}).path.empty());
    }
}

TEST_CASE("a damaged job of DeepSpeed is read or refused") {
  std::mt19937_64 random(2023);
  const Catalog catalog;
  for (const char* name :
       {"finetune_hf_llama_ds_config.json", "curriculum_learning_ds_zero_stage_1_config_baseline.json",
        "pretrain_llama_distributed.sh", "MoE_ds_pretrain_gpt_1.3B_MoE128.sh"}) {
    const std::string text = import::read_text(kFolder + name);
    for (int i = 0; i < 100; ++i) {
      const Written file(experiments::testing::mutated(text, random), name);
      try {
        const std::string model = std::string(name).ends_with(".json") ? "llama2-7b" : "";
        document_of(read_job(file.path, {{}, 64, model}, catalog), "{like: dgx_h100_superpod}");
      } catch (const core::InputError&) {
      }
    }
  }
}

// Jobs that train pairs of low rank beside frozen weights, as NeMo, Megatron-Bridge, Automodel, MLPerf's benchmark and
// PEFT write them, become the rank and the weights that they say.
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/jobs/adapter_config.hpp"
#include "experiments/jobs/low_rank_pairs.hpp"
#include "experiments/jobs/named_model.hpp"
#include "experiments/text/text.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/jobs/";
using Pairs = std::vector<std::pair<const char*, const char*>>;

Job job_at(const std::string& path, const JobOptions& options = {}) {
  return read_job(path, options, Catalog());
}

Job job_of(const std::string& name, const std::string& text, const JobOptions& options = {}) {
  TemporaryFolder folder;
  folder.put(name, text);
  return job_at((folder / name).string(), options);
}

/// Returns why a text is refused, behind its path.
std::string refusal(const std::string& name, const std::string& text, const JobOptions& options = {}) {
  TemporaryFolder folder;
  folder.put(name, text);
  const std::string path = (folder / name).string();
  try {
    job_at(path, options);
  } catch (const core::InputError& error) {
    const std::string what = error.what();
    return what.starts_with(path) ? what.substr(path.size()) : what;
  }
  return "(no error)";
}

void check_settings(const Job& job, const Pairs& expected) {
  for (const auto& [key, value] : expected) {
    INFO(key);
    CHECK(value_in(job.settings, key) == value);
  }
}

bool notes_have(const Job& job, const std::string& what) {
  for (const std::string& note : job.notes)
    if (note.find(what) != std::string::npos) return true;
  return false;
}

/// The run_config.yaml of Megatron-Bridge, with a section of pairs.
std::string run_config(const std::string& peft, const std::string& model = "  gated_linear_unit: true\n") {
  return "model:\n  _target_: megatron.bridge.models.GPTModelProvider\n  num_layers: 32\n  hidden_size: 4096\n"
         "  num_attention_heads: 32\n  num_query_groups: 8\n  ffn_hidden_size: 14336\n  add_bias_linear: false\n"
         "  normalization: RMSNorm\n  vocab_size: 128256\n  position_embedding_type: rope\n"
         "  tensor_model_parallel_size: 1\n  attention_dropout: 0.0\n  hidden_dropout: 0.0\n" +
         model +
         "train:\n  global_batch_size: 8\n  micro_batch_size: 1\ndataset:\n  seq_length: 4096\n"
         "mixed_precision: bf16_mixed\n" +
         peft;
}

const std::string kLora = "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n";

}  // namespace

TEST_CASE("the peft section of a run_config.yaml says rank and linear layers by Megatron-Core's names") {
  const Job all =
      job_of("run_config.yaml",
             run_config(kLora + "  target_modules: [linear_qkv, linear_proj, linear_fc1, linear_fc2]\n  dim: 8\n"
                                "  alpha: 16\n  dropout: 0.0\n  dropout_position: pre\n  exclude_modules: []\n"
                                "  canonical_mapping: {}\n  lora_A_init_method: xavier\n  lora_dtype: null\n"
                                "  a2a_experimental: false\n  share_expert_adapters: true\n"),
             {{}, 8});
  check_settings(all, {{"model.lora_rank", "8"},
                       {"model.lora_weights", "linear_qkv+linear_proj+linear_fc1+linear_fc2"},
                       {"strategy.stack.projection_fusion", ""}});
  // dim is 32, and all four are the default (src/megatron/bridge/peft/lora.py).
  const Job none = job_of("run_config.yaml", run_config(kLora), {{}, 8});
  check_settings(none,
                 {{"model.lora_rank", "32"}, {"model.lora_weights", "linear_qkv+linear_proj+linear_fc1+linear_fc2"}});
  const Job some =
      job_of("run_config.yaml",
             run_config(kLora + "  target_modules:\n  - linear_qkv\n  - '*.linear_proj'\n  dropout: 0.1\n"), {{}, 8});
  check_settings(some, {{"model.lora_weights", "linear_qkv+linear_proj"}});
  CHECK(notes_have(some, "peft.dropout (pairs of low rank drop no elements here)"));
  const std::string canonical = "peft:\n  _target_: megatron.bridge.peft.canonical_lora.CanonicalLoRA\n  dim: 16\n";
  check_settings(
      job_of("run_config.yaml", run_config(canonical), {{}, 8}),
      {{"model.lora_weights", "linear_proj+linear_fc2+linear_q+linear_k+linear_v+linear_fc1_gate+linear_fc1_up"}});
  check_settings(job_of("run_config.yaml", run_config(canonical + "  target_modules: [linear_q, linear_v]\n"), {{}, 8}),
                 {{"model.lora_rank", "16"}, {"model.lora_weights", "linear_q+linear_v"}});
  check_settings(job_of("run_config.yaml", run_config("peft: null\n"), {{}, 8}), {{"model.lora_rank", ""}});
  check_settings(job_of("run_config.yaml", run_config("peft:\n  _target_: megatron.bridge.peft.dora.DoRA\n"), {{}, 8}),
                 {{"model.lora_rank", "32"}, {"model.lora_magnitudes", "true"}});
}

TEST_CASE("what a peft section says that is not modelled is refused with its line and the reason") {
  const auto why = [](const std::string& peft) { return refusal("run_config.yaml", run_config(peft), {{}, 8}); };
  CHECK(why("peft:\n  _target_: megatron.bridge.peft.sora.SoRA\n") ==
        ":23: 'peft' megatron.bridge.peft.sora.SoRA is not modelled; known are LoRA, CanonicalLoRA, DoRA");
  CHECK(why(kLora + "  dim: 8.5\n") == ":24: the rank of pairs must be a whole number from 1 to 100000, not '8.5'");
  CHECK(why(kLora + "  exclude_modules: [linear_fc1]\n") ==
        ":24: 'peft.exclude_modules' …: pairs of low rank of this form are not modelled");
  CHECK(why(kLora + "  ranks: 8\n") ==
        ":24: 'peft.ranks' 8: what is trained beside frozen weights is not read by this name");
  CHECK(why(kLora + "  target_modules: [linear_qkv, in_proj]\n")
            .starts_with(":24: modules in_proj: pairs of low rank stand beside linear layers"));
  CHECK(why(kLora + "  target_modules: ['*.layers.0.*.linear_qkv']\n") ==
        ":24: modules *.layers.0.*.linear_qkv: pairs of low rank in some layers alone are not read; "
        "model.architecture has them");
}

TEST_CASE("a recipe of Megatron-Bridge with pairs is what its function sets, and overrides") {
  const auto launch = [](const std::string& words, int gpus = 8) {
    return "#!/bin/bash\ntorchrun --nnodes=1 --nproc_per_node=" + std::to_string(gpus) +
           " scripts/training/run_recipe.py --dataset mock \\\n  " + words + "\n";
  };
  const Job large = job_of("train.sh", launch("--model llama3_70b --mode lora"));
  check_settings(large, {{"model.layers", "80"},
                         {"model.sequence", "4096"},
                         {"model.lora_rank", "16"},
                         {"model.lora_weights", "linear_qkv+linear_proj+linear_fc1+linear_fc2"},
                         {"model.tied_embeddings", "false"},
                         {"strategy.tp", "8"},
                         {"strategy.sequence_parallel", "false"},
                         {"strategy.zero", "0"},
                         {"strategy.global_batch", "8"},
                         {"strategy.micro_batch", "1"},
                         {"strategy.stack.precision", "bf16"},
                         {"strategy.stack.reduce_in_16bit", "false"},
                         {"strategy.stack.rope_fusion", "true"},
                         {"strategy.overlap_grad_reduce", "false"}});
  CHECK(large.gpus == 8);
  const Job small = job_of("train.sh", launch("--recipe llama3_8b_peft_config peft.dim=32 -sl 2048 "
                                              "peft.target_modules=[linear_qkv,linear_proj] peft.dropout=0.1"));
  check_settings(small, {{"model.layers", "32"},
                         {"model.sequence", "2048"},
                         {"model.lora_rank", "32"},
                         {"model.lora_weights", "linear_qkv+linear_proj"},
                         {"strategy.tp", "1"}});
  CHECK(notes_have(small, "peft.dropout of pairs of low rank"));
  check_settings(job_of("train.sh", launch("--recipe llama31_405b_peft_32gpu_h100_bf16_config", 32)),
                 {{"model.sequence", "2048"},
                  {"model.lora_weights", "linear_qkv"},
                  {"strategy.pp", "8"},
                  {"strategy.virtual_stages", "8"},
                  {"strategy.stack.reduce_in_16bit", "true"}});
  const auto why = [&](const std::string& words) { return refusal("train.sh", launch(words)); };
  check_settings(job_of("train.sh", launch("--model llama3_8b --mode dora")),
                 {{"model.lora_rank", "8"}, {"model.lora_magnitudes", "true"}});
  CHECK(why("--recipe llama3_8b_peft_config peft.ranks=8") ==
        ":3: peft.ranks=8: pairs of low rank of this form are not modelled");
  CHECK(why("--recipe vanilla_gpt_pretrain_config model.num_layers=2 peft.dim=8") ==
        ":3: peft.dim: the recipe vanilla_gpt_pretrain_config has no pairs of low rank");
  CHECK(why("--model qwen3_8b --mode lora").starts_with(":3: --recipe qwen3_8b_peft_config is a program in Python"));
}

TEST_CASE("NeMo's first version has pairs beside queries, keys and values unless it names modules") {
  const std::string path = kFolder + "nemo/launcher_llama_squad_peft.yaml";
  const Job job = job_at(path, {{}, 0, "llama2-7b"});
  check_settings(job, {{"model.lora_rank", "32"},
                       {"model.lora_weights", "linear_qkv"},
                       {"model.layers", "32"},
                       {"model.sequence", "4096"},
                       {"strategy.global_batch", "128"},
                       {"strategy.micro_batch", "4"}});
  CHECK(job.gpus == 8);
  CHECK(job.stack == "nemo");
  const std::string text = import::read_text(path);
  const auto with = [&](const std::string& line) {
    std::string changed = text;
    const std::string before = "    lora_tuning:\n";
    changed.insert(changed.find(before) + before.size(), line);
    return changed;
  };
  const JobOptions options{{}, 0, "llama2-7b"};
  check_settings(job_of("x.yaml", with("      target_modules: ['attention_qkv', 'attention_dense']\n"), options),
                 {{"model.lora_weights", "linear_qkv+linear_proj"}});
  check_settings(job_of("x.yaml", with("      target_modules: ['all']\n"), options),
                 {{"model.lora_weights", "linear_qkv+linear_proj+linear_fc1+linear_fc2"}});
  check_settings(job_of("x.yaml", with("      target_modules: [attention]\n      variant: canonical\n"), options),
                 {{"model.lora_weights", "linear_proj+linear_q+linear_k+linear_v"}});
  std::string other = text;
  other.replace(other.find("peft_scheme: \"lora\""), 19, "peft_scheme: \"ia3\"");
  CHECK(refusal("x.yaml", other, options).find("'model.peft.peft_scheme' ia3 is not modelled; known is lora") !=
        std::string::npos);
}

TEST_CASE("Automodel and PEFT have a pair for each projection, and layers whose projections are GEMMs of their own") {
  const std::string all = "linear_proj+linear_fc2+linear_q+linear_k+linear_v+linear_fc1_gate+linear_fc1_up";
  const Job job = job_at(kFolder + "nemo/automodel_llama_3_3_70b_instruct_squad_peft.yaml", {{}, 8});
  check_settings(job, {{"model.lora_rank", "8"},
                       {"model.lora_weights", all.c_str()},
                       {"strategy.stack.projection_fusion", "false"},
                       {"strategy.tp", "4"},
                       {"strategy.micro_batch", "4"},
                       {"strategy.global_batch", "32"}});
  CHECK(notes_have(job, "linear layers have the names of Llama's"));
  // As examples/llm_finetune/llama3_1/llama3_1_8b_squad_qlora.yaml has it.
  const std::string quantised =
      "step_scheduler:\n  global_batch_size: 32\n  local_batch_size: 4\nmodel:\n"
      "  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\npeft:\n"
      "  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  target_modules: '*_proj'\n  dim: 16\n"
      "distributed:\n  strategy: fsdp2\nquantization:\n  load_in_4bit: True\n  load_in_8bit: False\n"
      "  bnb_4bit_compute_dtype: bfloat16\n  bnb_4bit_use_double_quant: True\n  bnb_4bit_quant_storage: bfloat16\n";
  const std::string type = "  bnb_4bit_quant_type: ";
  check_settings(job_of("x.yaml", quantised + type + "nf4\n", {{}, 1}),
                 {{"model.lora_rank", "16"}, {"model.frozen_weights", "nf4"}, {"strategy.zero", "0"}});
  CHECK(refusal("x.yaml", quantised + type + "fp4\n", {{}, 1})
            .starts_with(":18: 'quantization.bnb_4bit_quant_type' fp4: frozen weights in 4 bits are those of QLoRA"));
  CHECK(refusal("x.yaml", quantised, {{}, 1})
            .starts_with(":13: 'quantization.load_in_4bit' is modelled with bnb_4bit_quant_type nf4"));

  TemporaryFolder folder;
  // As PEFT 0.18.1 writes it.
  const auto adapter = [](const std::string& modules, const std::string& more = "") {
    return "{\n  \"alpha_pattern\": {},\n  \"auto_mapping\": null,\n"
           "  \"base_model_name_or_path\": \"meta-llama/Llama-2-7b-hf\",\n  \"bias\": \"none\",\n"
           "  \"fan_in_fan_out\": false,\n  \"inference_mode\": true,\n  \"init_lora_weights\": true,\n"
           "  \"layers_to_transform\": null,\n  \"loftq_config\": {},\n  \"lora_alpha\": 16,\n"
           "  \"lora_dropout\": 0.0,\n  \"megatron_core\": \"megatron.core\",\n  \"modules_to_save\": null,\n"
           "  \"peft_type\": \"LORA\",\n  \"peft_version\": \"0.18.1\",\n  \"r\": 8,\n  \"rank_pattern\": {},\n" +
           more + "  \"target_modules\": " + modules +
           ",\n  \"task_type\": \"CAUSAL_LM\",\n  \"use_dora\": false,\n  \"use_rslora\": false\n}\n";
  };
  const std::string config =
      "{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 1,\n"
      "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3}}\n";
  const auto with = [&](const std::string& text) {
    TemporaryFolder own;
    own.put("adapter_config.json", text);
    own.put("ds_config.json", config);
    return job_at((own / "ds_config.json").string(), {{}, 8, (own / "adapter_config.json").string()});
  };
  check_settings(with(adapter("[\n    \"v_proj\",\n    \"q_proj\"\n  ]")),
                 {{"model.lora_rank", "8"},
                  {"model.lora_weights", "linear_q+linear_v"},
                  {"strategy.stack.projection_fusion", "false"},
                  {"strategy.zero", "3"},
                  {"model.layers", "32"}});
  check_settings(with(adapter("\"all-linear\"")), {{"model.lora_weights", all.c_str()}});
  const auto why = [&](const std::string& text) {
    try {
      with(text);
    } catch (const core::InputError& error) {
      const std::string what = error.what();
      return what.substr(what.rfind("adapter_config.json") + 19);
    }
    return std::string("(no error)");
  };
  CHECK(why(adapter("[\"q_proj\"]", "  \"use_rslorra\": true,\n")) ==
        ":19: 'use_rslorra' is no key of PEFT that is known here; did you mean 'use_rslora'?");
  CHECK(why(adapter("[\"q_proj\"]", "  \"lora_bias\": true,\n"))
            .starts_with(":19: lora_bias true: pairs of one rank stand beside the modules of all layers"));
  CHECK(why(adapter("[\"lm_head\"]")).starts_with(":19: modules lm_head: pairs of low rank stand beside"));
}

TEST_CASE("MLPerf's benchmark of fine-tuning has rank 16 beside attention, which no variable says") {
  const Job job = job_at(kFolder + "mlperf/llama2_70b_lora/config_GB300_18x4x1xtp1pp1cp8.sh");
  check_settings(job, {{"model.layers", "80"},
                       {"model.lora_rank", "16"},
                       {"model.lora_weights", "linear_qkv+linear_proj"},
                       {"model.sequence", "8192"},
                       {"strategy.tp", "1"},
                       {"strategy.cp", "8"},
                       {"strategy.cp_comm", "ulysses"},
                       {"strategy.global_batch", "9"},
                       {"strategy.stack.precision", "fp8"}});
  CHECK(job.gpus == 72);
  CHECK(notes_have(job, "a tenth of their inputs is dropped"));
  CHECK(notes_have(job, "LORA_A2A (outputs of pairs of low rank are gathered here)"));
}

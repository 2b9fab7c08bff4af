// Jobs of NeMo, of its entries in MLPerf Training, of Automodel and of Primus become the settings that they are
// published with, or are refused with line and name.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/error.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/frameworks/read_back.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/nemo/interpolation.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/nemo/settings.hpp"
#include "experiments/primus/primus.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"
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

void check_settings(const Job& job, const Pairs& expected) {
  for (const auto& [key, value] : expected) {
    INFO(key);
    CHECK(value_in(job.settings, key) == value);
  }
}

/// A folder with copies of files of `from` and texts of its own.
struct Copies {
  Copies(const std::string& from, const std::vector<std::string>& names) {
    for (const std::string& name : names) folder.put(name, import::read_text(kFolder + from + name));
  }
  std::string operator/(const std::string& name) const { return (folder / name).string(); }
  TemporaryFolder folder;
};

/// Returns why a text is refused, behind its path.
std::string refusal(const std::string& text, const std::string& name, const JobOptions& options = {}) {
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

std::string refusal_of(const std::string& path, const JobOptions& options = {}) {
  try {
    job_at(path, options);
  } catch (const core::InputError& error) {
    const std::string what = error.what();
    return what.substr(what.rfind('/') + 1);
  }
  return "(no error)";
}

std::string notes_of(const Job& job) {
  std::string text;
  for (const std::string& note : job.notes) text += note + "\n";
  return text;
}

/// Returns the settings of a measured row.
Settings row_settings(const std::string& id, const std::string& table) {
  const auto rows =
      measured::read_training_steps(import::parse_csv(measured::compiled_table(table), table + ".csv"), Catalog());
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.id == id; });
  REQUIRE(found != rows.end());
  REQUIRE(found->experiments.size() == 1);
  return found->experiments[0];
}

/// Returns a job's settings on the machines of a row, with some set otherwise.
Settings on_machines_of(const Settings& row, Job job, const Pairs& set = {}) {
  for (const auto& [key, value] : set) {
    std::erase_if(job.settings, [&](const JobSetting& one) { return one.key == key; });
    job.settings.push_back({key, value, {}});
  }
  return settings_of(job, row, Catalog());
}

/// Returns the settings of model and strategy in which a job and a row differ, "key: job, row". Rows carry no names of
/// what changes no step.
std::vector<std::string> compared(const Settings& job, const Settings& row) {
  std::vector<std::string> found;
  for (const Difference& one : differences(job, row))
    if (!one.key.starts_with("model.carried")) found.push_back(one.key + ": " + one.value + ", " + one.other);
  return found;
}

auto step_of(const Settings& settings) {
  Experiment one;
  one.settings = settings;
  GraphCache graphs;
  const core::step::Configuration configuration = configure(one, graphs);
  core::step::SimulationContext context(true);
  core::step::IsolatedResults isolated;
  return context.run(context.compile(configuration), isolated).step_ps;
}

}  // namespace

TEST_CASE("NVIDIA's entries of MLPerf Training v5.1 have the layouts that their names say") {
  struct Known {
    const char *file, *tp, *samples;
    std::int64_t gpus;
  };
  // Samples of a step are those of "global_batch_size" in the entries' logs.
  for (const Known& known : {Known{"config_GB300_128x4x72xtp2pp8cp2_cg_fp4.sh", "2", "1152", 512},
                             Known{"config_GB200_640x4x24xtp4pp8cp2_cg_fp4.sh", "4", "960", 2560},
                             Known{"config_GB200_1280x4x16xtp4pp8cp2_cg_fp4.sh", "4", "1280", 5120}}) {
    INFO(known.file);
    const Job job = job_at(kFolder + "mlperf/" + known.file);
    CHECK(job.gpus == known.gpus);
    CHECK(job.kind == "an MLPerf configuration of NeMo");
    check_settings(job, {{"strategy.tp", known.tp},
                         {"strategy.pp", "8"},
                         {"strategy.cp", "2"},
                         {"strategy.virtual_stages", "8"},
                         {"strategy.schedule", "interleaved"},
                         {"strategy.split", "light_ends"},
                         {"strategy.micro_batch", "1"},
                         {"strategy.global_batch", known.samples},
                         {"strategy.zero", "1"},
                         {"strategy.recompute", "none"},
                         {"strategy.sequence_parallel", "true"},
                         {"strategy.overlap_grad_reduce", "true"},
                         {"strategy.stack.precision", "nvfp4"},
                         {"strategy.stack.cuda_graphs", "all"},
                         {"strategy.stack.overlap_tensor", "false"},
                         {"strategy.stack.overlap_parameters", "true"},
                         {"strategy.stack.reduce_in_16bit", "true"},
                         {"placement.order", "tp-cp-ep-pp-dp"},
                         {"model.layers", "126"},
                         {"model.hidden", "16384"},
                         {"model.sequence", "8192"},
                         {"model.vocabulary", "128256"}});
    CHECK(notes_of(job).find("not beside it") == std::string::npos);
    CHECK(notes_of(job).find("not known here") == std::string::npos);
  }
}

TEST_CASE("files that an MLPerf configuration lacks are named with what they set, or refused") {
  const std::string name = "config_GB300_128x4x72xtp2pp8cp2_cg_fp4.sh";
  const Job whole = job_at(kFolder + "mlperf/" + name);
  const Copies some("mlperf/", {name, "config_common.sh"});
  const Job job = job_at(some / name);
  CHECK(notes_of(job).find("not beside it, taken as in NVIDIA's entries of v5.1: config_common_fp4.sh (FP4=True "
                           "FP8=False") != std::string::npos);
  REQUIRE(job.settings.size() == whole.settings.size());
  for (const JobSetting& one : whole.settings) {
    INFO(one.key);
    CHECK(value_in(job.settings, one.key) == one.value);
  }
  const Copies alone("mlperf/", {name});
  CHECK(refusal_of(alone / name) ==
        name +
            ":1: config_common.sh is not beside it, and may set OVERLAP_GRAD_REDUCE; put it there, or give what it "
            "sets with --env NAME=VALUE");
  const Job given = job_at(alone / name, {{{"OVERLAP_GRAD_REDUCE", "True"}}, 0});
  CHECK(notes_of(given).find("taken to set nothing but what --env gives: config_common.sh") != std::string::npos);
  CHECK(refusal_of(alone / name, {{{"FP88", "False"}}, 0}).find("did you mean 'FP8'?") != std::string::npos);
}

TEST_CASE("an MLPerf configuration says its model by a variable, by its folder or not at all") {
  const std::string layout =
      "export MINIBS=4\nexport TENSOR_MODEL_PARALLEL=2\nexport PIPELINE_MODEL_PARALLEL=1\nexport CONTEXT_PARALLEL=1\n"
      "export MICRO_BATCH_SIZE=2\nexport DGXNNODES=2\nexport DGXNGPU=8\nexport FP8=True\n";
  CHECK(refusal(layout, "config_x.sh") ==
        ": it does not say which model it trains; give --model NAME, as in --model llama3-405b");
  TemporaryFolder folder;
  folder.put("config_x.sh", layout + "export MODEL_SIZE=8b\n");
  const Job small = job_at((folder / "config_x.sh").string());
  check_settings(small, {{"model.layers", "32"},
                         {"strategy.global_batch", "32"},
                         {"strategy.stack.precision", "fp8"},
                         {"strategy.bucket_parameters", "134217728"}});
  const Job other = job_at((folder / "config_x.sh").string(), {{}, 32, "gpt3-175b"});
  check_settings(other, {{"model.layers", "96"}, {"model.sequence", "2048"}, {"strategy.global_batch", "64"}});
  std::filesystem::create_directories(folder / "llama31_405b");
  folder.put("llama31_405b/config_x.sh", layout);
  CHECK(value_in(job_at((folder / "llama31_405b/config_x.sh").string()).settings, "model.layers") == "126");
  std::filesystem::create_directories(folder / "llama2_70b_lora");
  folder.put("llama2_70b_lora/config_x.sh", layout);
  check_settings(job_at((folder / "llama2_70b_lora/config_x.sh").string()),
                 {{"model.layers", "80"}, {"model.lora_rank", "16"}, {"model.lora_weights", "linear_qkv+linear_proj"}});
  CHECK(refusal(layout + "export LORA_DIM=many\n", "config_x.sh", {{}, 0, "llama2-70b"}) ==
        ":9: the rank of pairs must be a whole number from 1 to 100000, not 'many'");
  CHECK(refusal(layout + "export LORA_TARGETS=all\n", "config_x.sh", {{}, 0, "llama2-70b"}) ==
        ":9: 'LORA_TARGETS' all: pairs of low rank of this form are not modelled");
  CHECK(refusal(layout + "export FP8=maybe\n", "config_x.sh", {{}, 0, "llama3-8b"}) ==
        ":9: 'FP8' maybe is not modelled; known are True, 1, False, 0");
  CHECK(refusal(layout + "export MINIBS=$(nproc)\n", "config_x.sh", {{}, 0, "llama3-8b"})
            .starts_with(":9: MINIBS follows from $(nproc), the output of a command"));
  CHECK(refusal_of(kFolder + "mlperf/system_theia_ngpu512.json").find("a cluster and no job") != std::string::npos);
}

TEST_CASE("an experiment of Primus has Primus's own defaults and the model that it names") {
  const std::string name = "llama3.1_8B-FP8-pretrain.yaml";
  const Job job = job_at(kFolder + "primus/" + name, {{}, 8});
  CHECK(job.stack == "primus");
  CHECK(notes_of(job).find("llama3.1_8B.yaml is not beside it: the model is the catalog's llama3-8b") !=
        std::string::npos);
  check_settings(job, {{"strategy.micro_batch", "4"},
                       {"strategy.global_batch", "128"},
                       {"strategy.zero", "1"},
                       {"strategy.overlap_grad_reduce", "true"},
                       {"strategy.stack.overlap_parameters", "true"},
                       {"strategy.stack.precision", "fp8"},
                       {"strategy.stack.gradient_accumulation_fusion", "false"},
                       {"model.sequence", "8192"},
                       {"model.layers", "32"},
                       {"model.kv_heads", "8"}});
  // The row of this model was measured with half the micro-batch; nothing else that the file says differs.
  const Settings row = row_settings("primus_mi325x_8b_fp8_8", "primus");
  const Settings own = on_machines_of(row, job, {{"strategy.micro_batch", "2"}});
  CHECK(compared(own, row).empty());
  CHECK(step_of(own) == step_of(row));
  // With the chain of its model's files beside it, the same follows from them.
  const Copies copies("primus/", {name});
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "primus/models"))
    copies.folder.put(entry.path().filename().string(), import::read_text(entry.path().string()));
  const Job chained = job_at(copies / name, {{}, 8});
  for (const JobSetting& one : job.settings) {
    if (one.key == "model.name" || one.key == "model.vocabulary" || one.key == "model.carried") continue;
    INFO(one.key);
    CHECK((value_in(chained.settings, one.key) == one.value));
  }
  const Job mixtral = job_at(kFolder + "primus/mixtral_8x22B_v0.1-BF16-pretrain.yaml", {{}, 64});
  check_settings(mixtral, {{"strategy.ep", "8"},
                           {"strategy.pp", "4"},
                           {"strategy.recompute", "none"},  // the block method with 0 layers
                           {"model.experts", "8"},
                           {"strategy.stack.dispatcher", "all_to_all"}});
}

TEST_CASE("what an experiment of Primus says otherwise is followed, and what is no job is refused") {
  const auto experiment = [](const std::string& overrides, const std::string& more = "") {
    return "exp_name: ${PRIMUS_EXP_NAME:one}\nmodules:\n  pre_trainer:\n    framework: megatron\n"
           "    config: pre_trainer.yaml\n    model: llama2_7B.yaml\n    overrides:\n      global_batch_size: 64\n" +
           overrides + more;
  };
  const auto job = [&](const std::string& overrides, const JobOptions& options = {{}, 8}) {
    TemporaryFolder folder;
    folder.put("x.yaml", experiment(overrides));
    return job_at((folder / "x.yaml").string(), options);
  };
  const std::string pipeline = "      pipeline_model_parallel_size: 4\n";
  check_settings(job(""), {{"strategy.micro_batch", "2"}, {"model.sequence", "1024"}, {"strategy.zero", "1"}});
  check_settings(job("      num_layers: 4\n      use_distributed_optimizer: false\n"),
                 {{"model.layers", "4"}, {"strategy.zero", "0"}});
  check_settings(job(pipeline + "      patch_primus_pipeline: true\n      pp_algorithm: zbv-formatted\n"),
                 {{"strategy.schedule", "zb_v"}, {"strategy.virtual_stages", "2"}});
  check_settings(job(pipeline + "      patch_zero_bubble: true\n"), {{"strategy.schedule", "zb_h1"}});
  check_settings(job(pipeline + "      decoder_pipeline_manual_split_list: [9, 8, 8, 7]\n"),
                 {{"strategy.stage_layers", "[9, 8, 8, 7]"}});
  const std::string variable = "      micro_batch_size: ${MBS:1}\n";
  check_settings(job(variable), {{"strategy.micro_batch", "1"}});
  CHECK(notes_of(job(variable)).find("assumed of the environment (--env NAME=VALUE): MBS=1") != std::string::npos);
  check_settings(job(variable, {{{"MBS", "4"}}, 8}), {{"strategy.micro_batch", "4"}});
  CHECK(refusal(experiment(variable), "x.yaml", {{{"MBX", "4"}}, 8}) ==
        ": the file does not read 'MBX' from the environment");
  CHECK(refusal(experiment("      micro_batch_size: ${MBS}\n"), "x.yaml") ==
        ":9: '${MBS}' follows from $MBS, a variable of the environment; give it with --env MBS=VALUE");
  CHECK(refusal(experiment("      tensor_model_paralel_size: 2\n"), "x.yaml") ==
        ":9: 'tensor_model_paralel_size' is no setting of Primus that is known here; did you mean "
        "'tensor_model_parallel_size'?");
  CHECK(refusal(experiment("      optimizer: muon\n"), "x.yaml") ==
        ":9: --optimizer muon: only Adam with states in 32 bits is modelled");
  CHECK(refusal("modules:\n  pre_trainer:\n    framework: torchtitan\n", "x.yaml") ==
        ":3: the framework torchtitan is not read; known is megatron, whose arguments overrides are");
  CHECK(refusal("modules:\n  pre_trainer:\n    model: nothing_7B.yaml\n", "x.yaml")
            .starts_with(":3: the model nothing_7B.yaml is neither beside the file nor in the catalog"));
  for (const char* name : {"hardware_mi355x.yaml", "target_cluster_mi355x_4nodes.yaml"})
    CHECK(refusal_of(kFolder + "primus/" + name).find("describes machines, a cluster and no job") != std::string::npos);
}

TEST_CASE("NeMo's own configuration of Llama 3 70B is the published row's but for batch and precision") {
  const Job job = job_at(kFolder + "nemo/launcher_llama3_70b.yaml", {{}, 64});
  CHECK(job.stack == "nemo");
  CHECK(notes_of(job).find("the file starts 1024 GPUs; here it is 64") != std::string::npos);
  check_settings(job, {{"strategy.tp", "4"},
                       {"strategy.pp", "4"},
                       {"strategy.cp", "2"},
                       {"strategy.virtual_stages", "5"},
                       {"strategy.global_batch", "2048"},
                       {"model.layers", "80"},
                       {"model.kv_heads", "8"},
                       {"model.norm", "rms_norm"},
                       {"model.vocabulary", "128512"}});
  // The file sums gradients in fp32 and fuses the loss.
  const Settings row = row_settings("nemo_011", "training_steps");
  CHECK(compared(on_machines_of(row, job, {{"strategy.global_batch", "128"}, {"strategy.stack.precision", "fp8"}}),
                 row) == std::vector<std::string>{"strategy.stack.reduce_in_16bit: false, true",
                                                  "strategy.stack.fused_loss: true, false"});
}

TEST_CASE("settings of NeMo and of Megatron-Bridge are Megatron-LM's under other names") {
  const std::string first =
      "trainer:\n  num_nodes: 2\n  devices: 8\n  precision: bf16\nmodel:\n  micro_batch_size: 2\n"
      "  global_batch_size: 64\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 1\n"
      "  encoder_seq_length: 2048\n  num_layers: 24\n  hidden_size: 2048\n  num_attention_heads: 16\n"
      "  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  bias: true\n  activation: gelu\n"
      "  sequence_parallel: true\n  tokenizer:\n    library: megatron\n    type: GPT2BPETokenizer\n"
      "  optim:\n    name: mcore_distributed_optim\n    overlap_grad_sync: true\n    grad_sync_dtype: bf16\n"
      "  data:\n    seq_length: ${training.model.encoder_seq_length}\n";
  TemporaryFolder folder;
  folder.put("first.yaml", first);
  const Job job = job_at((folder / "first.yaml").string());
  CHECK(job.gpus == 16);
  check_settings(job, {{"model.ffn_hidden", "8192"},
                       {"model.biases", "true"},
                       {"model.activation", "gelu"},
                       {"model.vocabulary", "50432"},  // 50,257 in whole 256
                       {"model.sequence", "2048"},
                       {"strategy.overlap_grad_reduce", "true"},
                       {"strategy.stack.reduce_in_16bit", "true"},
                       {"strategy.stack.rope_fusion", "false"},
                       {"strategy.zero", "1"}});
  const std::string later =
      "model:\n  _target_: megatron.bridge.models.GPTModelProvider\n  num_layers: 32\n  hidden_size: 4096\n"
      "  num_attention_heads: 32\n  num_query_groups: 8\n  group_query_attention: true\n  ffn_hidden_size: 14336\n"
      "  gated_linear_unit: true\n  add_bias_linear: false\n  normalization: RMSNorm\n  vocab_size: 128256\n"
      "  position_embedding_type: rope\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2\n"
      "  virtual_pipeline_model_parallel_size: 4\n  share_embeddings_and_output_weights: false\n"
      "  attention_dropout: 0.0\n  hidden_dropout: 0.0\n  sequence_parallel: true\n"
      "train:\n  global_batch_size: 128\n  micro_batch_size: 1\n  train_iters: 10\n"
      "dataset:\n  sequence_length: 8192\nmixed_precision: bf16_with_mxfp8_mixed\n"
      "ddp:\n  overlap_grad_reduce: true\n  grad_reduce_in_fp32: false\noptimizer:\n  optimizer: adam\n"
      "  use_distributed_optimizer: true\n";
  folder.put("run_config.yaml", later);
  check_settings(job_at((folder / "run_config.yaml").string(), {{}, 64}), {{"model.layers", "32"},
                                                                           {"model.activation", "swiglu"},
                                                                           {"model.sequence", "8192"},
                                                                           {"strategy.global_batch", "128"},
                                                                           {"strategy.virtual_stages", "4"},
                                                                           {"strategy.stack.precision", "mxfp8"},
                                                                           {"strategy.stack.reduce_in_16bit", "true"},
                                                                           {"strategy.zero", "1"}});
  folder.put(
      "second.yaml",
      "trainer:\n  num_nodes: 2\n  devices: 8\n  strategy:\n    tensor_model_parallel_size: 4\n"
      "    sequence_parallel: true\n    ddp:\n      grad_reduce_in_fp32: false\n      overlap_grad_reduce: true\n"
      "  plugins:\n    precision: bf16-mixed\n    fp8: hybrid\n"
      "model:\n  config:\n    num_layers: 32\n    hidden_size: 4096\n    num_attention_heads: 32\n"
      "data:\n  seq_length: 4096\n  global_batch_size: 64\n  micro_batch_size: 2\n");
  check_settings(job_at((folder / "second.yaml").string()), {{"strategy.tp", "4"},
                                                             {"strategy.sequence_parallel", "true"},
                                                             {"strategy.overlap_grad_reduce", "true"},
                                                             {"strategy.stack.reduce_in_16bit", "true"},
                                                             {"strategy.stack.precision", "fp8"},
                                                             {"strategy.micro_batch", "2"},
                                                             {"model.layers", "32"}});
  folder.put("override.yaml", "model:\n  tensor_model_parallel_size: 4\ntrain:\n  global_batch_size: 32\n");
  CHECK(refusal_of((folder / "override.yaml").string()).find("it does not describe its model") != std::string::npos);
  check_settings(job_at((folder / "override.yaml").string(), {{}, 8, "llama3-8b"}),
                 {{"model.layers", "32"}, {"model.sequence", "8192"}, {"strategy.tp", "4"}});
  CHECK(refusal(first + "  tensor_model_paralel_size: 2\n", "x.yaml").find("did you mean") != std::string::npos);
  CHECK(refusal("model:\n  tensor_model_parallel_size: ${a}\na: ${model.tensor_model_parallel_size}\n", "x.yaml") ==
        ":2: its references lead to themselves, or too deep");
  CHECK(refusal(first + "    reset_position_ids: ${b\n", "x.yaml") == "(no error)");
}

TEST_CASE("Automodel's benchmarks have the models, layouts and batches that they say") {
  const Job job = job_at(kFolder + "nemo/automodel_deepseek_v3_sdpa_compile_gb200.yaml", {{}, 64});
  CHECK(job.stack == "torch-fsdp-deepep");
  check_settings(job, {{"model.layers", "61"},
                       {"model.experts", "256"},
                       {"model.sequence", "4096"},
                       {"strategy.ep", "64"},
                       {"strategy.pp", "1"},
                       {"strategy.zero", "3"},
                       {"strategy.micro_batch", "2"},
                       {"strategy.global_batch", "128"},
                       {"strategy.recompute", "full"},
                       {"strategy.stack.attention", "flash2"},
                       {"strategy.stack.rope_fusion", "false"},
                       {"strategy.stack.dispatcher", "hybrid_ep"},
                       {"strategy.stack.precision", "bf16"}});
  CHECK(notes_of(job_at(kFolder + "nemo/automodel_deepseek_v3_sdpa_compile_gb200.yaml"))
            .find("it runs on 16 nodes, and does not say how many GPUs each has") != std::string::npos);
  CHECK(
      refusal_of(kFolder + "nemo/automodel_deepseek_v3_sdpa_compile_mxfp8_gb200.yaml")
          .starts_with("automodel_deepseek_v3_sdpa_compile_mxfp8_gb200.yaml:88: 'model.backend.te_fp8.recipe' mxfp8"));
  // 61 layers in stages of 2 are 31, of which 28 are whole rounds over 4 ranks: the first five have 3 layers.
  const Job pipeline = job_at(kFolder + "nemo/automodel_deepseek_v3_te_deepep.yaml", {{}, 256});
  check_settings(pipeline, {{"strategy.virtual_stages", "7"},
                            {"strategy.schedule", "interleaved"},
                            {"strategy.micro_batch", "1"},
                            {"strategy.stage_layers",
                             "[3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]"}});
  const Job measured = job_at(kFolder + "nemo/automodel_qwen3_moe_30b_te_deepep.yaml", {{}, 8});
  const Settings row = row_settings("automodel_06", "training_steps");
  const Settings own = on_machines_of(row, measured);
  CHECK(compared(own, row) == std::vector<std::string>{"strategy.stack.layers: transformer_engine, framework"});
  CHECK(step_of(own) == step_of(row));
}

TEST_CASE("what Automodel does that is not modelled is refused with its line") {
  const std::string text =
      "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler:\n  global_batch_size: 32\n"
      "  local_batch_size: 1\nmodel:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
      "  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\ndistributed:\n  strategy: fsdp2\n  tp_size: 2\n"
      "  dp_size: 4\n";
  TemporaryFolder folder;
  folder.put("x.yaml", text);
  const Job job = job_at((folder / "x.yaml").string());
  CHECK(job.gpus == 8);
  check_settings(job, {{"model.layers", "32"}, {"strategy.zero", "3"}, {"strategy.sequence_parallel", "false"}});
  CHECK(refusal(text + "peft:\n  dim: 8\n  use_dora: true\n", "x.yaml") ==
        ":14: 'peft.use_dora' true: magnitudes of weights (DoRA) of projections are not modelled");
  CHECK(refusal(text + "  pp_sise: 2\n", "x.yaml") ==
        ":12: 'distributed.pp_sise' is no key of NeMo Automodel that is known here; did you mean "
        "'distributed.pp_size'?");
  CHECK(refusal(text + "  activation_checkpointing: some\n", "x.yaml") ==
        ":12: 'distributed.activation_checkpointing' must be true or false, not 'some'");
  CHECK(refusal(text + "optimizer:\n  _target_: torch.optim.SGD\n", "x.yaml") ==
        ":13: 'optimizer._target_' torch.optim.SGD is not modelled; only Adam is");
  std::string other = text;
  other.replace(other.find("meta-llama/Llama-3.1-8B"), 23, "nobody/knows-7B");
  CHECK(refusal(other, "x.yaml").starts_with(":7: unknown model 'nobody/knows-7B'"));
  CHECK(refusal(other, "x.yaml", {{}, 0, "llama2-7b"}) == "(no error)");
}

TEST_CASE("options --model and --env mean something only to files that ask for them") {
  const std::string script = kFolder + "train_llama3_8b_h100_fp8.sh";
  CHECK(refusal_of(script, {{}, 0, "llama3-8b"}).find("the file describes its model; leave --model out") !=
        std::string::npos);
  CHECK(refusal_of(kFolder + "nemo/automodel_qwen3_moe_30b_te_deepep.yaml", {{{"A", "1"}}, 8})
            .find("the file is no script") != std::string::npos);
}

TEST_CASE("every name of a framework's own leads to an argument that there is") {
  for (const Dialect* dialect : {&mlperf_dialect(), &nemo_dialect(), &primus_dialect()})
    for (const KnownName& one : dialect->names.all()) {
      if (one.fate != Fate::mapped) continue;
      INFO(one.name << " " << one.means);
      CHECK(find_argument(one.means) != nullptr);
    }
  for (const KnownName& one : automodel_keys().all()) {
    std::istringstream keys(one.means);
    for (std::string key; std::getline(keys >> std::ws, key, ',');) {
      INFO(one.name << " " << key);
      CHECK_FALSE(find_key(key, {}).path.empty());
    }
  }
}

TEST_CASE("a damaged job of NeMo, MLPerf or Primus is read or refused") {
  std::mt19937_64 random(2026);
  const Catalog catalog;
  for (const char* name :
       {"mlperf/config_GB300_128x4x72xtp2pp8cp2_cg_fp4.sh", "nemo/automodel_deepseek_v3_te_deepep.yaml",
        "nemo/launcher_llama3_70b.yaml", "primus/mixtral_8x22B_v0.1-BF16-pretrain.yaml"}) {
    const std::string text = import::read_text(kFolder + name);
    TemporaryFolder folder;
    folder.put("config_common.sh", import::read_text(kFolder + "mlperf/config_common.sh"));
    const std::string file = std::filesystem::path(name).filename().string();
    for (int i = 0; i < 150; ++i) {
      folder.put(file, testing::mutated(text, random));
      try {
        document_of(read_job((folder / file).string(), {{}, 64}, catalog), "{like: dgx_h100_superpod}");
      } catch (const core::InputError&) {
      }
    }
  }
}

// Calculon's executions and models become the settings of the runs that they describe, or are refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "core/base/error.hpp"
#include "experiments/frameworks/registry.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;
using manyworlds::experiments::testing::mutated;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/calculon/";

const Catalog& catalog() {
  static const Catalog catalog;
  return catalog;
}

std::map<std::string, std::string> settings_of(const Job& job) {
  std::map<std::string, std::string> settings;
  for (const JobSetting& one : job.settings) CHECK(settings.emplace(one.key, one.value).second);
  return settings;
}

Job job_of(const std::string& execution, const std::string& model) {
  return read_job(kFolder + execution + ".json", {{}, 0, kFolder + model + ".json"}, catalog());
}

std::string refusal(const std::string& text, const std::string& model = kFolder + "gpt3-175B.json",
                    std::int64_t gpus = 0) {
  const TemporaryFolder folder;
  const std::string path = (folder / "execution.json").string();
  std::ofstream(path) << text;
  try {
    read_job(path, {{}, gpus, model}, catalog());
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string execution(const std::string& more = "") {
  return "{\n \"num_procs\": 16, \"tensor_par\": 8, \"pipeline_par\": 2, \"data_par\": 1,\n \"batch_size\": 32, "
         "\"microbatch_size\": 1" +
         more + "\n}\n";
}

}  // namespace

TEST_CASE("an execution and a model of Calculon are the run of the paper's table") {
  // Korthikanti et al. 2022, table 3 and appendix: 175B on 64 GPUs, three stages of layers on each pipeline rank.
  const std::map<std::string, std::string> settings = settings_of(job_of("gpt3-175B_seqsel", "gpt3-175B"));
  const std::map<std::string, std::string> expected{{"model.hidden", "12288"},
                                                    {"model.ffn_hidden", "49152"},
                                                    {"model.sequence", "2048"},
                                                    {"model.heads", "96"},
                                                    {"model.head_dim", "128"},
                                                    {"model.layers", "96"},
                                                    {"model.vocabulary", "51200"},
                                                    {"model.activation", "gelu"},
                                                    {"model.biases", "true"},
                                                    {"model.dropout", "true"},
                                                    {"model.norm", "layer_norm"},
                                                    {"model.position", "learned"},
                                                    {"model.tied_embeddings", "true"},
                                                    {"strategy.tp", "8"},
                                                    {"strategy.pp", "8"},
                                                    {"strategy.cp", "1"},
                                                    {"strategy.global_batch", "64"},
                                                    {"strategy.micro_batch", "1"},
                                                    {"strategy.schedule", "interleaved"},
                                                    {"strategy.virtual_stages", "3"},
                                                    {"strategy.recompute", "selective"},
                                                    {"strategy.stack.precision", "fp16"},
                                                    {"strategy.zero", "0"},
                                                    {"strategy.overlap_grad_reduce", "false"},
                                                    {"strategy.sequence_parallel", "true"},
                                                    {"strategy.stack.overlap_tensor", "false"}};
  CHECK(settings == expected);
  const Job whole = job_of("megatron-1T_full", "megatron-1T");
  CHECK(whole.gpus == 512);
  CHECK(settings_of(whole).at("strategy.recompute") == "full");
  CHECK(settings_of(whole).at("strategy.sequence_parallel") == "false");
  CHECK(settings_of(whole).at("strategy.schedule") == "1f1b");
}

TEST_CASE("executions and models as Calculon had them before are read, with what it took then") {
  const TemporaryFolder folder;
  const std::string path = (folder / "execution.json").string(), model = (folder / "model.json").string();
  std::ofstream(path)
      << "{\"num_procs\": 16, \"tensor_par\": 8, \"pipeline_par\": 2, \"data_par\": 1, \"batch_size\": "
         "32, \"minibatch_size\": 4, \"tensor_par_comm_type\": \"rs_ag\", \"tensor_par_overlap\": false}";
  std::ofstream(model) << "{\"name\": \"Early\", \"hidden\": 6144, \"seq_size\": 2048, \"attn_heads\": 48, "
                          "\"num_blocks\": 40}";
  const auto settings = settings_of(read_job(path, {{}, 0, model}, catalog()));
  CHECK(settings.at("strategy.micro_batch") == "4");
  CHECK(settings.at("strategy.stack.overlap_tensor") == "false");
  CHECK(settings.at("model.ffn_hidden") == "24576");
  CHECK(settings.at("model.head_dim") == "128");
  std::ofstream(model) << "{\"hidden\": 6144, \"seq_size\": 2048, \"attn_heads\": 48, \"num_blocks\": 40, "
                          "\"attn_size\": 128}";
  CHECK(refusal(execution(), model).find("'feedforward' is missing") != std::string::npos);
  std::ofstream(model) << "{\"hidden\": 6144, \"seq_size\": 2048, \"attn_heads\": null, \"num_blocks\": 40}";
  CHECK(refusal(execution(), model).find("'attn_heads' is missing") != std::string::npos);
  CHECK(refusal(execution(", \"minibatch_size\": 1")).find("give one") != std::string::npos);
}

TEST_CASE("a model of the catalog stands for Calculon's") {
  const Job job = read_job(kFolder + "gpt3-175B_full.json", {{}, 0, "gpt3-175b"}, catalog());
  CHECK(settings_of(job).at("model.layers") == "96");
}

TEST_CASE("what is no execution of Calculon, or is not modelled, is refused where it stands") {
  const auto refused = [](const std::string& more, const std::string& part) {
    const std::string error = refusal(execution(more));
    CAPTURE(more, error);
    CHECK(error.find(part) != std::string::npos);
  };
  CHECK(refusal(execution()) == "(no error)");
  refused(", \"weight_offload\": true", "weight_offload");
  CHECK(refusal(execution(", \"weight_offload\": false, \"optimizer_offload\": false")) == "(no error)");
  refused(", \"training\": false", "inference is not modelled");
  refused(", \"datatype\": \"int4\"", "datatype");
  refused(", \"tensor_par_overlap\": \"ring\"", "overlaps a GEMM with an all-reduce");
  refused(", \"activation_recompute\": \"some\"", "activation_recompute");
  refused(", \"pipline_interleaving\": 2", "did you mean 'pipeline_interleaving'?");
  refused(", \"num_procs\": 32", "num_procs");
  CHECK(refusal("{\"tensor_par\": 1, \"pipeline_par\": 1}").find("'num_procs' is missing") != std::string::npos);
  CHECK(refusal("{\"num_procs\": 1, \"tensor_par\": null, \"pipeline_par\": 1}").find("'tensor_par' is missing") !=
        std::string::npos);
  CHECK(refusal(execution(), "").find("give --model FILE.json") != std::string::npos);
  CHECK(refusal(execution(), kFolder + "none.json").find("none.json") != std::string::npos);
  CHECK(refusal(execution(), kFolder + "gpt3-175B.json", 8).find("num_procs of the file 16") != std::string::npos);
}

TEST_CASE("a damaged execution of Calculon is one message") {
  std::ifstream file(kFolder + "gpt3-175B_seqsel.json");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 500; ++trial) CHECK_NOTHROW(refusal(mutated(text, random)));
}

// Files that people launch training with become the settings of an experiment, or are refused with line and argument.
#include "experiments/frameworks/registry.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "experiments/import/pipeline_layout.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/reader.hpp"
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

std::string value_of(const Job& job, const std::string& key) {
  std::string value = "(not set)";
  for (const JobSetting& one : job.settings)
    if (one.key == key) value = one.value;
  return value;
}

/// A script of one command, with the shortest arguments that a model has and `more`.
std::string script(const std::string& more) {
  return "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
         "--num-attention-heads 16 --seq-length 2048 --bf16 " +
         more + "\n";
}

struct Written {
  explicit Written(const std::string& text, const std::string& name = "train.sh") : path((folder / name).string()) {
    std::ofstream(path) << text;
  }
  TemporaryFolder folder;
  std::string path;
};

Job job_of(const std::string& text, const JobOptions& options = {}, const std::string& name = "train.sh") {
  const Written file(text, name);
  return read_job(file.path, options, Catalog());
}

std::string refusal(const std::string& text, const JobOptions& options = {}, const std::string& name = "train.sh") {
  const Written file(text, name);
  try {
    read_job(file.path, options, Catalog());
  } catch (const core::InputError& error) {
    const std::string what = error.what();
    return what.starts_with(file.path) ? what.substr(file.path.size()) : what;
  }
  return "(no error)";
}

Sweep sweep_of(const Job& job, const std::string& cluster) {
  return parse_sweep(document_of(job, cluster), job.file, {}, Catalog());
}

}  // namespace

TEST_CASE("the published scripts of Megatron-LM have the models, layouts and batches that they are known by") {
  struct Known {
    const char* file;
    std::int64_t gpus;
    std::vector<std::pair<const char*, const char*>> settings;
  };
  const Known all[] = {
      {"train_llama3_8b_h100_fp8.sh",
       0,
       {{"model.layers", "32"},
        {"model.ffn_hidden", "14336"},
        {"model.kv_heads", "8"},
        {"model.vocabulary", "128256"},
        {"model.norm", "rms_norm"},
        {"model.activation", "swiglu"},
        {"model.dropout", "false"},
        {"strategy.tp", "1"},
        {"strategy.zero", "1"},
        {"strategy.global_batch", "128"},
        {"strategy.sequence_parallel", "false"},
        {"strategy.stack.precision", "fp8"},
        {"strategy.stack.reduce_in_16bit", "true"},
        {"strategy.overlap_grad_reduce", "true"}}},
      {"train_gpt3_175b_distributed.sh",
       1024,
       {{"model.layers", "96"},
        {"model.hidden", "12288"},
        {"model.activation", "gelu"},
        {"model.position", "learned"},
        {"strategy.tp", "8"},
        {"strategy.pp", "16"},
        {"strategy.global_batch", "1536"},
        {"strategy.zero", "0"},
        {"strategy.overlap_grad_reduce", "false"},
        {"strategy.stack.precision", "fp16"},
        {"strategy.stack.attention", "cudnn"}}},
      {"run_table_1.sh",
       32,
       {{"model.layers", "24"},
        {"model.hidden", "2304"},
        {"strategy.micro_batch", "16"},
        {"strategy.global_batch", "512"},
        {"strategy.recompute", "full"},
        {"strategy.stack.attention", "unfused"}}},
      {"mixtral_8x22b_tp2pp8ep8vpp1_release_model_config.yaml",
       128,
       {{"model.experts", "8"},
        {"strategy.ep", "8"},
        {"model.experts_per_token", "2"},
        {"strategy.etp", "2"},
        {"strategy.tp", "2"},
        {"strategy.pp", "8"},
        {"strategy.stack.dispatcher", "all_to_all"},
        {"strategy.stack.permute_fusion", "false"}}},
      {"gpt3_15b_8t_release_sm_gb200_model_config.yaml",
       64,
       {{"strategy.virtual_stages", "2"},
        {"strategy.schedule", "interleaved"},
        {"strategy.global_batch", "1152"},
        {"model.tied_embeddings", "false"},
        {"strategy.stack.overlap_tensor", "true"},
        {"strategy.stack.fused_loss", "true"}}},
  };
  for (const Known& known : all) {
    INFO(known.file);
    const Job job = read_job(kFolder + known.file, {{}, known.gpus}, Catalog());
    if (known.gpus == 0) CHECK(job.gpus == 8);
    for (const auto& [key, value] : known.settings) {
      INFO(key);
      CHECK(value_of(job, key) == value);
    }
  }
}

TEST_CASE("each case of run_table_1.sh is the model and the layout of its row among the measured steps") {
  const auto rows = measured::read_training_steps(
      import::parse_csv(measured::compiled_table("training_steps"), "training_steps.csv"), Catalog());
  const std::string text = import::read_text(kFolder + "run_table_1.sh");
  TemporaryFolder folder;
  folder.put("CONFIG.sh", import::read_text(kFolder + "CONFIG.sh"));
  int cases = 0;
  for (const auto& row : rows) {
    if (row.family != "SC21 table 1") continue;
    const std::string size = row.id.substr(row.id.rfind('_') + 1);
    CAPTURE(size);
    std::string one = text;
    one.replace(one.find("MODEL_SIZE=1.7B"), 15, "MODEL_SIZE=" + size);
    folder.put("run.sh", one);
    const Settings& expected = row.experiments.at(0);
    const std::int64_t nodes = std::get<std::int64_t>(expected.at("cluster.nodes"));
    const Job job = read_job((folder / "run.sh").string(), {{}, nodes * 8}, Catalog());
    const std::string cluster = "{like: dgx_a100_superpod, gpus_per_node: 8, nodes: " + std::to_string(nodes) + "}";
    // The paper's vocabulary, which the script does not tell.
    const Sweep sweep = parse_sweep(document_of(job, cluster), job.file, {"model.vocabulary=51200"}, Catalog());
    const Settings& settings = sweep.experiments.at(0).settings;
    for (const auto& [key, value] : expected) {
      if (key == "model.name" || key == "model.carried") continue;  // of which rows say nothing
      if (!key.starts_with("model.") && !key.starts_with("strategy.")) continue;
      INFO(key);
      CHECK(to_json(settings.at(key)) == to_json(value));
    }
    ++cases;
  }
  CHECK(cases == 10);
}

TEST_CASE("tests whose peak of memory is published are predicted from their model_config.yaml alone") {
  struct Peak {
    const char *file, *cluster;
    std::int64_t gpus;
    double bytes;  // mem-max-allocated-bytes of the golden values, on a rank of the last stage
  };
  const Peak all[] = {{"gpt3_15b_8t_release_sm_gb200_model_config.yaml",
                       "{like: gb200_nvl72_racks, nodes: 1, gpus_per_node: 64}", 64, 42'639'351'808.0},
                      {"mixtral_8x22b_tp2pp8ep8vpp1_release_model_config.yaml",
                       "{like: dgx_h100_superpod, nodes: 16, gpus_per_node: 8}", 128, 28'533'706'752.0}};
  for (const Peak& peak : all) {
    INFO(peak.file);
    const Sweep sweep = sweep_of(read_job(kFolder + peak.file, {{}, peak.gpus}, Catalog()), peak.cluster);
    const auto one = sweep.experiments.at(0).config().configuration;
    const auto predicted = core::memory::footprint(one.model, one.strategy, one.gpu, one.strategy.pp - 1).allocated();
    CHECK(static_cast<double>(predicted) == Approx(peak.bytes).epsilon(0.03));
  }
}

TEST_CASE("the software of 2021 is known by its arguments") {
  const Job job = read_job(kFolder + "run_table_1.sh", {{}, 32}, Catalog());
  CHECK(job.stack == "megatron-2021");
  CHECK(read_job(kFolder + "train_llama3_8b_h100_fp8.sh", {}, Catalog()).stack == "megatron-core");
}

TEST_CASE("a softmax is kernel by kernel where Megatron-LM's own layers have it so, and what is not so is told") {
  const char *key = "strategy.stack.masked_softmax_fusion", *none = "(not set)";
  const std::string local = "--no-masked-softmax-fusion --transformer-impl local ";
  const auto told = [](const Job& job) {
    return std::any_of(job.notes.begin(), job.notes.end(),
                       [](const std::string& note) { return note.starts_with("--no-masked-softmax-fusion"); });
  };
  const Job exact = job_of(script(local + "--attention-softmax-in-fp32"));
  CHECK(value_of(exact, key) == "false");
  CHECK_FALSE(told(exact));
  const Job narrow = job_of(script(local));
  CHECK(value_of(narrow, key) == "false");
  CHECK(told(narrow));
  CHECK(value_of(job_of(script(local + "--use-flash-attn")), key) == none);
  CHECK(value_of(job_of(script("--transformer-impl local")), key) == none);
  // Transformer Engine asks NVTE_MASKED_SOFTMAX_FUSION.
  const Job engine = job_of(script("--no-masked-softmax-fusion --attention-backend unfused"));
  CHECK(value_of(engine, key) == none);
  CHECK(told(engine));
  const Job old = job_of(script("--no-masked-softmax-fusion --DDP-impl local"));
  CHECK(value_of(old, key) == "false");
  CHECK_FALSE(told(old));
  const std::string cluster = "{like: dgx_h100_superpod, nodes: 2}";
  CHECK_FALSE(sweep_of(exact, cluster).experiments.at(0).config().configuration.strategy.stack.masked_softmax_fusion);
}

TEST_CASE("a job is an experiment whose messages name the lines of its file") {
  const Job job = job_of("X=4\n" + script("--tensor-model-parallel-size $X \\\n --global-batch-size 30"));
  const std::string cluster = "{like: dgx_h100_superpod, nodes: 2, gpus_per_node: 8}";
  try {
    sweep_of(job, cluster);
    FAIL("30 samples were divided over 4 replicas");
  } catch (const core::InputError& error) {
    CHECK(std::string(error.what()).starts_with(job.file + ":3: 'strategy.global_batch' violates rule"));
  }
  const Job valid = job_of(script("--tensor-model-parallel-size 4 --global-batch-size 32"));
  const Sweep sweep = sweep_of(valid, cluster);
  REQUIRE(sweep.experiments.size() == 1);
  const auto configuration = sweep.experiments[0].config().configuration;
  CHECK(configuration.strategy.dp == 4);
  CHECK(configuration.model.ffn() == 4096);
  CHECK_FALSE(configuration.strategy.overlap_grad_reduce);
}

TEST_CASE("what is not certain, not known or not modelled is refused with its line") {
  CHECK(refusal("\n" + script("--mtp-use-repeated-layer")) ==
        ":2: --mtp-use-repeated-layer: multi-token prediction has layers of its own like the model's last one, all of "
        "them trained");
  CHECK(refusal(script("--mtp-num-layers 0 --optimizer adam")) == "(no error)");
  CHECK(refusal(script("--optimizer muon")) == ":1: --optimizer muon: only Adam with states in 32 bits is modelled");
  CHECK(refusal(script("--tensor-model-paralel-size 8")) ==
        ":1: --tensor-model-paralel-size is no argument of Megatron-LM that is known here; did you mean "
        "'tensor-model-parallel-size'?");
  CHECK(refusal(script("$MORE")) ==
        ":1: '?' among the arguments follows from $MORE, which the script does not set; give it with --env NAME=VALUE");
  CHECK(refusal(script("--micro-batch-size $MBS")) ==
        ":1: --micro-batch-size ? follows from $MBS, which the script does not set; give it with --env NAME=VALUE");
  CHECK(refusal(script("--data-path $WHERE")) == "(no error)");
  CHECK(refusal(script("--micro-batch-size")) == ":1: --micro-batch-size lacks its value");
  CHECK(refusal(script("") + "torchrun other.py --num-layers 3\n") ==
        ":2: two commands train, here and on line 1; leave one");
  CHECK(refusal(script("--pipeline-model-parallel-size 3")) ==
        ":1: 16 GPUs are no multiple of tp 1 x pp 3 x cp 1; give --gpus N");
  CHECK(refusal("echo nothing\n") == ": it runs nothing with Megatron-LM's arguments (--num-layers …)");
  CHECK(refusal(script("--num-experts 8")) ==
        ":1: --num-experts: experts one after the other, without --moe-grouped-gemm, are not modelled");
  CHECK(refusal("zero: 1\n", {}, "config.yaml")
            .starts_with(": no job is known of its kind; read are of Megatron-LM: a log"));
}

TEST_CASE("the number of GPUs is what the launcher starts") {
  const std::string arguments =
      "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --bf16\n";
  CHECK(job_of("torchrun --nproc-per-node=4 --nnodes=3 " + arguments).gpus == 12);
  CHECK(
      job_of("#SBATCH --nodes=4\n#SBATCH --gres=gpu:h100:8\nsrun torchrun --nnodes $SLURM_NNODES " + arguments).gpus ==
      32);
  CHECK(job_of("#SBATCH -N 2 --ntasks-per-node=8 # each a GPU\nsrun python " + arguments).gpus == 16);
  CHECK(job_of("mpirun -np 24 python " + arguments).gpus == 24);
  const Job of_slurm = job_of("torchrun --nproc_per_node 8 \\\n --nnodes $SLURM_NNODES " + arguments);
  CHECK(of_slurm.gpus == 0);
  CHECK_THROWS_WITH(
      fail_without_gpus(of_slurm),
      Catch::EndsWith(
          "train.sh:2: --nnodes follows from $SLURM_NNODES, which is set where the job runs; say how many GPUs "
          "with --gpus N, or what it is with --env SLURM_NNODES=N"));
  CHECK(job_of("torchrun --nproc_per_node 8 --nnodes ${SLURM_NNODES:-4} " + arguments, {{{"SLURM_NNODES", "2"}}, 0})
            .gpus == 16);
  const Job by_default = job_of("torchrun --nproc_per_node 8 --nnodes ${SLURM_NNODES:-4} " + arguments);
  CHECK(by_default.gpus == 32);
  CHECK(by_default.notes.front() == "assumed of the environment (--env NAME=VALUE): SLURM_NNODES=4");
  CHECK_THROWS_WITH(fail_without_gpus(job_of("python " + arguments)),
                    Catch::EndsWith("train.sh: it does not say how many GPUs it runs on; give --gpus N"));
  CHECK(job_of("torchrun --nproc_per_node 8 --nnodes $NODES " + arguments).gpus == 0);
  CHECK(job_of("torchrun --nproc_per_node 8 --nnodes ${NODES:-2} " + arguments, {{{"NODES", "4"}}, 0}).gpus == 32);
  CHECK(job_of("python " + arguments, {{}, 48}).gpus == 48);
}

TEST_CASE("what Slurm sets where a script runs is what its #SBATCH lines say") {
  const std::string model =
      "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --bf16 ";
  const std::string head =
      "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=8\n"
      "NNODES=${SLURM_NNODES:-1}\nGPUS=$((NNODES * SLURM_GPUS_ON_NODE))\n";
  const std::string launch = "srun torchrun --nnodes $NNODES --nproc_per_node $SLURM_GPUS_PER_NODE ";
  const Job job = job_of(head + launch + model + "--global-batch-size $((GPUS * 2))\n");
  CHECK(job.gpus == 32);
  CHECK(value_of(job, "strategy.global_batch") == "64");
  // --env comes before what the lines say, and without either the reason names Slurm's own variable.
  CHECK(value_of(job_of(head + launch + model + "--global-batch-size $((GPUS * 2))\n", {{{"SLURM_NNODES", "2"}}, 0}),
                 "strategy.global_batch") == "32");
  const std::string bare = "NODES=$SLURM_JOB_NUM_NODES\nBATCH=$((NODES * 16))\n";
  CHECK_THROWS_WITH(
      job_of(bare + "torchrun --nproc_per_node 8 --nnodes $NODES " + model + "--global-batch-size $BATCH\n"),
      Catch::Contains("--global-batch-size") && Catch::Contains("follows from $SLURM_JOB_NUM_NODES, which is set where "
                                                                "the job runs; give it with --env"));
}

TEST_CASE("layers are split over stages as Megatron-LM splits them") {
  const auto stages = [](const std::string& more) { return value_of(job_of(script(more)), "strategy.stage_layers"); };
  const std::string pp = "--pipeline-model-parallel-size 4 ";
  CHECK(stages(pp + "--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 1") == "[1, 3, 3, 1]");
  CHECK(stages("--num-layers 15 " + pp + "--account-for-loss-in-pipeline-split") == "[4, 4, 4, 3]");
  CHECK(stages(pp + "--pipeline-model-parallel-layout 'Ettt|(tt|)*2tL'") == "[3, 2, 2, 1]");
  CHECK(stages(pp + "--pipeline-model-parallel-layout 'Et|(t|)*6tL'") == "[1, 1, 1, 1, 1, 1, 1, 1]");
  const Job chunks = job_of(script(pp + "--num-layers-per-virtual-pipeline-stage 1"));
  CHECK(value_of(chunks, "strategy.virtual_stages") == "2");
  CHECK(value_of(chunks, "strategy.schedule") == "interleaved");
  CHECK_FALSE(import::expanded_layout("Et*99999999999|").has_value());
  CHECK(import::layers_of_stages("Ettt|tt|mL") == std::vector<std::int64_t>{3, 2, 0});
  CHECK_FALSE(import::expanded_layout(std::string(100, '(')).has_value());
}

TEST_CASE("layers for multi-token prediction are read with the layout that has them before the loss") {
  const std::string rope = "--position-embedding-type rope --pipeline-model-parallel-size 4 ";
  const auto read = [&](const std::string& more) { return job_of(script(rope + more)); };
  CHECK(value_of(read("--mtp-num-layers 2"), "model.mtp_layers") == "2");
  const Job laid_out = read("--mtp-num-layers 1 --pipeline-model-parallel-layout 'Ettt|(tt|)*2tmL'");
  CHECK(value_of(laid_out, "model.mtp_layers") == "1");
  CHECK(value_of(laid_out, "strategy.stage_layers") == "[3, 2, 2, 1]");
  const std::string why =
      ": layers for multi-token prediction are modelled in the stage of L, before it, as many as --mtp-num-layers, ";
  CHECK(refusal(script(rope + "--mtp-num-layers 1 --pipeline-model-parallel-layout 'Etttt|tttt|m|L'")) ==
        ":1: --pipeline-model-parallel-layout Etttt|tttt|m|L" + why + "1");
  CHECK(refusal(script(rope + "--pipeline-model-parallel-layout 'Ettt|(tt|)*2tmL'")) ==
        ":1: --pipeline-model-parallel-layout Ettt|(tt|)*2tmL" + why + "0");
}

TEST_CASE("limits of a router to groups of experts are read as Megatron-LM's configuration takes them") {
  const std::string experts =
      "--num-experts 16 --moe-grouped-gemm --expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall ";
  const auto groups = [&](const std::string& more) {
    const Job job = job_of(script(experts + more));
    return std::pair(value_of(job, "model.expert_groups"), value_of(job, "model.groups_per_token"));
  };
  const std::pair<std::string, std::string> none("(not set)", "(not set)");
  CHECK(groups("") == none);
  CHECK(groups("--moe-router-num-groups 8 --moe-router-group-topk 4") == std::pair<std::string, std::string>("8", "4"));
  CHECK(groups("--moe-router-num-groups 8") == none);  // without the other, no group is left out
  // TransformerConfig.__post_init__(): the old argument limits the ranks that share experts.
  CHECK(groups("--moe-router-topk-limited-devices 2") == std::pair<std::string, std::string>("4", "2"));
  CHECK(refusal(script(experts + "--moe-router-group-topk 4")) ==
        ":1: --moe-router-group-topk needs --moe-router-num-groups");
  CHECK(value_of(job_of(script("--moe-router-num-groups 8 --moe-router-group-topk 4")), "model.expert_groups") ==
        "(not set)");  // of a dense model
}

TEST_CASE("a dump of arguments in a log is read as the arguments that it comes from") {
  const std::string arguments =
      "--tensor-model-parallel-size 4 --sequence-parallel --swiglu --disable-bias-linear "
      "--no-rope-fusion --use-distributed-optimizer --global-batch-size 32 --fp8-format hybrid "
      "--hidden-dropout 0 --attention-dropout 0";
  const std::string log =
      "starting\n------------------------ arguments ------------------------\n"
      "0:   add_bias_linear ................................. False\n"
      "  apply_rope_fusion ............................... False\n"
      "  attention_backend ............................... AttnBackend.auto\n"
      "  attention_dropout ............................... 0.0\n"
      "  bf16 ............................................ True\n"
      "  fp8 ............................................. hybrid\n"
      "  global_batch_size ............................... 32\n"
      "  hidden_dropout .................................. 0.0\n"
      "  hidden_size ..................................... 1024\n"
      "  mtp_num_layers .................................. None\n"
      "  num_attention_heads ............................. 16\n"
      "  num_layers ...................................... 8\n"
      "  rank ............................................ 0\n"
      "  seq_length ...................................... 2048\n"
      "  sequence_parallel ............................... True\n"
      "  some_thing_new .................................. None\n"
      "  swiglu .......................................... True\n"
      "  tensor_model_parallel_size ...................... 4\n"
      "  use_distributed_optimizer ....................... True\n"
      "  world_size ...................................... 16\n"
      "-------------------- end of arguments ---------------------\n";
  const Job from_log = job_of(log, {}, "train.log"), from_script = job_of(script(arguments));
  CHECK(from_log.gpus == 16);
  REQUIRE(from_log.settings.size() == from_script.settings.size());
  for (std::size_t i = 0; i < from_log.settings.size(); ++i) {
    CHECK(from_log.settings[i].key == from_script.settings[i].key);
    CHECK(from_log.settings[i].value == from_script.settings[i].value);
  }
  std::string changed = log;
  changed.replace(changed.find("some_thing_new .................................. None"), 54,
                  "some_thing_new .................................. 3.5 ");
  CHECK(refusal(changed, {}, "train.log") ==
        ":18: some-thing-new 3.5 is no argument of Megatron-LM that is known here");
}

TEST_CASE("every argument that Megatron-LM defines is known, and each mapped one names keys that there are") {
  std::istringstream names(import::read_text(kFolder + "megatron_arguments.txt"));
  std::size_t count = 0;
  for (std::string name; std::getline(names, name); ++count) {
    INFO(name);
    CHECK(find_argument(name) != nullptr);
  }
  CHECK(count > 800);
  std::map<std::string, int> times;
  for (const KnownName& one : megatron_arguments().all()) {
    INFO(one.name);
    CHECK(++times[one.name] == 1);
    if (one.fate != Fate::mapped) continue;
    std::istringstream keys(one.means);
    for (std::string key; std::getline(keys >> std::ws, key, ',');) CHECK_FALSE(find_key(key, {}).path.empty());
  }
}

TEST_CASE("a damaged job is read or refused") {
  std::mt19937_64 random(2025);
  const Catalog catalog;
  for (const char* name : {"train_llama3_8b_h100_fp8.sh", "run_table_1.sh", "sbatch_mfsdp_deepseek_v3.sh",
                           "gpt3_15b_8t_release_sm_gb200_model_config.yaml"}) {
    const std::string text = import::read_text(kFolder + name);
    for (int i = 0; i < 150; ++i) {
      const Written file(testing::mutated(text, random), name);
      try {
        document_of(read_job(file.path, {{}, 64}, catalog), "{like: dgx_h100_superpod}");
      } catch (const core::InputError&) {
      }
    }
  }
}

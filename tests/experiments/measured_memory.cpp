// Peaks of memory that Megatron-LM's functional tests keep: how tables of them are read, and how far off we are.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "experiments/measured/memory.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/tree/yaml.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::measured;

namespace {

const std::string kColumns =
    "test_case,track,device,mem_max_allocated_bytes,tensor-model-parallel-size,micro-batch-size,global-batch-size,"
    "seq-length,num-layers,hidden-size,num-attention-heads,";

std::vector<MemoryRow> read(const std::string& text) {
  return read_memory(import::parse_csv(text, "table.csv"), Catalog());
}

/// Why a row is left out, with the detail.
std::string reason(const MemoryRow& row) {
  return row.unsupported + (row.detail.empty() ? "" : " (" + row.detail + ")");
}

struct Group {
  std::int64_t rows = 0;
  double error = 0;
  double mean() const { return error / static_cast<double>(rows); }
};

}  // namespace

TEST_CASE("instances of the optimizer keep its states once each, by a column or by the name of Megatron-LM's test") {
  const std::string row = ",dev,a100,4000000000,2,4,32,1024,12,512,8,True,";
  const auto rows = read(kColumns + "use-distributed-optimizer,num-distributed-optimizer-instances\n" + "gpt/one" +
                         row + "\n" + "gpt/two" + row + "2\n" + "gpt/four" + row + "4\n" + "gpt/three" + row + "3\n" +
                         "moe/a_multi_dist_optimizer_instances" + row + "\n");
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].strategy.zero == 1);
  CHECK(rows[0].strategy.shards() == 4);  // 8 GPUs, tp 2
  CHECK(rows[1].strategy.shards() == 2);
  CHECK(rows[2].strategy.zero == 0);  // one replica each: nothing is left to share
  CHECK(reason(rows[3]).find("4 replicas are no multiple of 3 instances") != std::string::npos);
  CHECK(rows[4].strategy.shards() == 2);
}

TEST_CASE("a row of Megatron-LM's arguments is a model and a layout with that program's defaults") {
  const auto rows = read(kColumns +
                         "use-distributed-optimizer,sequence-parallel,swiglu,fp16,transformer-impl,deterministic-mode\n"
                         "gpt/one,dev,a100,4000000000,2,4,32,1024,12,512,8,True,True,,,transformer_engine,true\n"
                         "gpt/two_1node,dev,gb200_2nd,5000000000,1,4,32,1024,12,512,8,,True,True,True,local,\n");
  REQUIRE(rows.size() == 2);
  const MemoryRow& one = rows[0];
  CHECK(one.id == "gpt/one dev a100");
  CHECK(one.kind == "dense");
  CHECK(one.unsupported == "");
  CHECK(one.measured_bytes == 4'000'000'000);
  CHECK(one.gpu == "a100_80");
  CHECK(one.gpus == 8);
  CHECK(one.model.vocabulary == 50'432);  // of GPT-2's tokenizer, padded to 128 x tp
  CHECK(one.model.tied_embeddings);
  CHECK(one.model.dropout);
  CHECK(one.strategy.dp == 4);
  CHECK(one.strategy.zero == 1);
  CHECK(one.strategy.sequence_parallel);
  CHECK(one.strategy.stack.attention == core::workload::AttentionKernel::cudnn);
  CHECK(one.strategy.stack.layers == core::workload::LayerLibrary::transformer_engine);
  CHECK(one.strategy.stack.deterministic);
  CHECK(one.assumed == std::vector<std::string>{"gpus", "vocab-size"});

  const MemoryRow& two = rows[1];
  CHECK(two.gpu == "gb200_nvl72");
  CHECK(two.gpus == 4);
  CHECK(two.strategy.zero == 0);
  CHECK_FALSE(two.strategy.sequence_parallel);  // there is nothing to cut it over
  CHECK(two.strategy.stack.attention == core::workload::AttentionKernel::unfused);
  CHECK(two.strategy.stack.precision == core::workload::Precision::fp16);
}

TEST_CASE("a layout runs on as many GPUs as one replica of dense layers and of experts has at least") {
  const std::string row = "bert/bert_one,dev,h100,500000000,8,4,32,512,24,1024,16,",
                    columns = "pipeline-model-parallel-size";
  CHECK(read(kColumns + columns + "\n" + row + "8\n").at(0).gpus == 64);
  const MemoryRow experts =
      read(kColumns + columns +
           ",num-experts,expert-model-parallel-size,expert-tensor-parallel-size,sequence-parallel\n"
           "moe/one,dev,h100,5000000000,2,1,512,4096,12,512,8,4,16,16,1,True\n")
          .at(0);
  CHECK(experts.unsupported == "");
  CHECK(experts.gpus == 4 * 16);  // a stage has 16 ranks, eight groups of two or one of sixteen
  CHECK(experts.assumed == std::vector<std::string>{"gpus", "vocab-size"});
}

TEST_CASE("weight gradients are accumulated by the GEMM unless an argument says otherwise") {
  const auto rows = read(kColumns +
                         "no-gradient-accumulation-fusion\n"
                         "gpt/one,dev,h100,5000,1,1,8,1024,12,512,8,\n"
                         "gpt/two,dev,h100,5000,1,1,8,1024,12,512,8,true\n");
  CHECK(rows.at(0).strategy.stack.gradient_accumulation_fusion);
  CHECK_FALSE(rows.at(1).strategy.stack.gradient_accumulation_fusion);
}

TEST_CASE("what our model of memory lacks, and layouts that cannot be, are left out with a reason") {
  const auto why = [](const std::string& columns, const std::string& values) {
    return read(kColumns + columns + "\nt,dev,h100,5000,1,1,8,1024,12,512,8," + values + "\n").at(0).unsupported;
  };
  CHECK(why("mtp-num-layers,position-embedding-type", "1,rope") == "");
  const std::string mtp = "mtp-num-layers,position-embedding-type,pipeline-model-parallel-layout";
  CHECK(why(mtp, "1,rope,Et*12mL") == "");
  for (const char* apart : {"1,rope,Et*12m|L", "1,rope,Et*12L", "0,rope,Et*12mL"})
    CHECK(why(mtp, apart) == "multi-token prediction before the stage of the loss");
  CHECK(why("optimizer", "muon") == "optimizer muon");
  CHECK(why("optimizer", "adam") == "");
  CHECK_THAT(why("recompute-granularity,recompute-modules", "selective,[moe_act]"), Catch::Contains("moe_act"));
  CHECK(why("recompute-granularity,recompute-modules", "selective,[layernorm mlp]") == "");
  CHECK_THAT(why("cross-entropy-loss-fusion,cross-entropy-fusion-impl", "true,te"), Catch::Contains("take the place"));
  CHECK(why("cross-entropy-loss-fusion,cross-entropy-fusion-impl", "true,native") == "");
  CHECK(why("cross-entropy-loss-fusion,cross-entropy-fusion-impl", ",te") == "");
  CHECK(why("recompute-granularity,recompute-modules", "selective,[router]") == "recompute-modules router");
  CHECK(why("fine-grained-activation-offloading,offload-modules", "True,[attn_norm]") == "");
  CHECK(why("fine-grained-activation-offloading,offload-modules", "True,[bias]") == "offload-modules bias");
  CHECK(why("pipeline-model-parallel-layout", "Et*12L") == "");
  for (const char* bad : {"Et*12L)", "E(t*12L", "Et*L", "Ex", "Et*99999999999999999999L", "(((t*4000)*4000)*4000)"})
    CHECK(why("pipeline-model-parallel-layout", bad) == "stages laid out by hand");
  CHECK_THAT(why("pipeline-model-parallel-layout", "Et*8L"), Catch::Contains("stage_layers"));
  CHECK(why("hidden-dropout", "0.0") == "dropout in attention or in hidden states alone");
  CHECK(why("hidden-dropout,attention-dropout", "0.0,0.0") == "");
  CHECK_THAT(why("pipeline-model-parallel-size", "5"), Catch::Contains("multiple of tp x pp"));
  CHECK_THAT(why("num-query-groups", "3"), Catch::Contains("heads"));
  CHECK_THAT(why("tokenizer-type", "Own"), Catch::Contains("vocabulary"));
}

TEST_CASE("a row of memory that cannot be read is left out with its reason, and the next one is read") {
  const std::string row = "t,dev,h100,5000,1,1,8,1024,12,512,8", columns = kColumns.substr(0, kColumns.size() - 1);
  const auto why = [&](const std::string& bent, const std::string& column = "", const std::string& field = "") {
    const std::string more = column.empty() ? "" : ",";
    const auto rows = read(columns + more + column + "\n" + bent + more + field + "\n" + row + more + "\n");
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].unsupported == "");
    return reason(rows[0]);
  };
  CHECK(why(row) == "");
  CHECK(why("t,dev,tpu,5000,1,1,8,1024,12,512,8") == "its GPU is not in the catalog (tpu)");
  CHECK(why("t,dev,h100,5000,1,1,8,1024,,512,8") == "num-layers is not given");
  CHECK(why("t,dev,h100,5000,1,1,8,1024,0,512,8") ==
        "a field cannot be read (table.csv:2: num-layers must be 1 to 1048576)");
  CHECK_THAT(why("t,dev,h100,5000,1,1,8,1024,twelve,512,8"), Catch::Contains("table.csv:2"));
  CHECK_THAT(why("t,dev,h100,,1,1,8,1024,12,512,8"), Catch::Contains("mem_max_allocated_bytes"));
  CHECK_THAT(why(row, "swiglu", "perhaps"), Catch::Contains("swiglu must be true, false or empty, not 'perhaps'"));
  CHECK(why(row, "exp-avg-dtype", "bf16") == "exp-avg-dtype bf16");
}

TEST_CASE("other architectures are left out by name, with the word or the column that tells") {
  const auto why = [](const std::string& test, const std::string& column = "note", const std::string& field = "") {
    const MemoryRow row =
        read(kColumns + column + "\n" + test + ",dev,h100,5000,1,1,8,1024,12,512,8," + field + "\n").at(0);
    CHECK((row.unsupported.empty() || row.kind == "other"));
    return reason(row);
  };
  CHECK(why("t5/ul2_release") == "another architecture: T5: an encoder and a decoder (test_case: t5)");
  CHECK(why("bert/mcore_tp1") == "another architecture: BERT: an encoder (test_case: bert)");
  CHECK(why("gpt/hybrid_mr_tp2") == "another architecture: hybrid: Mamba and attention (test_case: hybrid)");
  CHECK_THAT(why("nemotron/nemotron3_super"), Catch::Contains("Mamba"));
  CHECK_THAT(why("mimo/mimo_vlm_pretrain"), Catch::Contains("multimodal"));
  CHECK_THAT(why("gpt/Multimodal-LLaVA_tp1"), Catch::Contains("multimodal"));
  CHECK_THAT(why("gpt/one", "hybrid-override-pattern", "M-M*"), Catch::Contains("(hybrid-override-pattern: M-M*)"));
  CHECK_THAT(why("gpt/one", "encoder-num-layers", "12"), Catch::Contains("T5"));
  // Parts of longer words tell nothing, nor do arguments that are switched off.
  CHECK(why("gpt/gpt3_bertha_vp1_dist5") == "");
  CHECK(why("gpt/one", "is-hybrid-model", "False") == "");
  CHECK(why("nemotron/nemotron4_15b") == "");
}

TEST_CASE("tests of other models: each is predicted within 5 %, or named") {
  const Catalog catalog;
  std::map<std::string, std::int64_t> left_out, predicted;
  Group mixtral, described;
  for (const MemoryRow& row :
       read_memory(import::parse_csv(compiled_table("memory_other"), "memory_other.csv"), catalog)) {
    CAPTURE(row.id, row.test_case, reason(row));
    const std::string folder = row.test_case.substr(0, row.test_case.find('/'));
    if (!row.unsupported.empty()) {
      ++left_out[folder];
      continue;
    }
    ++predicted[folder];
    const double error =
        std::abs(static_cast<double>(predicted_bytes(row)) / static_cast<double>(row.measured_bytes) - 1);
    Group& group = folder == "mixtral" ? mixtral : described;
    ++group.rows;
    group.error += error;
    // That of 054 grew by 430 MiB in the 56,405th step, and fell again; those of 014 and 016 are there in the first
    // step, before Adam has moments: they are not what a step takes (docs/facts/memory.md, sections 3 and 4).
    const bool peak_is_of_a_step =
        !std::set<std::string>{"memory_other_014", "memory_other_016", "memory_other_054"}.count(row.id);
    if (folder != "mixtral" && peak_is_of_a_step) CHECK(error <= 0.05);
  }
  CHECK(predicted == std::map<std::string, std::int64_t>{
                         {"bert", 16}, {"hybrid", 2}, {"mixtral", 3}, {"multimodal-llava", 3}, {"t5", 23}});
  CHECK(left_out ==
        std::map<std::string, std::int64_t>{{"hybrid", 2},   // with elastic widths; and a row of another model
                                            {"mimo", 1},     // its peak is that of a conversion before the first step
                                            {"mixtral", 2},  // DeepSeek-V3 with Transformer Engine's loss
                                            {"nemotron", 3}});
  CHECK(described.mean() <= 0.03);
  CHECK(mixtral.mean() <= 0.05);
}

TEST_CASE("mutated tables of memory are read or refused") {
  const std::string whole = compiled_table("memory");
  std::string text;  // the header and every 30th row
  std::istringstream lines(whole);
  std::string line;
  for (int number = 0; std::getline(lines, line); ++number)
    if (number % 30 == 0) text += line + "\n";
  const Catalog catalog;
  std::mt19937_64 random(5);
  std::size_t refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string bent = testing::mutated(text, random);
    CAPTURE(bent);
    try {
      for (const MemoryRow& row : read_memory(import::parse_csv(bent, "table.csv"), catalog))
        if (row.unsupported.empty()) REQUIRE(predicted_bytes(row) > 0);
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("table.csv", 0) == 0);
    }
  }
  CHECK(refused > 20);  // bent headers, quotes and numbers of fields
  CHECK(refused < 300);
}

TEST_CASE(
    "published peaks of memory are met: dense to 1 % from 20 GB on and to 6 % below, experts to 5 %, FSDP to 10 %") {
  const Catalog catalog;
  std::map<std::string, Group> groups, with_contradicted;
  std::int64_t apart = 0;
  for (const MemoryRow& row : read_memory(import::parse_csv(compiled_table("memory"), "memory.csv"), catalog)) {
    if (!row.exclusion_reason.empty() && !row.contradicted) {
      ++apart;
      continue;
    }
    if (!row.unsupported.empty()) continue;
    const std::string name = row.kind != "dense" ? row.kind : row.measured_bytes >= 20'000'000'000 ? "large" : "small";
    const double error =
        std::abs(static_cast<double>(predicted_bytes(row)) / static_cast<double>(row.measured_bytes) - 1);
    for (auto* table : {&groups, &with_contradicted}) {
      if (row.contradicted && table == &groups) continue;
      ++(*table)[name].rows;
      (*table)[name].error += error;
    }
  }
  CHECK(groups["large"].rows == 12);
  CHECK(groups["large"].mean() <= 0.01);
  CHECK(groups["small"].rows >= 370);
  CHECK(groups["small"].mean() <= 0.06);
  CHECK(groups["moe"].rows >= 70);
  CHECK(groups["moe"].mean() <= 0.05);
  CHECK(groups["fsdp"].rows >= 8);
  CHECK(groups["fsdp"].mean() <= 0.10);
  // Nor does it rest on leaving out the tests whose own runs disagree, but for FSDP, where they are a third.
  CHECK(with_contradicted["small"].mean() <= 0.06);
  CHECK(with_contradicted["moe"].mean() <= 0.10);
  CHECK(apart == 3);
}

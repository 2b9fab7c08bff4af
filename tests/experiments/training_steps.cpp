// Tables of measured training steps: what a row says becomes the experiment that it was, what it does not say is
// assumed and counted, and what cannot be simulated has a reason.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <set>

#include "experiments/measured/tables.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/text/csv.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using measured::TrainingStep;

namespace {

const std::string kColumns =
    "id,source,year,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq_len,gpu,num_gpus,gpus_per_node,"
    "inter_bw_GBps_per_gpu,tp,pp,dp,ep,vpp_interleave,sequence_parallel,micro_batch,global_batch,recompute,schedule,"
    "zero_stage,dtype,measured_step_s,notes\n";
/// Table 5 of Korthikanti et al. 2022, as a source prints it.
const std::string kKorthikanti =
    "kor,Korthikanti et al. 2022 Table 5,2022,GPT "
    "175B,96,12288,96,96,49152,51200,2048,A100-80GB,64,8,25,8,8,1,1,3,1,1,64,"
    "selective,interleaved 1F1B,0,fp16,13.75,\n";

std::vector<TrainingStep> read(const std::string& text) {
  return measured::read_training_steps(import::parse_csv(text, "t.csv"), Catalog());
}

TrainingStep read_one(std::string row, const std::string& from = "", const std::string& to = "") {
  if (!from.empty()) {
    const auto at = row.find(from);
    REQUIRE(at != std::string::npos);
    row.replace(at, from.size(), to);
  }
  return read(kColumns + row).at(0);
}

std::string shown(const TrainingStep& step, const std::string& key) {
  REQUIRE(step.experiments.size() == 1);
  return to_json(step.experiments[0].at(key)).dump();
}

bool assumes(const TrainingStep& step, const std::string& column) {
  return std::count(step.assumed.begin(), step.assumed.end(), column) > 0;
}

}  // namespace

TEST_CASE("a measured row in its source's words becomes the experiment that it was") {
  const TrainingStep step = read_one(kKorthikanti);
  CHECK(step.unsupported + step.detail == "");
  CHECK(step.family == "Korthikanti table 5");
  CHECK(step.measured_s == 13.75);
  CHECK(step.gpu == "a100_80");
  CHECK(step.assumed.empty());
  const std::pair<const char*, const char*> expected[] = {{"model.layers", "96"},
                                                          {"model.hidden", "12288"},
                                                          {"model.vocabulary", "51200"},
                                                          {"model.activation", "\"gelu\""},
                                                          {"cluster.nodes", "8"},
                                                          {"cluster.nic_gbps", "200.0"},
                                                          {"strategy.tp", "8"},
                                                          {"strategy.pp", "8"},
                                                          {"strategy.virtual_stages", "3"},
                                                          {"strategy.zero", "0"},
                                                          {"strategy.global_batch", "64"},
                                                          {"strategy.schedule", "\"interleaved\""},
                                                          {"strategy.recompute", "\"selective\""},
                                                          {"strategy.sequence_parallel", "true"},
                                                          {"strategy.overlap_grad_reduce", "false"},
                                                          {"topology", "\"rail_optimized\""}};
  for (const auto& [key, value] : expected) {
    CAPTURE(key);
    CHECK(shown(step, key) == value);
  }
}

TEST_CASE("a row's gradients have the buckets of its software") {
  CHECK(shown(read_one(kKorthikanti), "strategy.bucket_parameters") == "40000000");
  const std::string columns = std::string(kColumns).replace(kColumns.find("notes"), 5, "stack");
  const TrainingStep step = read(columns + std::string(kKorthikanti).insert(kKorthikanti.size() - 1, "nanotron")).at(0);
  CHECK(step.unsupported + step.detail == "");
  CHECK(shown(step, "strategy.bucket_parameters") == "13107200");  // 25 MiB of 16 bits
}

TEST_CASE("a layout that its software refuses is predicted not to run, where the row says that it did not") {
  const auto row = [](const char* pp, const char* ran) {
    return read(fmt::format("id,source,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,gpu,num_gpus,tp,pp,"
                            "micro_batch,global_batch,recompute,dtype,ran,measured_step_s\n"
                            "x,nanotron ultrascale-playbook,Llama 1B,16,2048,32,8192,131072,4096,H100,32,1,{},1,256,"
                            "none,bf16,{},\n",
                            pp, ran))
        .at(0);
  };
  const TrainingStep refused = row("16", "false");  // the head is in the 13th of 16 stages
  CHECK(refused.unsupported == "it did not run, so that it has no step time");
  CHECK_THAT(refused.detail, Catch::Contains("predicted to be refused: split by_cost"));
  CHECK_FALSE(refused.fits_memory);
  CHECK(refused.ran == false);
  CHECK(row("8", "false").detail == "predicted to fit into memory");
}

TEST_CASE("what a row does not say is assumed by documented rules and counted") {
  const TrainingStep nic = read_one(kKorthikanti, ",8,25,8,8,", ",8,,8,8,");
  CHECK(shown(nic, "cluster.nic_gbps") == "200.0");  // of dgx_a100_superpod, the cluster of that source
  CHECK(assumes(nic, "inter_bw_GBps_per_gpu"));

  // A source that nobody named: software by its year, an even NIC for each GPU by the catalog's cluster.
  const TrainingStep unseen = read_one(
      "x,Somebody 2025 Table 1,2025,Llama "
      "7B,32,4096,32,32,11008,32000,2048,H100,16,8,,2,1,8,1,,,1,64,none,,,BF16,1,\n");
  CHECK(unseen.unsupported + unseen.detail == "");
  CHECK(unseen.family == "Somebody 2025 Table 1");
  CHECK(shown(unseen, "cluster.nic_gbps") == "400.0");
  CHECK(shown(unseen, "model.activation") == "\"swiglu\"");
  CHECK(shown(unseen, "strategy.sequence_parallel") == "true");
  CHECK(shown(unseen, "strategy.zero") == "1");
  for (const char* column : {"inter_bw_GBps_per_gpu", "sequence_parallel", "zero_stage", "stack"}) {
    CAPTURE(column);
    CHECK(assumes(unseen, column));
  }
}

TEST_CASE("experts of a recipe whose table prints no EP are spread over all replicas, and that is counted") {
  const std::string row =
      "am,NVIDIA-NeMo/Automodel docs/performance-summary.mdx,2025,GPT-OSS 20B,,,,,,,4096,H100,8,8,,1,1,8,,,,2,256,,,3,"
      "bf16,10.04,kernels TE + DeepEP + FlexAttn\n";
  const TrainingStep step = read_one(row);
  CHECK(step.unsupported + step.detail == "");
  CHECK(shown(step, "strategy.ep") == "8");
  CHECK(shown(step, "strategy.recompute") == "\"none\"");
  CHECK(assumes(step, "ep"));
  const TrainingStep printed = read_one(row, "1,1,8,,", "1,1,8,4,");
  CHECK(shown(printed, "strategy.ep") == "4");
  CHECK_FALSE(assumes(printed, "ep"));
}

TEST_CASE("a recompute that is not printed is the first that fits") {
  // 18 bytes a parameter on 80 GB: 22B over eight GPUs keep 49.5 GB, and whole activations of micro-batch 4 are 59 GB
  // more (Korthikanti et al. 2022, figure 1); with micro-batch 1 they are 15 GB, and all fits.
  const std::string row =
      "k,Korthikanti,2022,GPT 22B,48,6144,64,64,24576,51200,2048,A100-80GB,8,8,25,8,1,1,1,1,0,4,4,,no "
      "PP,0,fp16,1.42,\n";
  const TrainingStep large = read_one(row), small = read_one(row, ",0,4,4,,", ",0,1,4,,");
  CHECK(assumes(large, "recompute"));
  CHECK(shown(large, "strategy.recompute") != "\"none\"");
  CHECK(shown(small, "strategy.recompute") == "\"none\"");
  CHECK(large.fits_memory);
}

TEST_CASE("what cannot be simulated is left out with its reason and never ends the reading") {
  const auto reason = [](const std::string& from, const std::string& to) {
    const TrainingStep step = read_one(kKorthikanti, from, to);
    CHECK(step.experiments.empty());
    return step.unsupported;
  };
  CHECK(reason(",1,1,64,", ",1,,64,") == "micro_batch is not printed");
  CHECK(reason("13.75", "") == "no step time is printed");
  CHECK(reason("13.75", "-1") == "measured_step_s is not above 0");
  CHECK(reason("A100-80GB", "TPU v9") == "its GPU is not in the catalog");
  CHECK(reason("GPT 175B,96", "GPT 175B LoRA,96") == "the rank of its low-rank adapters is not given");
  CHECK(reason("GPT 175B,96", "GPT 175B,") == "the shape of its model is not given");
  CHECK(reason(",8,8,1,1,3,", ",8,8,2,1,3,") == "tp x pp x cp x dp is not num_gpus");
  CHECK(reason("96,96,49152", "90,90,49152") == "without head_dim, hidden must be a multiple of heads");
  CHECK(reason(",64,8,25,", ",8x,8,25,") == "a field cannot be read");
  std::string columns = kColumns, row = kKorthikanti;
  columns.pop_back(), row.pop_back();
  CHECK(read(columns + ",stack\n" + row + ",MXNet\n").at(0).unsupported == "its stack is not in the catalog");
}

TEST_CASE("peaks of memory of every rank stand beside a step, one number for each") {
  const auto read_peaks = [](const std::string& allocated) {
    std::string columns = kColumns, row = "two" + kKorthikanti.substr(3);
    columns.pop_back(), row.pop_back();
    const std::string from = "A100-80GB,64,8,25,8,8,1,1,3,1,1,64,", to = "A100-80GB,2,2,25,2,1,1,1,1,1,1,64,";
    row.replace(row.find(from), from.size(), to);
    row.replace(row.find("interleaved 1F1B"), 16, "1F1B");
    return read(columns + ",rank_allocated_mib,rank_reserved_mib\n" + row + "," + allocated + ",\n").at(0);
  };
  const TrainingStep step = read_peaks("68149.2+64478.5");
  CHECK(step.unsupported + step.detail == "");
  CHECK(step.rank_memory.allocated_mib == std::vector<double>{68149.2, 64478.5});
  CHECK(step.rank_memory.reserved_mib.empty());
  CHECK(read_peaks("").rank_memory.empty());
  CHECK(read_peaks("1+2+3").unsupported == "rank_allocated_mib must have one number for each rank");
  CHECK(read_peaks("1+").detail == "1 numbers, 2 ranks");
  CHECK(read_peaks("1+-2").detail == "'-2'");
}

TEST_CASE("a rack of GB200 is one node") {
  const TrainingStep step = read_one(
      "g,NVIDIA Megatron-Bridge,2026,LLAMA3_70B,80,8192,64,8,28672,128256,8192,GB200,256,4,,2,4,32,1,5,,1,256,none,"
      "interleaved 1F1B,,BF16,1,\n");
  CHECK(step.unsupported + step.detail == "");
  CHECK(shown(step, "cluster.gpus_per_node") == "64");  // the most of 72 that divide 256
  CHECK(shown(step, "cluster.nodes") == "4");
}

TEST_CASE("one layer is the difference between two layers and one") {
  const TrainingStep step = read_one(
      "l,Korthikanti et al. 2022 Table 4 (ONE transformer layer),2022,GPT 22B single layer,1,6144,64,64,24576,,2048,"
      "A100-80GB,8,8,,8,1,1,1,,0,4,4,none,,,fp16,0.0196,\n");
  REQUIRE(step.one_layer());
  CHECK(std::get<std::int64_t>(step.experiments[0].at("model.layers")) == 2);
  CHECK(std::get<std::int64_t>(step.experiments[1].at("model.layers")) == 1);
}

TEST_CASE("the table that comes with the program says the same in its own words and in those of its sources") {
  const import::CsvTable table = import::parse_csv(measured::compiled_table("training_steps"), "training_steps.csv");
  CHECK(table.rows.size() == 1395);
  CHECK(measured::is_training_steps_table(*table.header));
  // The originals again: cells as `original` has them, and none of the columns that were added.
  const std::set<std::string> added{"family", "stack",    "cluster",          "catalog_model", "nic_assumed",
                                    "weight", "included", "exclusion_reason", "original"};
  auto header = std::make_shared<import::CsvHeader>();
  header->file = "original.csv";
  for (const std::string& name : table.header->names)
    if (!added.count(name)) header->column_index.emplace(name, header->names.size()), header->names.push_back(name);
  import::CsvTable original{header, {}};
  std::size_t changed = 0;
  for (const import::CsvRow& row : table.rows) {
    std::vector<std::string> fields;
    const std::string before = " | " + std::string(row.text("original"));
    for (const std::string& name : header->names) {
      const std::string mark = " | " + name + "=";
      const auto at = before.find(mark);
      if (at == std::string::npos) {
        fields.emplace_back(row.text(name));
        continue;
      }
      const auto begin = at + mark.size();
      fields.push_back(before.substr(begin, before.find(" | ", begin) - begin));
      ++changed;
    }
    original.rows.emplace_back(header, std::move(fields), row.line());
  }
  CHECK(changed > 1395);  // every row has at least its GPU in other words
  const Catalog catalog;
  const auto ours = measured::read_training_steps(table, catalog),
             theirs = measured::read_training_steps(original, catalog);
  REQUIRE(ours.size() == theirs.size());
  std::set<std::string> ids;
  std::size_t run = 0;
  double cells = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(ours[i].id);
    CHECK(ids.insert(ours[i].id).second);
    CHECK(ours[i].family == theirs[i].family);
    CHECK(ours[i].unsupported == theirs[i].unsupported);
    CHECK(ours[i].experiments == theirs[i].experiments);
    CHECK(ours[i].experiments.empty() == !ours[i].unsupported.empty());
    run += ours[i].experiments.empty() ? 0 : 1;
    if (ours[i].family == "vTrain single node") cells += ours[i].weight;
  }
  CHECK(run > 990);
  CHECK(cells == Approx(32).epsilon(1e-5));  // they are composed of so many measured cells
}

TEST_CASE("mutated tables of training steps are read or refused with the file's name") {
  const Catalog catalog;
  std::mt19937_64 random(11);
  std::size_t refused = 0, unsupported = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string bent = testing::mutated(kColumns + kKorthikanti, random);
    CAPTURE(bent);
    try {
      for (const TrainingStep& step : measured::read_training_steps(import::parse_csv(bent, "t.csv"), catalog)) {
        REQUIRE(step.experiments.empty() == !step.unsupported.empty());
        unsupported += step.experiments.empty() ? 1 : 0;
      }
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("t.csv:", 0) == 0);
    }
  }
  CHECK(refused > 20);
  CHECK(unsupported > 40);
}

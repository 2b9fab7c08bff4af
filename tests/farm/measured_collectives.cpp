// Measured collectives against the packet simulation: the bars that the project promises, and what it cannot run.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

#include "experiments/measured/tables.hpp"
#include "experiments/measured_collectives/collectives.hpp"
#include "farm/validation/predicted_collectives.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using experiments::measured::MeasuredCollective;

namespace {

std::vector<MeasuredCollective> rows_of(const std::string& text,
                                        const experiments::Catalog& catalog = experiments::Catalog()) {
  return experiments::measured::read_collectives(experiments::import::parse_csv(text, "c.csv"), catalog);
}

const std::string kHeader =
    "id,system,gpu,op,ranks,nodes,gpus_per_node,bytes,algorithm,time_us,busbw_GBps,intra_bw_GBps,"
    "inter_bw_GBps_per_gpu,source\n";

MeasuredCollective row(const std::string& fields) {
  return rows_of(kHeader + fields + "\n").front();
}

struct Mean {
  std::size_t rows = 0;
  double sum = 0;
  double error() const { return sum / static_cast<double>(rows); }
};

}  // namespace

TEST_CASE("collectives of 1 MiB and more on A100 are within 5 % of what was measured in a node, 10 % across nodes") {
  std::map<std::string, Mean> means;
  experiments::GraphCache graphs;
  for (const MeasuredCollective& one : rows_of(experiments::measured::compiled_table("collectives"))) {
    if (!one.gpu.starts_with("a100") || one.bytes < experiments::measured::kLargeBytes) continue;
    const PredictedCollective predicted = predict(one, graphs);
    REQUIRE(predicted.predicted_us);
    CHECK(predicted.calibrated == "yes");
    Mean& mean = means[one.nodes > 1 ? "across" : "inside"];
    ++mean.rows;
    mean.sum += std::abs(*predicted.predicted_us / one.measured_us - 1);
  }
  CHECK(means["inside"].rows == 282);
  CHECK(means["inside"].error() <= 0.05);
  CHECK(means["across"].rows == 28);
  CHECK(means["across"].error() <= 0.10);
}

TEST_CASE("a row becomes the machines and the operation that were measured") {
  const MeasuredCollective one = row("x,Azure,NVIDIA A100-SXM4-40GB,all_reduce,16,2,8,1048576,,100,,300,25,Echo");
  CHECK(one.unsupported.empty());
  CHECK((one.gpu == "a100_40" && one.ranks == 16 && one.nodes == 2 && one.bytes == 1'048'576));
  CHECK(one.algorithm == "auto");
  CHECK(one.family == "A100 across nodes, from 1 MiB");
  CHECK(row("x,,A100,all_reduce,8,1,8,1024,,9,,300,,Echo").family == "A100 in a node, below 1 MiB");
  CHECK(std::get<double>(one.settings.at("cluster.nic_gbps")) == 200);
  CHECK(std::get<std::int64_t>(one.settings.at("cluster.gpus_per_node")) == 8);
  CHECK(one.assumed.empty());
  CHECK(row("x,s,A100,all_reduce,16,2,8,1024,,100,,300,,Echo").assumed ==
        std::vector<std::string>{"inter_bw_GBps_per_gpu"});
  CHECK(row("x,s,H200,all_reduce,8,1,8,1024,Ring (NVLS off),9,,450,,z").algorithm == "ring");
  CHECK(row("x,s,H200,all_reduce,8,1,8,1024,NVLS,9,,450,,z").algorithm == "in_switch");
  CHECK(row("x,s,H200,all_reduce,8,1,8,1024,\"RING LL <=1MiB, NVLS >=2MiB\",9,,450,,z").algorithm == "auto");
}

TEST_CASE("GPUs that one rack joins are a node, whatever a table calls its nodes") {
  const MeasuredCollective racks = row("x,s,GB200,all_reduce,144,36,4,1048576,,9,,,,z");
  CHECK(racks.nodes == 2);
  CHECK(std::get<std::int64_t>(racks.settings.at("cluster.gpus_per_node")) == 72);
  CHECK(row("x,s,GB200,all_reduce,8,2,4,1048576,,9,,,,z").family == "GB200 in a node, from 1 MiB");
}

TEST_CASE("rows that cannot be run say why, and a GPU that nobody measured says whose figures it has") {
  CHECK(row("x,s,A100,moe_dispatch,8,1,8,1024,,9,,,,z").unsupported == "its operation is not simulated");
  CHECK(row("x,s,A100,all_reduce,8,1,8,,,9,,,,z").unsupported == "bytes is not printed");
  CHECK(row("x,s,A100,all_reduce,8,1,8,1024,,,,,,z").unsupported == "no time is printed");
  CHECK(row("x,s,A100,all_reduce,8,1,8,1024,,-1,,,,z").unsupported == "time_us is not above 0");
  CHECK(row("x,s,abacus,all_reduce,8,1,8,1024,,9,,,,z").unsupported == "its GPU is not in the catalog");
  CHECK(row("x,s,A100,all_reduce,9,2,8,1024,,9,,,,z").unsupported == "ranks is no multiple of nodes");
  CHECK(row("x,s,A100,all_reduce,8,1,8,1024,NVLS,9,,,,z").unsupported == "its switches are not known to reduce");
  CHECK(row("x,s,A100,all_reduce,8,1,8,many,,9,,,,z").unsupported == "a field cannot be read");
  experiments::GraphCache graphs;
  const auto predicted = predict(row("x,s,B200,all_gather,8,1,8,1048576,,9,,,,z"), graphs);
  CHECK(predicted.predicted_us);
  CHECK(predicted.calibrated == "yes");
  const auto v100 = predict(row("x,s,V100,all_gather,8,1,8,1048576,,9,,,,z"), graphs);
  CHECK(v100.calibrated == "as a100_40, scaled by link speed");
  CHECK_THROWS_AS(rows_of("id,gpu,op\nx,A100,all_reduce\n"), core::InputError);
}

TEST_CASE("NCCL's tables and those of MareNostrum are read as they were published, versions by row or by file name") {
  const std::string perf = "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n";
  const auto one = rows_of(perf + "TRTLLM,2.28.9,NVIDIA B200,alltoall,NCCL,half,8,1024,0.02\n").front();
  CHECK(one.unsupported.empty());
  CHECK((one.gpu == "b200_hgx" && one.op == "all_to_all" && one.ranks == 8 && one.nodes == 1));
  CHECK(one.bytes == 2'048);  // sizes are in elements of two bytes
  CHECK(one.measured_us == Approx(20));
  CHECK(one.family == "NCCL B200 all_to_all, below 1 MiB");
  CHECK(std::get<std::string>(one.settings.at("collectives.version")) == "2.26");
  const auto int8 = rows_of(perf + "T,2.29.2,NVIDIA GB300,all_reduce,NCCL,int8,4,1048576,0.02\n").front();
  CHECK((int8.gpu == "gb300_nvl72" && int8.bytes == 1 << 20 && int8.algorithm == "ring"));
  CHECK(int8.family == "NCCL GB300 all_reduce, from 1 MiB");
  CHECK(rows_of(perf + "T,new,NVIDIA B200,alltoall,NCCL,half,8,1024,0.02\n").front().unsupported ==
        "its library's version is not known");
  const auto of_file = experiments::measured::read_collectives(
      experiments::import::parse_csv(
          "nccl_dtype,num_gpus,message_size,kernel_source,op_name,latency\nhalf,2,1024,NCCL,all_gather,0.006\n",
          "a/h100_sxm_comm_nccl_2.23_nccl_perf.csv"),
      experiments::Catalog());
  CHECK(of_file.front().gpu == "h100_sxm");
  CHECK(std::get<std::string>(of_file.front().settings.at("collectives.version")) == "2.23");
  const std::string pico = "nodes,gpus,test,bytes,algorithm,reps,median_ns\n";
  const auto tree = rows_of(pico + "4,16,0,2048,allreduce_nccl_tree,9,25000\n").front();
  CHECK((tree.algorithm == "double_tree" && tree.nodes == 4 && tree.ranks == 16 && tree.measured_us == Approx(25)));
  CHECK(std::get<bool>(tree.settings.at("collectives.ll128_between_nodes")) == false);
  CHECK(std::get<double>(tree.settings.at("cluster.nic_gbps")) == 200);
  CHECK_FALSE(rows_of(pico + "4,16,0,2048,allreduce_nccl_pat,9,25000\n").front().unsupported.empty());
}

TEST_CASE(
    "NCCL's tables are within 6 % from 1 MiB and 12 % below, for every GPU and operation, and not with a slower link") {
  std::map<std::string, Mean> means;
  Mean slower;
  experiments::GraphCache graphs;
  for (MeasuredCollective one : rows_of(experiments::measured::compiled_table("nccl_tables"))) {
    const PredictedCollective predicted = predict(one, graphs);
    REQUIRE(predicted.predicted_us);
    Mean& mean = means[one.family];
    ++mean.rows;
    mean.sum += std::abs(*predicted.predicted_us / one.measured_us - 1);
    if (one.bytes < 64 << 20) continue;
    one.settings["cluster.gpu.library_link_share"] = 0.6;  // the control
    ++slower.rows;
    slower.sum += std::abs(*predict(one, graphs).predicted_us / one.measured_us - 1);
  }
  CHECK(means.size() == 6 * 4 * 2);
  for (const auto& [family, mean] : means) {
    INFO(family << " " << mean.error());
    CHECK(mean.error() <= (family.ends_with("from 1 MiB") ? 0.06 : 0.12));
  }
  CHECK(slower.error() > 0.1);
}

TEST_CASE("mutated tables of collectives are read, row by row, or refused with the file's name") {
  const std::string text = kHeader +
                           "a,s,A100,all_reduce,16,2,8,1048576,,100,,300,25,Echo\n"
                           "b,s,H200,all_gather,8,1,8,1024,Ring,9,361.4,450,,\"one, two\"\n";
  const experiments::Catalog catalog;
  std::mt19937_64 random(7);
  std::size_t refused = 0, left = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string bent = experiments::testing::mutated(text, random);
    CAPTURE(bent);
    try {
      for (const MeasuredCollective& one : rows_of(bent, catalog)) {
        left += !one.unsupported.empty();
        CHECK(one.settings.empty() == !one.unsupported.empty());
      }
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("c.csv", 0) == 0);
    }
  }
  CHECK(refused > 50);
  CHECK(left > 50);
}

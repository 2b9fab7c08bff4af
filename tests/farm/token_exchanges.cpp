// Measured exchanges of experts' tokens: how their tables are read, and the bars that the project promises.
#include <catch2/catch.hpp>

#include <map>

#include "experiments/measured/tables.hpp"
#include "experiments/measured_collectives/collectives.hpp"
#include "farm/validation/predicted_collectives.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using core::collective::TokenKernels;
using experiments::measured::MeasuredCollective;

namespace {

std::vector<MeasuredCollective> rows_of(const std::string& text) {
  static const experiments::Catalog catalog;
  return experiments::measured::read_collectives(experiments::import::parse_csv(text, "c.csv"), catalog);
}

const std::string kNormal =
    "framework,version,device,op_name,kernel_source,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_sms,"
    "dispatch_transmit_us,dispatch_notify_us,combine_sms,combine_transmit_us,combine_notify_us\n";
const std::string kLowLatency =
    "framework,version,device,op_name,kernel_source,node_num,hidden_size,num_token,num_topk,num_experts,combine_avg_t_"
    "us,"
    "combine_bandwidth_gbps,dispatch_avg_t_us,dispatch_bandwidth_gbps\n";
const std::string kTrtllm =
    "framework,version,device,op_name,kernel_source,moe_dtype,num_tokens,hidden_size,topk,num_experts,moe_ep_size,"
    "distribution,latency\n";

struct Mean {
  std::size_t rows = 0;
  double sum = 0;
  double error() const { return sum / static_cast<double>(rows); }
};

}  // namespace

TEST_CASE("a row of DeepEP's table is a dispatch in 8 bits and a combine in 16, of tokens that reach each rank once") {
  const auto rows =
      rows_of(kNormal + "sglang,0.5,NVIDIA H100 80GB HBM3,normal,deepep,1,7168,4096,8,256,20,400,0,24,700,0\n");
  REQUIRE(rows.size() == 2);
  const MeasuredCollective &dispatch = rows[0], &combine = rows[1];
  REQUIRE((dispatch.unsupported.empty() && combine.unsupported.empty()));
  CHECK((dispatch.gpu == "h100_sxm" && dispatch.ranks == 8 && dispatch.nodes == 1));
  CHECK((dispatch.measured_us == 400 && combine.measured_us == 700));
  CHECK(dispatch.family == "DeepEP H100 dispatch, in a node");
  CHECK(combine.family == "DeepEP H100 combine, in a node");
  CHECK((dispatch.tokens->kernels == TokenKernels::deepep && !dispatch.tokens->combine && combine.tokens->combine));
  CHECK((dispatch.tokens->row_bytes == 7'168 + 224 + 16 && combine.tokens->row_bytes == 2 * 7'168 + 16));
  CHECK((dispatch.tokens->units == 20 && combine.tokens->units == 24));
  // One of 8 ranks holds none of a token's 8 experts out of 256 with (224 choose 8) / (256 choose 8).
  double missed = 1;
  for (int i = 0; i < 8; ++i) missed *= (224.0 - i) / (256.0 - i);
  CHECK(dispatch.tokens->ranks_reached == Approx(8 * (1 - missed)));
  CHECK(dispatch.tokens->tokens() == Approx(4'096).epsilon(1e-9));
}

TEST_CASE("over nodes a token's experts are on four nodes at most, and low-latency kernels send a row for each") {
  const auto over = [](const std::string& nodes) {
    return rows_of(kNormal + "s,0.5,NVIDIA H100,normal,deepep," + nodes + ",7168,64,8,256,20,90,30,20,90,30\n").front();
  };
  // Of eight nodes four are in question, with 128 of 256 experts: one has none of a token's with (96 choose 8) / (128
  // choose 8).
  const auto reached = [](double experts) {
    double missed = 1;
    for (int i = 0; i < 8; ++i) missed *= (experts * 3 / 4 - i) / (experts - i);
    return 4 * (1 - missed);
  };
  CHECK(over("4").tokens->nodes_reached == Approx(reached(256)));
  CHECK(over("8").tokens->nodes_reached == Approx(reached(128)));
  CHECK(over("2").family == "DeepEP H100 dispatch, over nodes");
  CHECK(std::get<std::int64_t>(over("8").settings.at("cluster.nodes")) == 8);
  const auto low = rows_of(kLowLatency + "s,0.5,NVIDIA B200,ll,deepep,1,2048,128,6,384,17,1,16,1\n");
  CHECK(low[0].tokens->ranks_reached == 6);
  CHECK(low[0].tokens->units == 148);  // as many as the GPU has, fewer than experts
  CHECK((low[0].measured_us == 16 && low[1].measured_us == 17));
  CHECK(low[1].family == "DeepEP low latency B200 combine, in a node");
  CHECK(low[1].tokens->row_bytes == 4'096);
}

TEST_CASE("TensorRT-LLM's all-to-all is read by kernels and precision, and what is no exchange says so") {
  const auto row = [](const std::string& op, const std::string& precision) {
    return rows_of(kTrtllm + "T,1.2,NVIDIA GB200," + op + "," + precision + ",256,7168,8,256,16,balanced,0.05\n")
        .front();
  };
  const auto dispatch = row("alltoall_dispatch,NVLinkOneSided", "nvfp4");
  CHECK((dispatch.ranks == 16 && dispatch.nodes == 1 && dispatch.measured_us == Approx(50)));
  CHECK(dispatch.tokens->kernels == TokenKernels::trtllm_one_sided);
  CHECK((dispatch.tokens->row_bytes == 3'584 + 448 && dispatch.tokens->ranks_reached == 8));
  CHECK(dispatch.family == "TensorRT-LLM one-sided GB200 dispatch, in a node");
  CHECK(row("alltoall_combine,NVLinkTwoSided", "nvfp4").tokens->row_bytes == 14'336);
  CHECK(row("alltoall_prepare,NVLinkTwoSided", "fp8").unsupported == "its operation is not simulated");
  CHECK(row("alltoall_dispatch,NVLinkTwoSided", "int3").unsupported == "row_bytes is not printed");
}

TEST_CASE("rows of exchanges that cannot be read say why") {
  const auto why = [](const std::string& fields) { return rows_of(kNormal + fields + "\n").front().unsupported; };
  CHECK(why("s,1,NVIDIA H100,normal,deepep,3,7168,64,8,256,20,90,30,20,90,30") ==
        "its ranks do not have equally many experts");
  CHECK(why("s,1,NVIDIA H100,normal,deepep,1,7168,64,300,256,20,90,30,20,90,30") == "top_k is not from 1 to 256");
  CHECK(why("s,1,NVIDIA H100,normal,deepep,1,7168,64,8,256,0,90,30,20,90,30") == "units is not from 1 to 1024");
  CHECK(why("s,1,abacus,normal,deepep,1,7168,64,8,256,20,90,30,20,90,30") == "its GPU is not in the catalog");
  CHECK(why("s,1,NVIDIA H100,normal,deepep,1,7168,64,8,256,20,,30,20,90,30") == "no time is printed");
}

TEST_CASE("a GPU on which nobody measured an exchange takes a relative's kernels, and says so") {
  experiments::GraphCache graphs;
  const auto said = [&](const std::string& device) {
    const auto row = rows_of(kNormal + "s,1," + device + ",normal,deepep,1,7168,64,8,256,20,90,30,20,90,30\n").front();
    return predict(row, graphs).calibrated;
  };
  CHECK(said("NVIDIA H100").find("DeepEP") == std::string::npos);
  CHECK(said("NVIDIA H200").find("DeepEP's normal kernels in a node as on h100_sxm, a guess") != std::string::npos);
  CHECK(said("NVIDIA GB200").find("DeepEP's normal kernels in a node as on b200_hgx, a guess") != std::string::npos);
}

TEST_CASE("exchanges of tokens are within 12 % in a node and 20 % over nodes, and not with half the compute units") {
  std::map<std::string, Mean> means;
  Mean halved;
  experiments::GraphCache graphs;
  for (const char* table : {"exchanges_deepep", "exchanges_low_latency", "exchanges_trtllm"})
    for (MeasuredCollective one : rows_of(std::string(experiments::measured::compiled_table(table)))) {
      INFO(one.id << " " << one.unsupported << " " << one.detail);
      const PredictedCollective predicted = predict(one, graphs);
      INFO(predicted.reason << " " << predicted.detail);
      REQUIRE(predicted.predicted_us);
      Mean& mean = means[one.family];
      ++mean.rows;
      mean.sum += std::abs(*predicted.predicted_us / one.measured_us - 1);
      if (one.tokens->kernels != TokenKernels::deepep || one.nodes > 1 || one.tokens->tokens() < 1'000) continue;
      one.tokens->units /= 2;  // the control
      ++halved.rows;
      halved.sum += std::abs(*predict(one, graphs).predicted_us / one.measured_us - 1);
    }
  CHECK(means.size() == 2 * (3 + 3 + 2));
  for (const auto& [family, mean] : means) {
    INFO(family << " " << mean.rows << " " << mean.error());
    CHECK(mean.error() <= (family.ends_with("over nodes") ? 0.20 : 0.12));
  }
  CHECK(halved.error() > 0.2);
}

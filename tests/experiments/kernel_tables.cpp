// Tables of measured kernels: what is read of them, what is refused by name, and what the catalog's constants may be.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/measured_kernels/kernels.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using measured::MeasuredKernel;
using testing::error_of;
using testing::kSingle;
using testing::mutated;

namespace {

constexpr const char* kGemmColumns = "framework,device,kernel_source,gemm_dtype,m,n,k,latency\n";

std::vector<MeasuredKernel> rows_of(const std::string& text) {
  static const Catalog catalog;
  return measured::read_kernels(import::parse_csv(text, "kernels.csv"), catalog);
}

MeasuredKernel gemm_row(const std::string& row) {
  return rows_of(kGemmColumns + row + "\n").at(0);
}

/// Kernels of training, of sizes from tiny to those of the largest models.
std::vector<core::compute::Kernel> training_kernels(core::compute::Dtype dtype) {
  using core::compute::KernelClass;
  std::vector<core::compute::Kernel> kernels;
  for (const std::int64_t m : {256, 1'024, 4'096, 16'384})
    for (const std::int64_t n : {512, 4'096, 28'672})
      for (const std::int64_t k : {512, 8'192, 16'384}) {
        kernels.push_back(core::compute::gemm("gemm", m, n, k, dtype));
        kernels.push_back(core::compute::weight_gradient("gemm", n, k, m, dtype));
      }
  for (const std::int64_t sequence : {1'024, 8'192, 65'536})
    for (const std::int64_t width : {64, 128})
      for (const auto kernel_class : {KernelClass::cudnn_forward, KernelClass::cudnn_backward})
        kernels.push_back(core::compute::fused_attention(
            "attention", kernel_class, {sequence, sequence, sequence * sequence / 2, width, width, 32, 8, 0}));
  for (const std::int64_t bytes : {std::int64_t{1'000'000}, std::int64_t{10'000'000'000}})
    kernels.push_back(core::compute::memory_bound("copy", bytes));
  return kernels;
}

}  // namespace

TEST_CASE("a row of a table of GEMMs names its kind, format, GPU and range of time") {
  const MeasuredKernel row = gemm_row("TRTLLM,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8192,8192,8192,1.6");
  CHECK(row.unsupported.empty());
  CHECK(row.family == "GEMM bf16 H100, from 50 us");
  CHECK(row.measured_us == Approx(1'600));
  // 2 x 8192^3 FLOPs cannot take less than at the datasheet's peak.
  CHECK(row.predicted_us > 2 * std::pow(8'192.0, 3) / 989.4e6);
  CHECK(row.predicted_us < 2 * std::pow(8'192.0, 3) / 989.4e6 / 0.5);
  CHECK(gemm_row("TRTLLM,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8,8,8,0.004").family ==
        "GEMM bf16 H100, below 50 us");
}

TEST_CASE("what a table of kernels has and the model has not is refused by name") {
  const auto reason = [](const std::string& row) { return gemm_row(row).unsupported; };
  CHECK(reason("T,NVIDIA H100 80GB HBM3,torch_flow,int8_wo,8,8,8,1") == "its number format is not modelled");
  CHECK(reason("T,NVIDIA A100-SXM4-80GB,torch_flow,fp8,8,8,8,1") == "nothing is known of this operator on its GPU");
  CHECK(reason("T,Abacus 9000,torch_flow,bfloat16,8,8,8,1") == "its GPU is not in the catalog");
  CHECK(reason("T,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8,8,8,0") == "its time is not above 0");
  CHECK(reason("T,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8,8,8,") == "its time is not above 0");
  CHECK(reason("T,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8,-8,8,1") == "n is no size from 1 to 1048576");
  CHECK(reason("T,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8,9999999,8,1") == "n is no size from 1 to 1048576");
  CHECK(reason("T,NVIDIA H100 80GB HBM3,torch_flow,bfloat16,8,eight,8,1") == "a field cannot be read");
  CHECK(gemm_row("T,NVIDIA H100 80GB HBM3,torch_flow,int8_wo,8,8,8,1").detail == "int8_wo");
}

TEST_CASE("tables of kernels are known by their columns") {
  const auto is_table = [](const std::string& text) {
    return measured::is_kernels_table(*import::parse_csv(text, "t.csv").header);
  };
  CHECK(is_table(kGemmColumns));
  CHECK(is_table("device,attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim,latency\n"));
  CHECK(is_table("device,mla_dtype,kv_cache_dtype,batch_size,isl,num_heads,latency\n"));
  CHECK(is_table("op,latency_ms,device,b,h\n"));
  CHECK(!is_table("device,gemm_dtype,m,n,latency\n"));
}

TEST_CASE("experts whose loads are printed are predicted, drawn ones are not") {
  const std::string columns =
      "device,kernel_source,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,"
      "distribution,latency\n";
  const std::string row = "NVIDIA H100 80GB HBM3,moe_torch_flow_cutlass,bfloat16,4096,4096,1536,8,128,1,8,";
  CHECK(rows_of(columns + row + "balanced,1\n").at(0).family == "experts bf16 H100, from 50 us");
  CHECK(rows_of(columns + row + "power_law_1.2,1\n").at(0).unsupported ==
        "the tokens of its experts are drawn and not printed");
}

TEST_CASE("GEMMs and attention of training are read with their pass") {
  const std::string gemms = "device,pass,accumulate,out_dtype,m,n,k,experts,latency\n";
  const auto gemm = [&](const std::string& row) { return rows_of(gemms + "NVIDIA B200," + row + ",1\n").at(0); };
  CHECK(gemm("forward,0,bf16,4096,8192,8192,0").family == "GEMM, forward bf16 B200, from 50 us");
  CHECK(gemm("input gradient,0,bf16,512,4096,7168,64").family == "experts' GEMM, input gradient bf16 B200, from 50 us");
  // Adding to fp32 takes longer than writing 16 bits, and adding to 16 bits reads them as well.
  const double forward = gemm("forward,0,bf16,4096,8192,8192,0").predicted_us;
  CHECK(gemm("weight gradient,1,fp32,4096,8192,8192,0").predicted_us > 1.02 * forward);
  CHECK(gemm("weight gradient,1,bf16,4096,8192,8192,0").predicted_us > forward);
  CHECK(gemm("weight gradient,1,bf16,4096,8192,8192,0").predicted_us < 1.03 * forward);
  CHECK(gemm("sideways,0,bf16,4096,8192,8192,0").unsupported == "its pass is not modelled");
  CHECK(gemm("forward,0,bf16,4096,8192,8192,-1").unsupported == "its experts are not modelled");

  const std::string attentions =
      "device,pass,kernel_source,batch_size,isl,num_heads,num_key_value_heads,head_dim,v_head_dim,latency\n";
  const auto attention = [&](const std::string& row) { return rows_of(attentions + row + ",1\n").at(0); };
  const MeasuredKernel backward = attention("NVIDIA B200,backward,cudnn,1,4096,64,8,128,128");
  CHECK(backward.family == "attention, backward bf16 B200, from 50 us");
  CHECK(backward.predicted_us > 2 * attention("NVIDIA B200,forward,cudnn,1,4096,64,8,128,128").predicted_us);
  CHECK(attention("NVIDIA B200,forward,triton,1,4096,64,8,128,128").unsupported ==
        "its attention kernel is not modelled");
}

TEST_CASE("norm, softmax and scales of tensors move the bytes that they must, at least") {
  const auto norm = [](const char* op, std::int64_t columns) {
    return rows_of(fmt::format("op,latency_ms,device,b,h\n{},1,Tesla V100-PCIE-32GB,32768,{}\n", op, columns)).at(0);
  };
  const auto at_peak_us = [](std::int64_t columns) { return 2.0 * 4 * 32'768 * static_cast<double>(columns) / 900e3; };
  for (const char* op : {"ln", "softmax"})
    for (const std::int64_t columns : {512, 1'024, 8'192}) {
      CAPTURE(op, columns);
      CHECK(norm(op, columns).predicted_us > at_peak_us(columns));
    }
  // Rows that the cache does not hold are read again: once by a norm, twice by a softmax.
  CHECK(norm("ln", 10'240).predicted_us > 1.4 * at_peak_us(10'240));
  CHECK(norm("softmax", 10'240).predicted_us > 1.5 * at_peak_us(10'240));
  const MeasuredKernel scale =
      rows_of("device,op_name,m,k,quant_dtype,latency\nNVIDIA H200,compute_scale,32768,16384,fp8,0.8\n").at(0);
  CHECK(scale.family == "quantisation fp8 H200, from 20 us");
  CHECK(scale.predicted_us > 2.0 * 32'768 * 16'384 / 4'800e3);
}

TEST_CASE("a GPU that is left out has constants of its relatives and its own peaks") {
  static const Catalog catalog;
  const auto predicted = [](const std::string& device, measured::KernelConstants constants) {
    const std::string text = kGemmColumns + std::string("T,") + device + ",torch_flow,bfloat16,8192,8192,8192,1.6\n";
    return measured::read_kernels(import::parse_csv(text, "k.csv"), catalog, constants).at(0);
  };
  using enum measured::KernelConstants;
  for (const std::string device : {"NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200", "NVIDIA A100-SXM4-80GB"}) {
    CAPTURE(device);
    const double with_own = predicted(device, own).predicted_us, lent = predicted(device, of_relatives).predicted_us;
    CHECK(lent != with_own);
    CHECK(std::abs(lent / with_own - 1) < 0.2);
  }
  // Hopper's two GPUs lend each other everything, and have the same peak.
  CHECK(predicted("NVIDIA H100 80GB HBM3", of_relatives).predicted_us ==
        Approx(predicted("NVIDIA H200", own).predicted_us).epsilon(0.001));
  const std::string attention =
      "device,attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim,kernel_source,latency\n"
      "Tesla V100-PCIE-32GB,bfloat16,bfloat16,1,4096,32,32,128,torch_flow,1\n";
  CHECK(measured::read_kernels(import::parse_csv(attention, "k.csv"), catalog, of_relatives).at(0).unsupported ==
        "nothing is known of this attention operator on its GPU");
}

TEST_CASE("a GEMM of the measured shapes is predicted as if they lacked it") {
  static const Catalog catalog;
  const auto rows = rows_of(std::string(kGemmColumns) +
                            "T,NVIDIA B200,torch_flow,bfloat16,4096,4096,4096,0.1\n"
                            "T,NVIDIA B200,torch_flow,bfloat16,64,4096,4096,0.1\n"
                            "T,NVIDIA B200,torch_flow,bfloat16,4096,4096,4096,0.01\n");
  const auto left_out = measured::left_out_shapes(rows, catalog);
  REQUIRE(left_out.size() == 4);  // of the first row alone: the others are small or short
  CHECK(left_out[0].family == "GEMM bf16, no shape measured");
  CHECK(left_out[0].predicted_us == rows[0].predicted_us);
  CHECK(left_out[1].family == "GEMM bf16, its shape left out");
  for (std::size_t i = 1; i < 4; ++i) CHECK(left_out[i].predicted_us != rows[0].predicted_us);
}

TEST_CASE("rows of more operations than an integer holds are refused") {
  const std::string columns =
      "device,kernel_source,attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim,window_"
      "size,"
      "latency\n";
  const std::string gpu = "NVIDIA H100 80GB HBM3,torch_flow,bfloat16,bfloat16,";
  CHECK(rows_of(columns + gpu + "1048576,1048576,1048576,1,1048576,0,1\n").at(0).unsupported ==
        "its operations are too many");
  CHECK(rows_of(columns + gpu + "4,8192,32,8,128,-5,1\n").at(0).unsupported.empty());
}

TEST_CASE("mutated tables of measurements are read or refused with the file's name") {
  const Catalog catalog;
  std::mt19937_64 random(7);
  std::size_t refused = 0, rows = 0;
  for (const char* name :
       {"kernels_gemm", "kernels_experts", "kernels_attention", "kernels_latent_attention", "kernels_elementwise",
        "kernels_norm", "kernels_softmax", "kernels_scale", "kernels_training_gemm", "kernels_training_attention"}) {
    const std::string whole = measured::compiled_table(name);
    std::size_t end = 0;
    for (int line = 0; line < 12; ++line) end = whole.find('\n', end) + 1;
    for (int i = 0; i < 400; ++i) {
      const std::string bent = mutated(whole.substr(0, end), random);
      CAPTURE(bent);
      try {
        const import::CsvTable table = import::parse_csv(bent, name);
        if (!measured::is_kernels_table(*table.header)) continue;
        for (const MeasuredKernel& row : measured::read_kernels(table, catalog)) {
          if (row.unsupported.empty()) CHECK((row.predicted_us > 0 && std::isfinite(row.predicted_us)));
          ++rows;
        }
      } catch (const core::InputError& error) {
        ++refused;
        CHECK(std::string(error.what()).rfind(name, 0) == 0);
      }
    }
  }
  CHECK(rows > 5'000);
  CHECK(refused > 100);
}

TEST_CASE("shares of a GPU's peaks are above 0 and at most 1, and others are refused") {
  const Catalog catalog;
  std::size_t shares = 0;
  for (const core::OptionInfo& info : core::compute::gpu_options().infos()) {
    if (info.unit != "share" || info.name.ends_with("_throttle") || info.name == "communication_slowdown") continue;
    CAPTURE(info.name);
    CHECK(info.maximum == 1);
    CHECK(info.minimum >= 0);
    CHECK(error_of(kSingle, {"cluster.gpu." + info.name + "=1.01"}).find("1.01") != std::string::npos);
    ++shares;
    for (const auto& [name, gpu] : catalog.entries("gpus")) {
      const auto value = gpu.values.find(info.name);
      if (value == gpu.values.end()) continue;
      CAPTURE(name);
      CHECK(std::get<double>(value->second.value) > 0);
      CHECK(std::get<double>(value->second.value) <= 1);
    }
  }
  CHECK(shares >= 17);
}

TEST_CASE("a newer GPU of a line is slower at nothing") {
  const Catalog catalog;
  const std::pair<core::compute::Dtype, std::vector<const char*>> lines[] = {
      {core::compute::Dtype::bf16, {"a100_80", "h100_sxm", "h200_sxm", "b200_hgx", "gb200_nvl72", "gb300_nvl72"}},
      {core::compute::Dtype::fp8, {"h100_sxm", "h200_sxm", "b200_hgx", "gb200_nvl72", "gb300_nvl72"}},
      {core::compute::Dtype::fp4, {"b200_hgx", "gb200_nvl72", "gb300_nvl72"}},
      {core::compute::Dtype::bf16, {"mi300x", "mi325x", "mi355x"}},
      {core::compute::Dtype::bf16, {"v100_32", "a100_40", "a100_80"}}};
  for (const auto& [dtype, gpus] : lines)
    for (std::size_t i = 1; i < gpus.size(); ++i) {
      const auto older = gpu_of(catalog.entries("gpus").at(gpus[i - 1])),
                 newer = gpu_of(catalog.entries("gpus").at(gpus[i]));
      for (const core::compute::Kernel& kernel : training_kernels(dtype)) {
        CAPTURE(gpus[i - 1], gpus[i], core::compute::describe(core::compute::measurement_key(kernel)));
        // 1 % for kernels of some microseconds, where launches and clocks are all that is left.
        CHECK(static_cast<double>(modelled_time(kernel, newer)) <=
              1.01 * static_cast<double>(modelled_time(kernel, older)));
      }
    }
}

// Kernels with measured times: what rows and traces become, and that the model predicts them as it does a step's.
#include "experiments/kernels/kernel_samples.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "core/compute/measured.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/kernels/kineto_trace.hpp"
#include "experiments/kernels/measured_kernels.hpp"
#include "experiments/kernels/operator_kernels.hpp"
#include "experiments/text/unsupported_row.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::core::compute;
using namespace manyworlds::experiments;
using import::KernelSample;

namespace {

const std::string kHeader = "device,level,name,pass,kind,dtype,m,n,k,batch,bytes,flops,time_us,source\n";

KernelSample sample(const std::string& row) {
  return import::read_kernel_samples(import::parse_csv(kHeader + row, "k.csv")).front();
}

/// A row of this kernel as the program writes it.
std::string row_of(const Kernel& kernel) {
  const std::string text = import::measured_kernels_csv({{measurement_key(kernel), 50'000'000, "test"}});
  return "NVIDIA H100 80GB HBM3," + text.substr(text.find('\n') + 1);
}

std::string trace(const std::string& op, const std::string& dims, const std::string& types,
                  const std::string& strides = "", const std::string& concrete = "") {
  return R"({"deviceProperties": [{"name": "NVIDIA H100"}], "traceEvents": [)"
         R"({"cat": "kernel", "name": "k", "dur": 20.5, "args": {"External id": 7}},)"
         R"({"cat": "kernel", "name": "k", "dur": 4.5, "args": {"External id": 7}},)"
         R"({"cat": "kernel", "name": "memset", "dur": 1, "args": {}},)"
         R"({"cat": "cpu_op", "name": ")" +
         op + R"(", "args": {"External id": 7, "Input Dims": )" + dims + R"(, "Input type": )" + types +
         (strides.empty() ? "" : R"(, "Input Strides": )" + strides) +
         (concrete.empty() ? "" : R"(, "Concrete Inputs": )" + concrete) + "}}]}";
}

KernelSample traced(const std::string& text) {
  return import::parse_kineto_trace(text, "t.json").front();
}

}  // namespace

TEST_CASE("every kernel that the program writes to a table comes back as it was") {
  AttentionShape causal{4'096, 4'096, 4'096 * 2'048, 128, 128, 64, 8, 0, true};
  AttentionShape full{1'024, 2'048, 1'024 * 2'048, 64, 64, 32, 32, 0, false};
  for (const Kernel& kernel :
       {gemm("", 4'096, 8'192, 1'024), gemm("", 128, 256, 512, Dtype::fp8), weight_gradient("", 4'096, 8'192, 1'024),
        batched_gemm("", 512, 512, 64, 96), memory_bound("", 1 << 28), memory_bound("", 1'000, Dtype::fp32),
        chunked_scan("", KernelClass::state_space, std::int64_t{1} << 33, std::int64_t{1} << 40),
        chunked_scan("", KernelClass::delta_rule, 1 << 20, 0), chunked_scan("", KernelClass::delta_rule, 1, 2, 128),
        fused_attention("", KernelClass::cudnn_forward, causal),
        fused_attention("", KernelClass::cudnn_backward, causal),
        fused_attention("", KernelClass::flash2_forward, full),
        fused_attention("", KernelClass::flash2_backward, full)}) {
    const KernelSample back = sample(row_of(kernel));
    INFO(describe(measurement_key(kernel)));
    CHECK(back.unsupported.empty());
    Kernel read = back.kernel;
    read.name = kernel.name;
    CHECK((read == kernel));
    CHECK(back.measured_us == 50);
    CHECK(back.device == "NVIDIA H100 80GB HBM3");
  }
}

TEST_CASE("a sample in a step takes what the model says without launch, one of a benchmark runs at boost clock") {
  const Gpu gpu = gpu_of(Catalog().entries("gpus").at("h100_sxm"));
  KernelSample moved = sample(row_of(memory_bound("", 3'350'000)));
  CHECK(import::predicted_us(moved, gpu) == Approx(1 / gpu.memory_efficiency + gpu.launch_us));
  moved.with_launch = false;
  CHECK(import::predicted_us(moved, gpu) == Approx(1 / gpu.memory_efficiency));
  KernelSample product = sample(row_of(gemm("", 8'192, 8'192, 8'192)));
  const double burst = import::predicted_us(product, gpu);
  product.power = PowerState::sustained;
  CHECK(import::predicted_us(product, gpu) > burst);
  CHECK(import::predicted_us(product, gpu) * 1e6 == Approx(static_cast<double>(modelled_time(product.kernel, gpu))));
}

TEST_CASE("GEMMs as aiconfigurator measures them are samples where they are one kernel") {
  const auto samples = import::read_kernel_samples(
      import::parse_csv("device,kernel_source,gemm_dtype,m,n,k,latency\nH100,x,bfloat16,64,128,256,0.5\n"
                        "H100,x,fp8,64,128,256,0.5\n",
                        "g.csv"));
  CHECK((samples[0].kernel.m == 64 && samples[0].kernel.n == 128 && samples[0].kernel.k == 256));
  CHECK(samples[0].measured_us == 500);
  CHECK(samples[1].unsupported == "its operator is more than one kernel");
}

TEST_CASE("rows that cannot be predicted say why") {
  const auto reason = [](const std::string& row) { return sample(row).unsupported; };
  CHECK(reason("x,layer,a,,gemm,bf16,1,2,3,1,,,5,\n") == "only kernels tell the constants of kernels");
  CHECK(reason("x,kernel,a,,gem,bf16,1,2,3,1,,,5,\n") == "its kind is unknown");
  CHECK(reason("x,kernel,a,,gemm,bf8,1,2,3,1,,,5,\n") == "its dtype is unknown");
  CHECK(reason("x,kernel,a,,gemm,fp32,1,2,3,1,,,5,\n") == "GEMMs of fp32 are not modelled");
  CHECK(reason("x,kernel,a,,gemm,bf16,0,2,3,1,,,5,\n") == "m is no size from 1 to 4294967296");
  CHECK(reason("x,kernel,a,,gemm,bf16,1,2,3,1,,,0,\n") == "its time is not above 0");
  CHECK(reason("x,kernel,a,,gemm,bf16,1,2,c,1,,,5,\n") == "a field cannot be read");
  CHECK(reason("x,kernel,a,,gemm,bf16,4000000000,4000000000,1000,1,,,5,\n") == "its operations are too many");
  CHECK(reason("x,kernel,a,,memory_bound,bf16,,,,,,,5,\n") == "bytes is no size from 1 to 4294967296");
  CHECK(reason("x,kernel,a,,state_space,bf16,,,,,,7,5,\n") == "bytes of a scan is no number from 0 to 1e+17");
  CHECK(reason("x,kernel,a,,delta_rule,bf16,,,,,7,,5,\n") == "flops of a scan is no number from 0 to 1e+17");
  CHECK(reason("x,kernel,a,,delta_rule,bf16,-1,,,,7,7,5,\n") == "m is no number of chunks from 0 to 4294967296");
  CHECK(reason("x,kernel,a,,cudnn_forward,bf16,64,64,64,8,,,5,\n") ==
        "attention needs flops and bytes, which tell its mask and heads");
  CHECK(reason("x,kernel,a,,cudnn_forward,bf16,64,64,64,8,1000,80000,5,\n") ==
        "its FLOPs are those of neither all pairs of queries and keys nor a causal half");
}

TEST_CASE("operators of a trace become the kernels that they launched, with the sum of their times") {
  const std::string two = R"(["c10::BFloat16", "c10::BFloat16"])";
  const KernelSample product = traced(trace("aten::mm", "[[512, 1024], [1024, 2048]]", two));
  CHECK(product.unsupported.empty());
  CHECK((product.kernel.m == 512 && product.kernel.n == 2'048 && product.kernel.k == 1'024));
  CHECK((product.measured_us == 25 && product.device == "NVIDIA H100" && product.kind == "GEMM bf16 in a step"));
  CHECK((product.power == PowerState::sustained && !product.with_launch));
  const KernelSample sum =
      traced(trace("aten::add", "[[64, 32], [64, 32], []]", R"(["c10::BFloat16", "float", "Scalar"])"));
  CHECK(sum.kernel.bytes == 64 * 32 * (2 + 4 + 4));
  const KernelSample copy =
      traced(trace("aten::copy_", "[[64, 32], [64, 32], []]", R"(["c10::BFloat16", "float", "Scalar"])"));
  CHECK(copy.kernel.bytes == 64 * 32 * (2 + 4));
  const std::string three =
      R"(["c10::Half", "c10::Half", "c10::Half", "", "", "Scalar", "Scalar", "Scalar", "Scalar"])";
  const std::string heads = "[[2, 512, 16, 64], [2, 512, 4, 64], [2, 512, 4, 64], [], [], [], [], [], []]";
  const KernelSample attention = traced(
      trace("aten::_flash_attention_forward", heads, three, "", R"(["", "", "", "", "", "512", "512", "0.", "True"])"));
  CHECK(attention.kernel.kernel_class == KernelClass::flash2_forward);
  CHECK((attention.kernel.batch == 32 && attention.kernel.attention.key_batch == 8));
  CHECK(attention.kernel.attention.pairs == 512 * 256);
  const std::string norm_types = R"(["c10::BFloat16", "ScalarList", "c10::BFloat16", "Scalar"])";
  CHECK(traced(trace("aten::_fused_rms_norm", "[[64, 32], [], [32], []]", norm_types)).kernel.bytes == 64 * 32 * 4);
  CHECK(traced(trace("aten::_fused_rms_norm_backward", "[[64, 32], [64, 32], [], [64, 1], [32], []]", norm_types))
            .kernel.bytes == 64 * 32 * 6);
}

TEST_CASE("what a trace does not tell is left out with its reason") {
  const auto reason = [](const std::string& text) { return traced(text).unsupported; };
  const std::string two = R"(["c10::BFloat16", "c10::BFloat16"])";
  CHECK(reason(trace("aten::conv2d", "[[1]]", two)) == "its operator is not modelled");
  CHECK(reason(trace("aten::mm", "[[512, 1024], [1024, 2048]]", R"(["float", "float"])")) ==
        "GEMMs of this type are not modelled");
  CHECK(reason(trace("aten::mm", "[[512, 1024], [1000, 2048]]", two)) == "its operands do not fit");
  CHECK(reason(trace("aten::mul", "[[64, 32], [64, 1]]", two)) ==
        "its tensors are not equally shaped and without gaps");
  CHECK(reason(trace("aten::mul", "[[64, 32], [64, 32]]", two, "[[1, 64], [32, 1]]")) ==
        "its tensors are not equally shaped and without gaps");
  CHECK(import::parse_kineto_trace(trace("aten::mm", "[[8, 8], [8, 8]]", two), "t").back().unsupported ==
        "no operator of the trace launched it");
  CHECK_THROWS_WITH(import::parse_kineto_trace("{}", "t.json"), Catch::Contains("t.json: is no trace"));
  CHECK_THROWS_WITH(import::parse_kineto_trace("[]", "t.json"), Catch::Contains("has no kernel"));
}

TEST_CASE(
    "operators that broadcast, add up, look up or were fused are for scaling alone, with the bytes that they move") {
  const auto bytes = [](const std::string& name, const std::string& dims, const std::string& types,
                        const std::string& strides = "", const std::string& concrete = "") {
    const auto list = [](const std::string& text) {
      return text.empty() ? nlohmann::json() : nlohmann::json::parse(text);
    };
    const nlohmann::json inputs{{"Input Dims", list(dims)},
                                {"Input type", list(types)},
                                {"Input Strides", list(strides)},
                                {"Concrete Inputs", list(concrete)}};
    const import::OperatorKernel known = import::kernel_of_operator(name, &inputs);
    CAPTURE(name, dims);
    CHECK(known.for_scaling_alone != nullptr);
    CHECK(known.kernel.kernel_class == KernelClass::memory_bound);
    return known.kernel.bytes;
  };
  const std::string half = R"(["c10::Half", "c10::Half"])", mixed = R"(["float", "c10::Half"])";
  CHECK(bytes("aten::mul", "[[64, 32], [64, 1]]", half) == 2 * (64 * 32 + 64 + 64 * 32));
  CHECK(bytes("aten::mul", "[[32], [8, 64, 32]]", mixed) == 4 * 32 + 2 * 8 * 64 * 32 + 4 * 8 * 64 * 32);
  CHECK(bytes("aten::add", "[[64, 1], [1, 32]]", half) == 2 * (64 + 32 + 64 * 32));
  // An expanded tensor is read once; a slice of 32 of 64 columns as it is; what is transposed has no gaps.
  CHECK(bytes("aten::copy_", "[[8, 64, 32], [8, 64, 32]]", half, "[[2048, 32, 1], [0, 32, 1]]") == 2 * 9 * 64 * 32);
  CHECK(bytes("aten::neg", "[[64, 32]]", R"(["c10::Half"])", "[[64, 1]]") == 2 * 2 * 64 * 32);
  CHECK(bytes("aten::copy_", "[[64, 32], [64, 32]]", half, "[[32, 1], [1, 64]]") == 2 * 2 * 64 * 32);
  CHECK_THROWS_AS(bytes("aten::neg", "[[64, 8]]", R"(["c10::Half"])", "[[64, 1]]"), import::UnsupportedRow);  // 16 B
  CHECK_THROWS_AS(bytes("aten::mul", "[[64, 32], [64, 2]]", half), import::UnsupportedRow);
  const std::string sums = R"(["float", "ScalarList", "Scalar"])";
  CHECK(bytes("aten::mean", "[[8, 64, 32], [], []]", sums, "", R"(["", "[-1]", "True"])") ==
        4 * (8 * 64 * 32 + 8 * 64));
  CHECK(bytes("aten::sum", "[[8, 64, 32], [], []]", sums, "", R"(["", "[0, 1]", "False"])") == 4 * (8 * 64 * 32 + 32));
  CHECK(bytes("aten::sum", "[[8, 64, 32], []]", sums) == 4 * (8 * 64 * 32 + 1));
  CHECK_THROWS_AS(bytes("aten::sum", "[[8, 64], []]", sums, "", R"(["", "[2]"])"), import::UnsupportedRow);
  CHECK(bytes("aten::_softmax", "[[64, 32], []]", sums) == 2 * 4 * 64 * 32);
  CHECK(bytes("aten::native_layer_norm_backward", "[[64, 32], [64, 32]]", half) == 3 * 2 * 64 * 32);
  CHECK(bytes("aten::embedding", "[[1000, 32], [4, 8]]", R"(["c10::Half", "long int"])") == 8 * 32 + 2 * 2 * 32 * 32);
  CHECK(bytes("aten::index_select", "[[1000, 32], [], [8]]", R"(["float", "Scalar", "long int"])", "",
              R"(["", "0", ""])") == 8 * 8 + 2 * 4 * 8 * 32);
  CHECK(bytes("triton_poi_fused_add_cos_sin_0", "[[10, 10], [10, 10], [10, 10], []]",
              R"(["float", "float", "float", "Scalar"])") == 4 * 300);
}

TEST_CASE("damaged traces and tables give samples or one message") {
  const std::string text =
      trace("aten::_flash_attention_forward", "[[2, 512, 16, 64], [2, 512, 4, 64], [2, 512, 4, 64]]",
            R"(["c10::Half", "c10::Half", "c10::Half"])", "", R"(["", "", "", "", "", "", "", "", "True"])");
  const std::string table = kHeader + row_of(gemm("", 4'096, 8'192, 1'024)) + row_of(memory_bound("", 1 << 28));
  std::mt19937_64 random(1);
  const Gpu gpu = gpu_of(Catalog().entries("gpus").at("h100_sxm"));
  for (int i = 0; i < 600; ++i) try {
      const auto samples =
          i % 2 == 0
              ? import::parse_kineto_trace(experiments::testing::mutated(text, random), "t")
              : import::read_kernel_samples(import::parse_csv(experiments::testing::mutated(table, random), "t"));
      for (const KernelSample& one : samples)
        if (one.unsupported.empty()) CHECK(import::predicted_us(one, gpu) > 0);
    } catch (const core::InputError& error) {
      CHECK_THAT(error.what(), Catch::StartsWith("t"));
    }
}

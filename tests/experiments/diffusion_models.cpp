// Diffusion transformers of the catalog against what is published of them.
#include <catch2/catch.hpp>

#include <array>
#include <map>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/experiments/catalog_models.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

TEST_CASE("diffusion transformers of the catalog have the parameters that are published") {
  const Catalog catalog;
  const auto parameters = [&](const std::string& name) {
    return core::workload::model_parameters(catalog_model(catalog, name));
  };
  // Totals of the tensors of released checkpoints; that of DiT has 256 x 1152 fixed positions beside.
  CHECK(parameters("dit-xl-2") == 675'129'632 - 256 * 1'152);
  CHECK(parameters("flux.1-dev") == 11'901'408'320);
  CHECK(parameters("wan2.1-1.3b") == 1'418'996'800);
  CHECK(parameters("wan2.1-14b") == 14'288'491'584);
  // Flux schnell is dev without two layers for the scale of guidance.
  CHECK(parameters("flux.1-schnell") == 11'901'408'320 - (256 * 3'072 + 3'072 + 3'072 * 3'072 + 3'072));
  // Peebles and Xie 2023, table 4, in millions.
  for (const auto& [name, millions] :
       std::map<std::string, double>{{"dit-s-2", 33}, {"dit-b-2", 130}, {"dit-l-2", 458}})
    CHECK(static_cast<double>(parameters(name)) / 1e6 == Approx(millions).margin(0.5));
}

TEST_CASE("a sample of Flux takes the FLOPs that MLPerf's configuration states") {
  // MODEL_TFLOP_PER_SAMPLE of training_results_v5.1, NVIDIA/benchmarks/flux1, config_common.sh.
  const auto flops =
      static_cast<double>(core::workload::model_flops_per_sequence(catalog_model(Catalog(), "flux.1-schnell")));
  CHECK(flops / 1e12 == Approx(20.3).epsilon(0.01));
}

TEST_CASE("a forward pass of DiT takes the multiplications that its authors count") {
  // Peebles and Xie 2023, table 4: "Gflops", each a multiplication with its addition. A backward pass takes twice as
  // many but for the gradients of data.
  const Catalog catalog;
  for (const auto& [name, billions] :
       std::map<std::string, double>{{"dit-s-2", 6.06}, {"dit-b-2", 23.01}, {"dit-l-2", 80.71}, {"dit-xl-2", 118.64}}) {
    const auto flops = static_cast<double>(core::workload::model_flops_per_sequence(catalog_model(catalog, name)));
    CHECK(flops / 3 / 2 / 1e9 == Approx(billions).epsilon(0.002));
  }
}

TEST_CASE("a sample of Wan takes the FLOPs of Megatron-Bridge's estimate") {
  // NVIDIA-NeMo/Megatron-Bridge @067f987, diffusion/models/wan/wan_provider.py: 3 forward passes of its transformer.
  const Catalog catalog;
  const std::map<std::string, std::array<double, 3>> sizes{{"wan2.1-1.3b", {1'536, 8'960, 30}},
                                                           {"wan2.1-14b", {5'120, 13'824, 40}}};
  const double queries = 32'760, text = 512;
  for (const auto& [name, size] : sizes) {
    const auto [hidden, ffn, layers] = size;
    const double self = 8 * queries * hidden * hidden + 4 * queries * queries * hidden,
                 cross = 4 * queries * hidden * hidden + 4 * text * hidden * hidden + 4 * queries * text * hidden,
                 mlp = 4 * queries * hidden * ffn;
    const auto flops = static_cast<double>(core::workload::model_flops_per_sequence(catalog_model(catalog, name)));
    CHECK(flops == Approx(3 * layers * (self + cross + mlp)).epsilon(0.001));
  }
}

// Fitting: constants with which steps were made come back from them.
#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/analysis/fit.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::fitting;

namespace {

/// GPT shapes on one GPU to eight, wide and narrow, so that different constants matter.
std::vector<FitRow> rows() {
  std::vector<FitRow> result;
  for (const std::int64_t hidden : {512, 2'048, 8'192})
    for (const std::int64_t micro_batch : {1, 4})
      for (const std::int64_t tp : {1, 8}) {
        FitRow row;
        auto& configuration = row.configuration;
        configuration.model.layers = 8;
        configuration.model.hidden = hidden;
        configuration.model.heads = 16;
        configuration.model.vocabulary = 51'200;
        configuration.model.sequence = 1'024;
        configuration.gpu.matrix_tflops = 312;
        configuration.gpu.memory_gb_per_s = 2'039;
        configuration.gpu.compute_units = 108;
        configuration.gpu.clock_ghz = 1.41;
        configuration.strategy.tp = tp;
        configuration.strategy.micro_batch = micro_batch;
        configuration.strategy.global_batch = 8 * micro_batch;
        row.links = {{2'400'000'000'000, 1'000'000}, {200'000'000'000, 4'000'000}};
        row.gpu = "example";
        row.stack = "stack";
        result.push_back(row);
      }
  return result;
}

}  // namespace

TEST_CASE("constants come back from the steps that were made with them") {
  const std::vector<Constant> truth{
      {"example", "gemm_efficiency", 0.7}, {"example", "memory_efficiency", 0.95}, {"stack", "host_kernel_us", 30}};
  std::vector<FitRow> result = rows();
  for (FitRow& row : result) row.measured_s = predict_s(row, truth);
  std::vector<Constant> start = truth;
  start[0].value = 0.9, start[1].value = 0.6, start[2].value = 12;
  const auto found = fit(result, start);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    INFO(found[i].key);
    CHECK(found[i].value == Approx(truth[i].value).epsilon(0.02));  // general values pull a little
  }
}

TEST_CASE("one row far off moves a fit little") {
  const std::vector<Constant> truth{{"example", "gemm_efficiency", 0.7}, {"example", "memory_efficiency", 0.95}};
  std::vector<FitRow> result = rows();
  for (FitRow& row : result) row.measured_s = predict_s(row, truth);
  result[3].measured_s *= 2;
  for (const Constant& one : fit(result, truth))
    CHECK(std::abs(std::log(one.value / (one.key == "gemm_efficiency" ? 0.7 : 0.95))) < 0.06);
}

TEST_CASE("a constant that no row depends on stays at its general value") {
  std::vector<FitRow> result = rows();
  const std::vector<Constant> start{{"example", "gemm_efficiency", 0.8}, {"example", "fp8_gemm_efficiency", 0.3}};
  for (FitRow& row : result) row.measured_s = predict_s(row, start);
  CHECK(fit(result, start)[1].value == Approx(core::compute::Gpu{}.gemm.at(1).efficiency).epsilon(1e-3));
}

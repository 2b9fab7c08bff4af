// The compiled tables of measured shapes: how they are read, which GPU has which, and how a user turns them off.
#include "experiments/key_contents/measured_shapes.hpp"

#include <catch2/catch.hpp>

#include "core/compute/measured.hpp"
#include "core/step/compile/step_summary.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/analysis/guesses.hpp"
#include "experiments/catalog/catalog.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using core::compute::GemmShapes;
using core::compute::TimeBasis;
using testing::error_of;
using testing::kSingle;
using testing::mutated;
using testing::with;

namespace {

const std::string kTable = "format,n,k,256,512\nbf16,1024,4096,97,103\nfp8,1024,4096,,110\n";

std::string error_in(const std::string& text) {
  try {
    parse_shapes(text, "t.csv");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

core::compute::Gpu gpu_of_single(const std::vector<std::string>& overrides) {
  return testing::read(with(kSingle, "a100_40", "h100_sxm"), overrides).experiments.front().config().configuration.gpu;
}

}  // namespace

TEST_CASE("a table of shapes has the percentages of its lines and columns") {
  const core::compute::MeasuredShapes shapes = parse_shapes(kTable, "t.csv");
  CHECK(shapes.gemm[0]->at(512, 1'024, 4'096).ratio == 1.03);
  CHECK(shapes.gemm[1]->at(512, 1'024, 4'096).ratio == 1.1);
  CHECK(shapes.gemm[1]->at(640, 1'024, 4'096).basis == TimeBasis::interpolated);
  CHECK(shapes.gemm[1]->at(256, 1'024, 4'096).basis == TimeBasis::modelled);  // the one shape is farther than the model
  CHECK(!shapes.gemm[2]);
}

TEST_CASE("a table of shapes that is none is refused with its line") {
  CHECK(error_in("format,k,n,256\n").find("t.csv:1") == 0);
  CHECK(error_in("format,n,k,256\nint8,1,1,9\n") == "t.csv:2: 'int8' is none of bf16, fp8 and nvfp4");
  CHECK(error_in("format,n,k,256\nbf16,1,x,9\n") == "t.csv:2: 'x' is no whole number from 1 to 16777216");
  CHECK(error_in("format,n,k,256\nbf16,1,1,0\n") == "t.csv:2: '0' is no whole number from 1 to 10000");
  CHECK(error_in("format,n,k,256\nbf16,1,1,9,9\n") == "t.csv:2: has more than 1 times");
  std::mt19937_64 random(3);
  for (int i = 0; i < 2'000; ++i) {
    const std::string bent = mutated(kTable, random);
    CAPTURE(bent);
    const std::string error = error_in(bent);
    CHECK((error == "(no error)" || error.find("t.csv:") == 0));
  }
}

TEST_CASE("each compiled table is that of the GPU of its name, and no ratio is absurd") {
  const Catalog catalog;
  std::size_t gpus = 0;
  for (const ShapesFile& file : compiled_shapes()) {
    CAPTURE(file.name);
    const auto& values = catalog.entries("gpus").at(file.name).values;
    CHECK(std::get<std::string>(values.at("measured_shapes").value) == file.name);
    const core::compute::MeasuredShapes shapes = parse_shapes(file.text, file.name);
    REQUIRE(shapes.gemm[0]);
    // A large square GEMM, of which the model is most certain.
    CHECK(std::abs(shapes.gemm[0]->at(8'192, 8'192, 8'192).ratio - 1) < 0.25);
    ++gpus;
  }
  CHECK(gpus >= 6);
  for (const auto& [name, gpu] : catalog.entries("gpus")) {
    const auto table = gpu.values.find("measured_shapes");
    CHECK((table == gpu.values.end() || std::get<std::string>(table->second.value) == name));
  }
}

TEST_CASE("a GPU has its table unless the user wants none") {
  const core::compute::Gpu plain = gpu_of_single({}), none = gpu_of_single({"cluster.gpu.measured_shapes=none"});
  REQUIRE(plain.shapes);
  CHECK(!none.shapes);
  const core::compute::Kernel kernel = core::compute::gemm("g", 4'096, 4'096, 4'096);
  CHECK(kernel_cost(kernel, plain).basis == TimeBasis::measured);
  CHECK(kernel_cost(kernel, none).ps == modelled_time(kernel, plain));
  CHECK(error_of(kSingle, {"cluster.gpu.measured_shapes=h100"}).find("h100_sxm") != std::string::npos);
}

TEST_CASE("a fit of constants sees the measured shapes that answers see") {
  const ExperimentConfig config = testing::read(with(kSingle, "a100_40", "h100_sxm")).experiments.front().config();
  REQUIRE(config.configuration.gpu.shapes);
  const fitting::FitRow row{config.configuration, fitting::links_of(config), "h100_sxm", "", 1, 1};
  CHECK(fitting::predict_s(row, {}) == fitting::closed_form_s(config));
  CHECK(fitting::predict_s(row, {{"h100_sxm", "launch_us", 50}}) > fitting::closed_form_s(config));
}

TEST_CASE("the digest of a table is part of every comparison and key of its GPU") {
  const auto identity = [](const core::compute::Gpu& gpu) {
    return std::get<std::string>(core::compute::gpu_options().read(gpu).at("measured_shapes"));
  };
  const core::compute::Gpu plain = gpu_of_single({});
  CHECK(identity(plain).starts_with("h100_sxm "));
  CHECK(identity(plain).size() > std::string("h100_sxm ").size() + 16);
  CHECK(identity(gpu_of_single({"cluster.gpu.measured_shapes=none"})) == "none");
  core::step::Configuration with_table, without;
  for (auto* configuration : {&with_table, &without}) {
    *configuration = testing::read(with(kSingle, "a100_40", "h100_sxm")).experiments.front().config().configuration;
  }
  without.gpu.shapes = nullptr, without.gpu.measured_shapes = "none";
  CHECK(core::step::operations_key(with_table) != core::step::operations_key(without));
}

TEST_CASE("rates of kernels are guesses by the catalog's word, or if nobody gave them") {
  const Catalog catalog;
  const auto guessed = [&](const std::string& gpu, const std::vector<std::string>& overrides, std::string_view option) {
    const Sweep sweep = testing::read(with(kSingle, "a100_40", gpu), overrides);
    const auto kinds = guessed_kinds(sweep.experiments.front().settings, catalog);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      if (core::compute::kRateOptions.at(kind) == option) return kinds.at(kind);
    throw std::logic_error("no such kind");
  };
  CHECK(!guessed("h100_sxm", {}, "gemm_efficiency"));
  CHECK(guessed("h100_sxm", {}, "flash_forward_efficiency"));
  CHECK(!guessed("h100_sxm", {"cluster.gpu.flash_forward_efficiency=0.28"}, "flash_forward_efficiency"));
  CHECK(guessed("metax_c500", {"cluster.gpu.scale_up_gb_per_s=100"}, "gemm_efficiency"));
  const std::string own =
      "{matrix_tflops: 500, memory_gib: 80, memory_gb_per_s: 2000, compute_units: 100, "
      "scale_up_gb_per_s: 300, gemm_efficiency: 0.8}";
  CHECK(!guessed(own, {}, "gemm_efficiency"));
  CHECK(guessed(own, {}, "cudnn_forward_efficiency"));
}

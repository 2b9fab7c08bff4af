// `manyworlds calibrate`: constants with which times were predicted come back from these, as a catalog that predicts
// them.
#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/analysis/fit.hpp"
#include "experiments/measured_collectives/published_tables.hpp"
#include "experiments/settings/settings.hpp"
#include "farm/calibration/calibrated_catalog.hpp"
#include "farm/calibration/calibrated_kernels.hpp"
#include "farm/calibration/calibrated_library.hpp"
#include "farm/calibration/calibrated_steps.hpp"
#include "farm/validation/predicted_collectives.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using experiments::import::KernelSample;
using experiments::measured::MeasuredCollective;

namespace {

/// The truth from which times are predicted: 0 for what is as in the catalog.
using Truth = std::vector<CalibratedConstant>;

const CalibratedConstant* find(const CalibratedPart& part, const std::string& key) {
  for (const CalibratedConstant& one : part.fitted)
    if (one.key == key) return &one;
  return nullptr;
}

core::compute::Gpu h100() {
  static const experiments::Catalog catalog;
  return gpu_of(catalog.entries("gpus").at("h100_sxm"));
}

/// Kernels of many sizes with the times that the model has for this truth, and an error of `noise` up and down by
/// pairs.
std::vector<KernelSample> kernels(const Truth& truth, double noise = 0) {
  const core::compute::Gpu gpu = with_constants(h100(), truth);
  std::vector<KernelSample> samples;
  const auto add = [&](const core::compute::Kernel& kernel) {
    KernelSample& sample = samples.emplace_back();
    sample.id = "kernels.csv:" + std::to_string(samples.size());
    sample.kernel = kernel;
    sample.kind = experiments::import::sample_kind(kernel);
    sample.measured_us = predicted_us(sample, gpu) * (1 + (samples.size() / 2 % 2 == 0 ? noise : -noise));
  };
  for (const std::int64_t m : {256, 1'024, 4'096, 16'384})
    for (const std::int64_t n : {64, 1'024, 4'096, 8'192}) add(core::compute::gemm("", m, n, 4'096));
  for (std::int64_t mib = 1; mib <= 1'024; mib *= 2) add(core::compute::memory_bound("", mib << 20));
  for (const std::int64_t tokens : {1'024, 2'048, 4'096, 8'192}) {
    const core::compute::AttentionShape shape{tokens, tokens, tokens * tokens / 2, 128, 128, 64, 64, 0, true};
    for (const auto kind : {core::compute::KernelClass::cudnn_forward, core::compute::KernelClass::cudnn_backward})
      add(core::compute::fused_attention("", kind, shape));
  }
  return samples;
}

const std::string kRows = "id,gpu,op,ranks,nodes,bytes,time_us,inter_bw_GBps_per_gpu\n";

/// Collectives on eight GPUs, or on several nodes of eight, with the times that are simulated for this truth.
std::vector<MeasuredCollective> collectives(const Truth& truth, int nodes = 1) {
  std::string text = kRows;
  for (const char* op : {"all_reduce", "all_gather", "all_to_all"})
    for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 28; bytes *= 4)
      text += fmt::format("{}_{},h100_sxm,{},{},{},{},1,50\n", op, bytes, op, 8 * nodes, nodes, bytes);
  static const experiments::Catalog catalog;
  auto rows =
      experiments::measured::read_collectives(experiments::measured::parse_measurements(text, "c.csv"), catalog);
  experiments::GraphCache graphs;
  for (MeasuredCollective& row : rows) {
    MeasuredCollective there = row;
    for (const CalibratedConstant& one : truth) there.settings["cluster.gpu." + one.key] = one.after;
    row.measured_us = predict(there, graphs).predicted_us.value();
  }
  return rows;
}

}  // namespace

TEST_CASE("the constants of kernels come back from their times, and those of no kernel stay") {
  const Truth truth{{"gemm_efficiency", 0, 0.7},
                    {"memory_efficiency", 0, 0.8},
                    {"cudnn_backward_efficiency", 0, 0.4},
                    {"launch_us", 0, 5}};
  const CalibratedPart part = calibrate_kernels(kernels(truth), h100());
  CHECK(part.taken);
  for (const CalibratedConstant& one : truth) {
    INFO(one.key);
    REQUIRE(find(part, one.key) != nullptr);
    CHECK(find(part, one.key)->after == Approx(one.after).epsilon(0.005));
    CHECK(find(part, one.key)->relative_error < 0.02);
  }
  CHECK(find(part, "cudnn_forward_efficiency") == nullptr);
  CHECK(std::find(part.kept.begin(), part.kept.end(), "cudnn_forward_efficiency") != part.kept.end());
  CHECK(errors_of(part, "", Prediction::before).mean > 0.05);
  CHECK(errors_of(part, "", Prediction::after).mean < 0.002);
  CHECK(errors_of(part, "", Prediction::left_out).mean < 0.01);
}

TEST_CASE("times that the catalog predicts already, but for noise, change nothing") {
  const CalibratedPart part = calibrate_kernels(kernels({}, 0.03), h100());
  CHECK(part.changes().empty());
  for (const CalibratedRow& row : part.rows) CHECK(row.before == row.after);
}

TEST_CASE("an efficiency does not exceed 1, and that it wants to is told") {
  std::vector<KernelSample> samples = kernels({});
  for (KernelSample& sample : samples)
    if (sample.kind == "memory-bound") sample.measured_us *= 0.7;
  CalibratedMachine machine{"mine", "h100_sxm", calibrate_kernels(samples, h100()), {}, {}, {}};
  REQUIRE(find(machine.kernels, "memory_efficiency") != nullptr);
  CHECK(find(machine.kernels, "memory_efficiency")->after == 1);
  CHECK(find(machine.kernels, "memory_efficiency")->at_limit);
  CHECK_THAT(calibration_text(machine), Catch::Contains("at the limit of its range"));
}

TEST_CASE("the constants of a library come back from simulated collectives in a node") {
  const Truth truth{{"library_link_share", 0, 0.6}, {"library_exchange_launch_us", 0, 15}};
  const CalibratedPart part = calibrate_library(collectives(truth));
  CHECK(part.taken);
  for (const CalibratedConstant& one : truth) {
    INFO(one.key);
    REQUIRE(find(part, one.key) != nullptr);
    CHECK(find(part, one.key)->after == Approx(one.after).epsilon(0.06));
  }
  CHECK(errors_of(part, "", Prediction::before).mean > 0.08);
  CHECK(errors_of(part, "", Prediction::after).mean < 0.02);
  CHECK(errors_of(part, "", Prediction::left_out).mean < errors_of(part, "", Prediction::before).mean / 2);
  CHECK(std::find(part.kept.begin(), part.kept.end(), "library_nic_share") != part.kept.end());
}

TEST_CASE("the share of the NICs comes back from simulated collectives over nodes") {
  const CalibratedPart part = calibrate_library(collectives({{"library_nic_share", 0, 0.6}}, 4));
  REQUIRE(find(part, "library_nic_share") != nullptr);
  CHECK(find(part, "library_nic_share")->after == Approx(0.6).epsilon(0.05));
  CHECK(errors_of(part, "", Prediction::after).mean < errors_of(part, "", Prediction::before).mean / 4);
}

TEST_CASE("the catalog file of a machine is read back with its constants, and predicts as they do") {
  const experiments::Catalog catalog;
  CalibratedMachine machine{"mine", "h100_sxm", {}, {}, {}, {}};
  machine.files.collectives = collectives({{"library_link_share", 0, 0.6}});
  machine.files.collective_files = {"nccl \"1\".log"};
  machine.files.kernels = kernels({{"gemm_efficiency", 0, 0.7}});
  machine.files.kernel_files = {"kernels.csv"};
  machine.kernels = calibrate_kernels(machine.files.kernels, h100());
  machine.collectives = calibrate_library(machine.files.collectives);
  const std::string text = catalog_file(machine, catalog);
  CHECK(text == catalog_file(machine, catalog));

  const TemporaryFolder folder;
  folder.put("mine.yaml", text);
  const experiments::Catalog with_mine((folder / "mine.yaml").string());
  const experiments::CatalogEntry& gpu = with_mine.entries("gpus").at("mine");
  const experiments::CatalogEntry& library = with_mine.entries("libraries").at("nccl-mine");
  const auto& efficiency = gpu.values.at("gemm_efficiency");
  CHECK(std::get<double>(efficiency.value) == find(machine.kernels, "gemm_efficiency")->after);
  CHECK(efficiency.certainty == "fitted");
  CHECK_THAT(efficiency.source, Catch::Contains("manyworlds calibrate") && Catch::Contains("kernels.csv"));
  CHECK_THAT(library.values.at("library_link_share").source, Catch::Contains("nccl \"1\".log"));
  for (const auto& [key, sourced] : catalog.entries("gpus").at("h100_sxm").values)
    if (find(machine.kernels, key) == nullptr) CHECK(gpu.values.at(key).value == sourced.value);

  std::string rows = kRows;
  for (const MeasuredCollective& row : machine.files.collectives)
    rows += fmt::format("{},mine,{},8,1,{},{},\n", row.id, row.op, row.bytes, row.measured_us);
  experiments::GraphCache graphs;
  const auto again =
      experiments::measured::read_collectives(experiments::measured::parse_measurements(rows, "r.csv"), with_mine);
  for (std::size_t i = 0; i < again.size(); ++i)
    CHECK(predict(again[i], graphs).predicted_us == machine.collectives.rows[i].after);
}

TEST_CASE("what steps tell comes back from closed forms that stand for their simulation") {
  const std::string header =
      "id,source,model,gpu,num_gpus,layers,hidden,heads,vocab,seq_len,tp,pp,micro_batch,global_batch,recompute,dtype,"
      "measured_step_s\n";
  std::string text = header;
  for (const int hidden : {1'024, 2'048, 4'096, 8'192})
    for (const int batch : {1, 4})
      text += fmt::format("s_{}_{},mine,GPT,h100_sxm,8,8,{},16,51200,2048,1,1,{},{},none,bf16,1\n", hidden, batch,
                          hidden, batch, 8 * batch);
  const experiments::Catalog catalog;
  auto steps =
      experiments::measured::read_training_steps(experiments::measured::parse_measurements(text, "s.csv"), catalog);
  const SimulateSteps closed = [](const auto& given) {
    Comparison comparison;
    for (const auto& step : given) {
      ComparedRow& row = comparison.rows.emplace_back();
      row.id = step.id, row.measured = step.measured_s;
      row.predicted = experiments::fitting::closed_form_s(experiments::config_of(step.experiments.front()));
    }
    return comparison;
  };
  for (const auto& step : steps) REQUIRE(step.unsupported.empty());
  const Comparison truth = closed(with_constants(steps, {{"sustained_rate", 0, 0.6}}));
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].measured_s = truth.rows[i].predicted;
  const CalibratedPart part = calibrate_steps(steps, {}, closed);
  REQUIRE(find(part, "sustained_rate") != nullptr);
  CHECK(find(part, "sustained_rate")->after == Approx(0.6).epsilon(0.005));
  CHECK(errors_of(part, "", Prediction::after).mean < 0.005);
  // What parts have told is not bent.
  const CalibratedPart told = calibrate_steps(steps, {{"sustained_rate", 0, 0.6}}, closed);
  CHECK(told.changes().empty());
  CHECK(errors_of(told, "", Prediction::before).mean > 0.05);
  CHECK(errors_of(told, "", Prediction::after).mean < 0.005);
}

// Any text as each of the tables that users give: measured kernels, traces, logs of nccl-tests, flows, loads of
// experts and lengths of documents.
#include "core/base/error.hpp"
#include "experiments/import/document_lengths.hpp"
#include "experiments/import/flows.hpp"
#include "experiments/import/measured_routing.hpp"
#include "experiments/import/schedule_file.hpp"
#include "experiments/kernels/aiob_file.hpp"
#include "experiments/kernels/kineto_trace.hpp"
#include "experiments/kernels/measured_kernels.hpp"
#include "experiments/nccl/nccl_tests.hpp"

using namespace manyworlds;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    experiments::import::parse_measured_kernels(text, "kernels.csv");
  } catch (const core::InputError&) {
  }
  core::compute::Gpu gpu;
  gpu.matrix_tflops = 1'000, gpu.memory_gb_per_s = 1'000, gpu.compute_units = 100;
  try {
    for (const auto& sample : experiments::import::read_kernel_samples(experiments::import::parse_csv(text, "k.csv")))
      if (sample.unsupported.empty() && !(predicted_us(sample, gpu) > 0)) __builtin_trap();
  } catch (const core::InputError&) {
  }
  try {
    for (const auto& sample : experiments::import::parse_kineto_trace(text, "trace.json"))
      if (sample.unsupported.empty() && !(predicted_us(sample, gpu) > 0)) __builtin_trap();
  } catch (const core::InputError&) {
  }
  try {
    for (const auto& one : experiments::import::parse_aiob(text, "aiob.txt"))
      if (!(one.us > 0)) __builtin_trap();
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_nccl_tests(text, "nccl.log");
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_flows(text, "flows.csv", 64);
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_measured_routing(text, "routing.csv");
  } catch (const core::InputError&) {
  }
  try {
    for (const auto& [tokens, documents] : experiments::import::parse_document_lengths(text, "documents.csv"))
      if (tokens < 1 || documents < 1) __builtin_trap();
  } catch (const core::InputError&) {
  }
  try {
    experiments::import::parse_schedule(text, "schedule.csv");
  } catch (const core::InputError&) {
  }
  return 0;
}

// Single kernels with measured times, from which the constants of a GPU's kernels follow: rows of a table of measured
// kernels (script/measure_kernels.py writes one), or of GEMMs as ai-dynamo/aiconfigurator measures them.
#pragma once

#include <string>
#include <vector>

#include "core/compute/gemm.hpp"
#include "core/compute/kernel.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::import {

struct KernelSample {
  std::string id, kind;  // kind: "GEMM bf16", "memory-bound", "cudnn_forward bf16", …
  int line = 0;          // line in the file; 0: it has no lines
  std::string device;    // as printed; may be empty
  core::compute::Kernel kernel;
  double measured_us = 0;
  core::compute::PowerState power = core::compute::PowerState::burst;
  bool with_launch = true;  // whether the time contains the launches
  std::string unsupported;  // why it cannot be predicted; empty if it can
  std::string detail;       // of that reason
};

/// Returns whether a header is that of a table of measured kernels (docs/formats.md).
bool is_measured_kernels_table(const CsvHeader& header);

/// Returns a sample for each row, in order. Errors of a row are stored in `unsupported`.
std::vector<KernelSample> read_kernel_samples(const CsvTable& table);

/// Returns the sample of one row of a table of measured kernels.
KernelSample read_kernel_sample(const CsvRow& row);

/// Returns the kind of a kernel.
std::string sample_kind(const core::compute::Kernel& kernel);

/// Returns the time of a sample that is supported by the model of kernels, in microseconds.
double predicted_us(const KernelSample& sample, const core::compute::Gpu& gpu);

}  // namespace manyworlds::experiments::import

// Measured kernels: each row of a table becomes the kernels that ran, or a reason why they are not modelled. Tables are
// read as their sources publish them (aiconfigurator, NeuSight, SimuMax as script/select_kernels.py writes it);
// experiments/measured/README.md describes what their operators contain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compute/attention.hpp"
#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct MeasuredKernel {
  std::string id, family;  // kind of kernel, number format and GPU, with the range of the time
  int line = 0;            // line in the file
  double measured_us = 0;
  std::string gpu;          // name in the catalog
  std::string unsupported;  // why it cannot be predicted; empty if it can
  std::string detail;       // of that reason, for this row
  double predicted_us = 0;  // if it can be predicted
  /// Of a dense GEMM as benchmarks run it: its shape, its number format, and what of the prediction is besides it.
  std::int64_t m = 0, n = 0, k = 0;
  core::compute::GemmFormat format = core::compute::GemmFormat::bf16;
  double beside_us = 0;
};

/// Statistics separate kernels that are shorter than this: launches and other fixed times dominate them.
inline constexpr double kLongKernelUs = 50, kLongMemoryBoundUs = 20;
/// SimuMax's times of forward attention have a floor of some 50 us, gaps between kernels.
inline constexpr double kLongTracedUs = 200;

/// Returns whether a header has the columns of such a table.
bool is_kernels_table(const import::CsvHeader& header);

/// Whose constants predict a kernel: those of its GPU, or, as if nobody had measured that, those of its relatives.
enum class KernelConstants : std::uint8_t { own, of_relatives };

/// Returns all rows in order, with their predictions. Errors of a row are stored in `unsupported`.
std::vector<MeasuredKernel> read_kernels(const import::CsvTable& table, const Catalog& catalog,
                                         KernelConstants constants = KernelConstants::own);

/// Returns the GEMMs among `rows` that the GPU's table of measured shapes has or surrounds, each by the model alone and
/// as if the table lacked its shape, every shape of its m, or every shape of its n.
std::vector<MeasuredKernel> left_out_shapes(const std::vector<MeasuredKernel>& rows, const Catalog& catalog);

}  // namespace manyworlds::experiments::measured

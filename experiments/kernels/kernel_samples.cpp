#include "experiments/kernels/kernel_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/compute/attention.hpp"
#include "core/compute/gemm_shapes.hpp"
#include "core/compute/measured.hpp"
#include "core/compute/scan_classes.hpp"
#include "experiments/text/unsupported_row.hpp"

namespace manyworlds::experiments::import {
namespace {

using namespace core::compute;

constexpr const char* kName = "measured";
constexpr double kPsPerUs = static_cast<double>(core::kMicrosecond);
constexpr std::int64_t kMaxSize = std::int64_t{1} << 32;
constexpr double kMaxOperations = 1e17;  // no GPU ends so much, and products of sizes have 63 bits
constexpr double kCausalMargin = 0.02;

bool is_backward(KernelClass kernel_class) {
  return kernel_class == KernelClass::flash_backward || kernel_class == KernelClass::flash2_backward ||
         kernel_class == KernelClass::cudnn_backward;
}

std::int64_t size(const CsvRow& row, const char* column, std::optional<std::int64_t> if_empty = std::nullopt) {
  const auto value = row.integer(column);
  if (!value && if_empty) return *if_empty;
  if (!value || *value < 1 || *value > kMaxSize)
    throw UnsupportedRow{fmt::format("{} is no size from 1 to {}", column, kMaxSize), std::string(row.text(column))};
  return *value;
}

void check_work(std::initializer_list<std::int64_t> sizes) {
  double operations = 1;
  for (const std::int64_t one : sizes) operations *= static_cast<double>(one);
  if (operations > kMaxOperations)
    throw UnsupportedRow{"its operations are too many",
                         fmt::format("{:.3g}, at most {:.3g}", operations, kMaxOperations)};
}

template <class Enum, std::size_t count>
Enum enumerator(const CsvRow& row, const char* column, const std::array<std::string_view, count>& names) {
  const auto found = std::find(names.begin(), names.end(), row.text(column));
  if (found == names.end())
    throw UnsupportedRow{fmt::format("its {} is unknown", column), std::string(row.text(column))};
  return static_cast<Enum>(found - names.begin());
}

Kernel gemm_of(const CsvRow& row, Dtype dtype) {
  if (dtype == Dtype::fp32) throw UnsupportedRow{"GEMMs of fp32 are not modelled", ""};
  const std::int64_t m = size(row, "m"), n = size(row, "n"), k = size(row, "k"), batch = size(row, "batch", 1);
  check_work({8, m, n, k, batch});
  check_work({8, batch, m + n, k});
  if (batch > 1 && dtype != Dtype::bf16) throw UnsupportedRow{"batches of GEMMs below 16 bits are not modelled", ""};
  Kernel kernel = batch > 1 ? batched_gemm(kName, m, n, k, batch) : gemm(kName, m, n, k, dtype);
  const auto bytes = row.integer("bytes");
  if (!bytes) return kernel;
  const Kernel gradient = weight_gradient(kName, m, n, k, dtype);
  if (batch == 1 && *bytes == gradient.bytes) return gradient;
  kernel.bytes = size(row, "bytes");
  return kernel;
}

/// The mask follows from the FLOPs, the heads of keys from the bytes; values are as wide as keys.
Kernel attention_of(const CsvRow& row, KernelClass kernel_class, Dtype dtype) {
  AttentionShape shape;
  shape.queries = size(row, "m"), shape.keys = size(row, "n"), shape.batch = size(row, "batch", 1);
  shape.width = shape.value_width = size(row, "k");
  check_work({20, shape.batch, shape.queries, shape.keys, shape.width});
  const auto flops = row.integer("flops"), bytes = row.integer("bytes");
  if (!flops || !bytes) throw UnsupportedRow{"attention needs flops and bytes, which tell its mask and heads", ""};
  const std::int64_t products = is_backward(kernel_class) ? 10 : 4;
  shape.pairs = *flops / (products * shape.batch * shape.width);
  const double all = static_cast<double>(shape.queries) * static_cast<double>(shape.keys);
  const double share = static_cast<double>(shape.pairs) / all;
  shape.cut_by_mask = share < 1 - kCausalMargin;
  if (share > 1 + kCausalMargin || (shape.cut_by_mask && std::abs(share - 0.5) > kCausalMargin))
    throw UnsupportedRow{"its FLOPs are those of neither all pairs of queries and keys nor a causal half",
                         fmt::format("{:.3g} of them", share)};
  shape.key_batch = shape.batch;
  const std::int64_t whole = fused_attention(kName, kernel_class, shape, dtype).bytes;
  const std::int64_t of_queries = shape.batch * shape.queries, of_keys = shape.batch * shape.keys;
  const double keys =
      static_cast<double>(*bytes) / static_cast<double>(whole) * static_cast<double>(of_queries + of_keys) -
      static_cast<double>(of_queries);
  shape.key_batch = static_cast<std::int64_t>(std::llround(keys / static_cast<double>(shape.keys)));
  if (shape.key_batch < 1 || shape.key_batch > shape.batch || shape.batch % shape.key_batch != 0)
    throw UnsupportedRow{"its bytes are not those of queries, outputs, and keys and values that heads share evenly",
                         fmt::format("{} B", *bytes)};
  return fused_attention(kName, kernel_class, shape, dtype);
}

/// A kernel of a scan, which its bytes, FLOPs and chunks in turn describe.
Kernel scan_of(const CsvRow& row, KernelClass kernel_class) {
  const auto number = [&](const char* column) {
    const auto value = row.integer(column);
    if (!value || *value < 0 || static_cast<double>(*value) > kMaxOperations)
      throw UnsupportedRow{fmt::format("{} of a scan is no number from 0 to {:g}", column, kMaxOperations),
                           std::string(row.text(column))};
    return *value;
  };
  const std::int64_t chunks = row.integer("m").value_or(0);
  if (chunks < 0 || chunks > kMaxSize)
    throw UnsupportedRow{fmt::format("m is no number of chunks from 0 to {}", kMaxSize), std::string(row.text("m"))};
  return chunked_scan(kName, kernel_class, number("bytes"), number("flops"), chunks);
}

Kernel kernel_of(const CsvRow& row) {
  if (row.text("level") != "kernel")
    throw UnsupportedRow{"only kernels tell the constants of kernels", std::string(row.text("level"))};
  const auto kernel_class = enumerator<KernelClass>(row, "kind", kKernelClassNames);
  const auto dtype = enumerator<Dtype>(row, "dtype", kDtypeNames);
  if (kernel_class == KernelClass::memory_bound) {
    const std::int64_t bytes = size(row, "bytes");
    return memory_bound(kName, bytes, dtype);
  }
  if (is_scan(kernel_class)) return scan_of(row, kernel_class);
  return kernel_class == KernelClass::gemm ? gemm_of(row, dtype) : attention_of(row, kernel_class, dtype);
}

double time_of(const CsvRow& row, const char* column, double us) {
  const auto time = row.real(column);
  if (!time || !(*time > 0) || !std::isfinite(*time * us))
    throw UnsupportedRow{"its time is not above 0", std::string(row.text(column))};
  return *time * us;
}

/// Calls `fill` on a new sample of the row; what it throws becomes the reason why the row is not supported.
template <class Fill>
KernelSample sample_of(const CsvRow& row, Fill&& fill) {
  KernelSample sample;
  sample.id = fmt::format("{}:{}", row.header().file, row.line());
  sample.line = row.line();
  sample.device = row.text("device");
  read_supported(sample, [&] {
    fill(sample);
    sample.kind = sample_kind(sample.kernel);
  });
  return sample;
}

/// A row of aiconfigurator's GEMMs. Below 16 bits its operator quantises as well.
KernelSample read_gemm_row(const CsvRow& row) {
  return sample_of(row, [&](KernelSample& sample) {
    if (row.text("gemm_dtype") != "bfloat16")
      throw UnsupportedRow{"its operator is more than one kernel", std::string(row.text("gemm_dtype"))};
    sample.kernel = gemm_of(row, Dtype::bf16);
    sample.measured_us = time_of(row, "latency", 1e3);
  });
}

}  // namespace

std::string sample_kind(const Kernel& kernel) {
  const std::string_view dtype = kDtypeNames.at(static_cast<std::size_t>(kernel.dtype));
  if (kernel.kernel_class == KernelClass::memory_bound) return "memory-bound";
  if (kernel.kernel_class == KernelClass::gemm) return fmt::format("GEMM {}", dtype);
  return fmt::format("{} {}", kKernelClassNames.at(static_cast<std::size_t>(kernel.kernel_class)), dtype);
}

bool is_measured_kernels_table(const CsvHeader& header) {
  constexpr const char* kColumns[] = {"level", "kind", "dtype", "time_us"};
  return std::all_of(std::begin(kColumns), std::end(kColumns), [&](const char* name) { return header.has(name); });
}

KernelSample read_kernel_sample(const CsvRow& row) {
  return sample_of(row, [&](KernelSample& sample) {
    sample.kernel = kernel_of(row);
    sample.measured_us = time_of(row, "time_us", 1);
  });
}

std::vector<KernelSample> read_kernel_samples(const CsvTable& table) {
  const bool ours = is_measured_kernels_table(*table.header);
  std::vector<KernelSample> samples;
  for (const CsvRow& row : table.rows) samples.push_back(ours ? read_kernel_sample(row) : read_gemm_row(row));
  return samples;
}

double predicted_us(const KernelSample& sample, const Gpu& gpu) {
  const Kernel& kernel = sample.kernel;
  if (kernel.kernel_class == KernelClass::gemm)
    return shape_correction(kernel, gpu).ratio * gemm_ps(kernel, gemm_rates(kernel.dtype, gpu), gpu, sample.power) /
               kPsPerUs +
           (sample.with_launch ? gpu.launch_us : 0);
  const int launches = is_backward(kernel.kernel_class) ? kAttentionBackwardLaunches : 1;
  return static_cast<double>(modelled_time(kernel, gpu)) / kPsPerUs -
         (sample.with_launch ? 0 : launches * gpu.launch_us);
}

}  // namespace manyworlds::experiments::import

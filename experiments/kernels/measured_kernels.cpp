// Reads and writes tables of measured kernels with one list of columns.
#include "experiments/kernels/measured_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/escape.hpp"
#include "core/compute/scan_classes.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::import {
namespace {

using namespace core::compute;
using core::InputError;

constexpr std::array<const char*, 13> kColumns{"level", "name",  "pass",  "kind",  "dtype",   "m",     "n",
                                               "k",     "batch", "bytes", "flops", "time_us", "source"};
constexpr const char* kDevice = "device";  // the GPU's name, which tables of measurements have; not written
constexpr std::array<const char*, 5> kRequiredColumns{"level", "name", "kind", "dtype", "time_us"};
constexpr std::int64_t kMaxSize = std::int64_t{1} << 53;
constexpr double kMaxTimeUs = 1e9;

void check_columns(const CsvHeader& header) {
  for (const std::string& name : header.names)
    if (name != kDevice && std::find(kColumns.begin(), kColumns.end(), name) == kColumns.end())
      throw InputError(fmt::format("unknown column '{}'{}", name, suggestion(name, {kColumns.begin(), kColumns.end()})),
                       header.file, 1);
  for (const char* name : kRequiredColumns)
    if (!header.has(name))
      throw InputError(
          fmt::format("a table of measured kernels needs the columns {}, and the sizes that its rows need; "
                      "'{}' is missing",
                      fmt::join(kRequiredColumns, ", "), name),
          header.file, 1);
}

/// Returns the enumerator whose name is in `column`. Names before index `first` are not accepted.
template <class Enum, std::size_t count>
Enum enumerator(const CsvRow& row, const char* column, const std::array<std::string_view, count>& names,
                std::size_t first = 0) {
  const std::string_view given = row.text(column);
  for (std::size_t i = first; i < count; ++i)
    if (names[i] == given) return static_cast<Enum>(i);
  row.fail(fmt::format("{} must be one of {}, not '{}'", column, fmt::join(names.begin() + first, names.end(), ", "),
                       given));
}

/// Returns a size of at least `minimum`. For an empty field returns `fallback`, or fails if `needed_by` names what
/// needs the size.
std::int64_t size(const CsvRow& row, const char* column, std::int64_t minimum, std::int64_t default_value,
                  const char* needed_by = nullptr) {
  const auto given = row.integer(column);
  if (!given && needed_by) row.fail(fmt::format("{} needs {}", needed_by, column));
  if (!given) return default_value;
  if (*given < minimum || *given > kMaxSize)
    row.fail(fmt::format("{} must be from {} to {}, not {}", column, minimum, kMaxSize, *given));
  return *given;
}

void require_empty(const CsvRow& row, const char* column, const char* reason) {
  if (size(row, column, 0, 0) != 0) row.fail(fmt::format("{} must be empty or 0: {}", column, reason));
}

/// Reads what a kernel is known by that has no shape: bytes; of a scan FLOPs, and in m its chunks that wait for each
/// other, besides.
void read_without_shape(const CsvRow& row, MeasurementKey& item) {
  const bool scans = is_scan(item.kernel_class);
  const char* reason = scans ? "kernels of scans are known by their bytes, FLOPs and, in m, chunks in turn"
                             : "memory-bound kernels are known by their bytes";
  if (scans) item.m = size(row, "m", 0, 0);
  for (const char* column : {"m", "n", "k", "batch"})
    if (!scans || column != std::string_view("m")) require_empty(row, column, reason);
  item.bytes = size(row, "bytes", 0, 0, scans ? "a kernel of a scan" : "a memory_bound kernel");
  item.flops = size(row, "flops", 0, 0, scans ? "a kernel of a scan" : nullptr);
}

MeasurementKey read_item(const CsvRow& row) {
  MeasurementKey item;
  item.level = enumerator<CostLevel>(row, "level", kCostLevelNames, 1);
  item.name = row.text("name");
  item.kernel_class = enumerator<KernelClass>(row, "kind", kKernelClassNames);
  item.dtype = enumerator<Dtype>(row, "dtype", kDtypeNames);
  const bool is_kernel = item.level == CostLevel::kernel,
             has_no_shape = is_kernel && (item.kernel_class == KernelClass::memory_bound || is_scan(item.kernel_class));
  if (is_kernel && row.given("pass"))
    row.fail("pass must be empty: a kernel is known by its shape, in whichever pass it runs");
  if (!is_kernel) item.direction = enumerator<Direction>(row, "pass", kDirectionNames, 1);
  if (!is_kernel && item.name.empty()) row.fail("a submodule or a layer needs a name");
  if (has_no_shape) {
    read_without_shape(row, item);
    return item;
  }
  const char* required_for =
      is_kernel ? "a GEMM or fused attention"
                : "a submodule or a layer (m tokens of a micro-batch, n of a sample, k hidden size, batch samples)";
  item.m = size(row, "m", 1, 0, required_for);
  item.n = size(row, "n", 1, 0, required_for);
  item.k = size(row, "k", 1, 0, required_for);
  item.batch = size(row, "batch", 1, 1);
  item.bytes = size(row, "bytes", 0, MeasurementKey::kAny);
  item.flops = size(row, "flops", 0, MeasurementKey::kAny);
  return item;
}

core::Time read_time(const CsvRow& row) {
  const auto us = row.real("time_us");
  if (!us) row.fail("time_us is missing; a row without a time says nothing");
  if (*us < 1e-6 || *us > kMaxTimeUs)
    row.fail(fmt::format("time_us must be from 0.000001 to {}, not {}", kMaxTimeUs, row.text("time_us")));
  return core::round_half_up(*us * static_cast<double>(core::kMicrosecond));
}

std::string size_text(std::int64_t size) {
  return size == MeasurementKey::kAny ? "" : fmt::format("{}", size);
}

}  // namespace

MeasuredTimes parse_measured_kernels(std::string_view text, const std::string& name) {
  const CsvTable table = parse_csv(text, name);
  check_columns(*table.header);
  MeasuredTimes times;
  for (const CsvRow& row : table.rows) {
    const MeasurementKey item = read_item(row);
    const core::Time time_ps = read_time(row);
    const MeasuredTime& stored = times.add(item, {time_ps, row.line()});
    if (stored.time_ps != time_ps)
      row.fail(fmt::format("{} has another time in line {}; keep one", describe(item), stored.row));
  }
  if (times.size() == 0) throw InputError("the table has no row", name, 1);
  return times;
}

std::string measured_kernels_csv(const std::vector<KernelRow>& rows) {
  std::string text = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const auto& [item, time_ps, source] : rows)
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{}.{:06},{}\n", kCostLevelNames.at(static_cast<std::size_t>(item.level)),
        core::csv_field(item.name), kDirectionNames.at(static_cast<std::size_t>(item.direction)),
        kKernelClassNames.at(static_cast<std::size_t>(item.kernel_class)),
        kDtypeNames.at(static_cast<std::size_t>(item.dtype)), item.m, item.n, item.k, item.batch, size_text(item.bytes),
        size_text(item.flops), time_ps / core::kMicrosecond, time_ps % core::kMicrosecond, core::csv_field(source));
  return text;
}

}  // namespace manyworlds::experiments::import

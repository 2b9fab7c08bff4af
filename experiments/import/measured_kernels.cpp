// One list of columns for both directions.
#include "experiments/import/measured_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/escape.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::import {
namespace {

using namespace core::compute;
using core::InputError;

constexpr std::array<const char*, 13> kColumns{"level", "name",  "pass",  "kind",  "dtype",   "m",     "n",
                                               "k",     "batch", "bytes", "flops", "time_us", "source"};
constexpr std::array<const char*, 5> kNeeded{"level", "name", "kind", "dtype", "time_us"};
constexpr std::int64_t kMost = std::int64_t{1} << 53;
constexpr double kMostUs = 1e9;

void check_columns(const CsvHeader& header) {
  for (const std::string& name : header.names)
    if (std::find(kColumns.begin(), kColumns.end(), name) == kColumns.end())
      throw InputError(fmt::format("unknown column '{}'{}", name, suggestion(name, {kColumns.begin(), kColumns.end()})),
                       header.file, 1);
  for (const char* name : kNeeded)
    if (!header.has(name))
      throw InputError(
          fmt::format("a table of measured kernels needs the columns {}, and the sizes that its rows need; "
                      "'{}' is missing",
                      fmt::join(kNeeded, ", "), name),
          header.file, 1);
}

/// The place of a word among those that a column may have, from the one at `first` on.
template <class Enum, std::size_t count>
Enum word(const CsvRow& row, const char* column, const std::array<std::string_view, count>& words,
          std::size_t first = 0) {
  const std::string_view given = row.text(column);
  for (std::size_t i = first; i < count; ++i)
    if (words[i] == given) return static_cast<Enum>(i);
  row.fail(fmt::format("{} must be one of {}, not '{}'", column, fmt::join(words.begin() + first, words.end(), ", "),
                       given));
}

/// A size of at least `least`; `otherwise` where the field is empty, or an error that says who needs it.
std::int64_t size(const CsvRow& row, const char* column, std::int64_t least, std::int64_t otherwise,
                  const char* needed_by = nullptr) {
  const auto given = row.integer(column);
  if (!given && needed_by) row.fail(fmt::format("{} needs {}", needed_by, column));
  if (!given) return otherwise;
  if (*given < least || *given > kMost)
    row.fail(fmt::format("{} must be from {} to {}, not {}", column, least, kMost, *given));
  return *given;
}

void nothing_in(const CsvRow& row, const char* column, const char* because) {
  if (size(row, column, 0, 0) != 0) row.fail(fmt::format("{} must be empty or 0: {}", column, because));
}

Measurable read_what(const CsvRow& row) {
  Measurable what;
  what.level = word<Level>(row, "level", kLevelNames, 1);
  what.name = row.text("name");
  what.kernel_class = word<KernelClass>(row, "kind", kKernelClassNames);
  what.dtype = word<Dtype>(row, "dtype", kDtypeNames);
  const bool one = what.level == Level::kernel, shapeless = one && what.kernel_class == KernelClass::memory_bound;
  if (one && row.given("pass"))
    row.fail("pass must be empty: a kernel is known by its shape, in whichever pass it runs");
  if (!one) what.direction = word<Direction>(row, "pass", kDirectionNames, 1);
  if (!one && what.name.empty()) row.fail("a submodule or a layer needs a name");
  const char* whole = "a submodule or a layer (m tokens of a micro-batch, n of a sample, k hidden size, batch samples)";
  if (shapeless) {
    for (const char* column : {"m", "n", "k", "batch"})
      nothing_in(row, column, "memory-bound kernels are known by their bytes");
  } else {
    const char* who = one ? "a kernel that is not memory_bound" : whole;
    what.m = size(row, "m", 1, 0, who);
    what.n = size(row, "n", 1, 0, who);
    what.k = size(row, "k", 1, 0, who);
    what.batch = size(row, "batch", 1, 1);
  }
  what.bytes = size(row, "bytes", 0, Measurable::kAny, shapeless ? "a memory_bound kernel" : nullptr);
  what.flops = size(row, "flops", 0, shapeless ? 0 : Measurable::kAny);
  return what;
}

core::Time read_time(const CsvRow& row) {
  const auto us = row.real("time_us");
  if (!us) row.fail("time_us is missing; a row without a time says nothing");
  if (*us < 1e-6 || *us > kMostUs)
    row.fail(fmt::format("time_us must be from 0.000001 to {}, not {}", kMostUs, row.text("time_us")));
  return core::round_half_up(*us * static_cast<double>(core::kMicrosecond));
}

std::string text_of(std::int64_t size) {
  return size == Measurable::kAny ? "" : fmt::format("{}", size);
}

}  // namespace

MeasuredTimes parse_measured_kernels(std::string_view text, const std::string& name) {
  const CsvTable table = parse_csv(text, name);
  check_columns(*table.header);
  MeasuredTimes made;
  for (const CsvRow& row : table.rows) {
    const Measurable what = read_what(row);
    const core::Time time_ps = read_time(row);
    const MeasuredTime& stands = made.add(what, {time_ps, row.line()});
    if (stands.time_ps != time_ps)
      row.fail(fmt::format("{} has another time in line {}; keep one", describe(what), stands.row));
  }
  if (made.size() == 0) throw InputError("the table has no row", name, 1);
  return made;
}

std::string measured_kernels_csv(const std::vector<KernelRow>& rows) {
  std::string text = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const auto& [what, time_ps, source] : rows)
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{}.{:06},{}\n", kLevelNames.at(static_cast<std::size_t>(what.level)),
        core::csv_field(what.name), kDirectionNames.at(static_cast<std::size_t>(what.direction)),
        kKernelClassNames.at(static_cast<std::size_t>(what.kernel_class)),
        kDtypeNames.at(static_cast<std::size_t>(what.dtype)), what.m, what.n, what.k, what.batch, text_of(what.bytes),
        text_of(what.flops), time_ps / core::kMicrosecond, time_ps % core::kMicrosecond, core::csv_field(source));
  return text;
}

}  // namespace manyworlds::experiments::import

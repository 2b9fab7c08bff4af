// Numbers formatted for people: SI prefixes, memory in GiB (as GPUs are sold), shares in per cent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

inline constexpr const char* kMissing = "-";

/// Returns a value with four digits and a prefix: 1.234 ms, 12.34 k.
std::string with_si_prefix(double value, const std::string& unit);

/// Times of at least this many seconds are shown in days: no step takes so long.
inline constexpr double kDaysThreshold_s = 100'000;
std::string days_text(double seconds);

/// Returns a value in the format of its column, money without an SI prefix; kMissing if it is NaN.
std::string format_value(const Column& column, double value);
/// Returns a cell in the format of its column, text unchanged; kMissing if `column` is null.
std::string format_cell(const Column* column, std::size_t row);

/// Returns the 80 % interval of a row's step time in the unit of its upper end: "2.1-2.9 s"; kMissing if it has none.
std::string format_interval(const Table& experiments, std::size_t row);

/// Returns what guessed figures are worth in the step times of these rows at most: "-4.2 % to +11.3 %";
/// empty if none of them has a range.
std::string format_guesses(const Table& experiments, const std::vector<std::size_t>& rows);

/// Returns how far the contended collectives of these rows are from packets, over those that were simulated both ways,
/// if any row is of fluid fidelity; otherwise "".
std::string fluid_error_text(const Table& experiments, const std::vector<std::size_t>& rows);

/// Returns 1234567 as "1,234,567".
std::string group_digits(double value);

/// Returns the peak to which the MFU of a row refers, "the bf16 peak of 989.4 TFLOP/s"; empty if the table lacks it.
std::string mfu_peak_text(const Table& experiments, std::size_t row);

/// Returns whether the column of that name holds shares, which are shown in per cent.
bool is_share(std::string_view column);

/// Returns the width of a text on a terminal: the number of bytes that begin a UTF-8 character.
std::size_t display_width(const std::string& text);

/// Aligns columns: those marked in `left_aligned` to the left, the others to the right; each line after `margin`,
/// without trailing blanks. Cells are escaped by core::line_text().
std::string align_columns(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& left_aligned,
                          const std::string& margin = "");

/// Rounds `values` to whole units that add up to `total`: each is rounded down, and the remaining units go to the
/// values that lost most. If the remainder is negative or exceeds the number of values, it is not distributed. Returns
/// what is left.
std::int64_t round_to_sum(const std::vector<double>& values, std::int64_t total, std::vector<std::int64_t>& units);

}  // namespace manyworlds::io

// Figures as people read them: SI prefixes, memory in GiB (as GPUs are sold), shares in per cent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

inline constexpr const char* kMissing = "-";

/// Four digits and a prefix: 1.234 ms, 12.34 k.
std::string with_prefix(double value, const std::string& unit);

/// From so many seconds on a time is told in days: no step takes so long.
inline constexpr double kDays = 100'000;
std::string in_days(double seconds);

/// A value as one of the column's is shown, money without a prefix; kMissing if it is NaN.
std::string shown_value(const Column& column, double value);
/// That of a row; text as it is; kMissing where there is no column.
std::string shown(const Column* column, std::size_t row);

/// The 80 % interval of a row's step time in the unit of its upper end: "2.1-2.9 s"; kMissing where it has none.
std::string shown_interval(const Table& experiments, std::size_t row);

/// 1234567 as "1,234,567".
std::string grouped(double value);

/// What the MFU of a row is a share of, as in "the bf16 peak of 989.4 TFLOP/s"; empty where the table does not say.
std::string mfu_peak(const Table& experiments, std::size_t row);

/// Whether a column of that name has shares of something, shown in per cent.
bool is_share(std::string_view column);

/// Places on a terminal: bytes that begin a UTF-8 character.
std::size_t places(const std::string& text);

/// Columns aligned; the ones named in `left` to the left, the others to the right; each line behind `margin`, without
/// blanks at its end. Cells are told as core::line_text().
std::string aligned(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& left,
                    const std::string& margin = "");

/// Figures in whole units that add up to `total`: each rounded down, and the units that are left to those that lost
/// most. Where more are left than there are figures, or fewer than none, they are not handed out; what is left is
/// returned.
std::int64_t round_to_sum(const std::vector<double>& figures, std::int64_t total, std::vector<std::int64_t>& units);

}  // namespace manyworlds::io

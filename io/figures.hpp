// Figures as people read them: SI prefixes, memory in GiB (as GPUs are sold), shares in per cent.
#pragma once

#include <string>

#include "io/table.hpp"

namespace manyworlds::io {

inline constexpr const char* kMissing = "-";

/// Four digits and a prefix: 1.234 ms, 12.34 k.
std::string with_prefix(double value, const std::string& unit);

/// A value as one of the column's is shown, money without a prefix; kMissing if it is NaN.
std::string shown_value(const Column& column, double value);
/// That of a row; text as it is; kMissing where there is no column.
std::string shown(const Column* column, std::size_t row);

/// 1234567 as "1,234,567".
std::string grouped(double value);

/// Whether its values are shares of something, shown in per cent.
bool is_share(const Column& column);

/// Places on a terminal: bytes that begin a UTF-8 character.
std::size_t places(const std::string& text);

}  // namespace manyworlds::io

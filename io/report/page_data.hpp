// Tables as HTML pages hold them: columns in base64, from which scripts build typed arrays.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

/// Encodes bytes as in RFC 4648, with padding.
std::string base64(const std::string& bytes);

/// Returns row numbers as little-endian 32-bit integers in base64.
std::string packed_rows(const std::vector<std::size_t>& rows);

/// Returns {name, unit, description, share, text} and the values. A column with at most 65,536 distinct values has
/// `values` (exact; null for NaN) and `codes`, their 8- or 16-bit indices in base64. Any other has `singles`,
/// single-precision numbers (7 digits) in base64, or `texts`, an array, if it is a text column.
nlohmann::ordered_json packed_column(const Column& column);

/// Returns JSON that is safe inside a script element, since no markup can begin in it. Text that is not valid UTF-8 is
/// repaired.
std::string script_json(const nlohmann::ordered_json& json);

}  // namespace manyworlds::io

// Tables as pages hold them: columns in base64, from which scripts make typed arrays.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

/// RFC 4648, with padding.
std::string base64(const std::string& bytes);

/// Numbers of rows as little-endian 32-bit integers in base64.
std::string packed_rows(const std::vector<std::size_t>& rows);

/// {name, unit, description, share, text}, and the values: where a column has at most 65,536 different ones, `values`
/// (exact; null for NaN) and `codes`, base64 of 8- or 16-bit numbers of them; otherwise `singles`, base64 of
/// single-precision numbers (7 digits), or for text `texts`, an array.
nlohmann::ordered_json packed_column(const Column& column);

/// JSON that may stand inside a script element: no markup can begin in it. Text that is no UTF-8 is mended.
std::string script_json(const nlohmann::ordered_json& json);

}  // namespace manyworlds::io

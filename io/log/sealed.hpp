// A seal behind the bytes of a file: their number and checksum. It tells a cut or damaged file from a whole one before
// a parser that trusts its input sees it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::io {

void seal(std::string& bytes);  // appends the seal

/// The bytes in front of the seal, or nothing where there is no seal or it does not fit.
std::optional<std::string_view> unseal(std::string_view sealed);

}  // namespace manyworlds::io

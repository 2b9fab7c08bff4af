// A seal at the end of a file: the number of its bytes and their checksum. It lets a reader reject a truncated or
// damaged file before a parser that trusts its input sees it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::io {

void seal(std::string& bytes);  // appends the seal

/// Returns the bytes in front of the seal, or nothing if there is no seal or it does not match.
std::optional<std::string_view> unseal(std::string_view sealed);

}  // namespace manyworlds::io

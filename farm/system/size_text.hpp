// Byte counts as human-readable text.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::farm {

/// Returns "10.8 GiB", or a value in MiB or KiB if it is less than one of the larger unit.
std::string size_text(std::uint64_t bytes);

}  // namespace manyworlds::farm

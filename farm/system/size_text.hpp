// Sizes as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::farm {

/// "10.8 GiB", or MiB or KiB below one of the larger unit.
std::string size_text(std::uint64_t bytes);

}  // namespace manyworlds::farm

#include "farm/system/size_text.hpp"

#include <fmt/format.h>

namespace manyworlds::farm {

std::string size_text(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= std::uint64_t{1} << 30) return fmt::format("{:.1f} GiB", size / (1 << 30));
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", size / (1 << 20));
  return fmt::format("{:.1f} KiB", size / 1024);
}

}  // namespace manyworlds::farm

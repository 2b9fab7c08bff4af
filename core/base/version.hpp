// The program's version, which project() of CMakeLists.txt alone holds.
#pragma once

#include <string_view>

namespace manyworlds::core {

/// Returns the version as in "0.1.0"; the build writes its definition.
std::string_view version();

}  // namespace manyworlds::core

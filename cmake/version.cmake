# manyworlds_version(TARGET): adds version() of core/base/version.hpp to TARGET: the one that project() has. It lies in
# a file of its own that the fingerprint leaves out, so that a release has the keys of the build before it.
function(manyworlds_version target)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/version.cpp)
  file(CONFIGURE OUTPUT ${output} CONTENT
"// Written by cmake/version.cmake; do not edit.
#include \"core/base/version.hpp\"

namespace manyworlds::core {
std::string_view version() { return \"${PROJECT_VERSION}\"; }
}  // namespace manyworlds::core
")
  target_sources(${target} PRIVATE ${output})
endfunction()

# The build's fingerprint: a hash of everything a result depends on besides its inputs, so that nobody bumps a version
# by hand. Included, it offers manyworlds_fingerprint(); run with `cmake -P`, it writes the generated source file.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(STRINGS ${LIST} sources)
  set(all "${COMPILER}\n${FLAGS}\n")
  foreach(source IN LISTS sources)
    file(SHA256 ${ROOT}/${source} hash)
    string(APPEND all "${source} ${hash}\n")
  endforeach()
  string(SHA256 fingerprint "${all}")
  file(WRITE ${OUTPUT}  # also when nothing changed, so that the build tool sees it newer than the sources
"// Written by cmake/fingerprint.cmake; do not edit.
#include \"core/sharing/key.hpp\"

namespace manyworlds::core::sharing {
std::string_view build_fingerprint() { return \"${fingerprint}\"; }
}  // namespace manyworlds::core::sharing
")
  return()
endif()

# manyworlds_fingerprint(TARGET FOLDER...): adds build_fingerprint() to TARGET, made from the sources below the FOLDERs.
# Only the one generated file is compiled again when a source changes.
function(manyworlds_fingerprint target)
  set(globs)
  foreach(folder IN LISTS ARGN)
    list(APPEND globs ${CMAKE_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/${folder}/*.hpp)
  endforeach()
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${globs})
  list(SORT sources)
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE paths)

  # Warnings cannot change a result; every other flag is taken to.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  get_target_property(shared manyworlds_flags INTERFACE_COMPILE_OPTIONS)
  string(JOIN " " flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${shared})
  string(REGEX REPLACE "(^| )-W[^ ]*" "" flags "${flags}")

  set(list ${CMAKE_CURRENT_BINARY_DIR}/fingerprint.list)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/fingerprint.cpp)
  string(JOIN "\n" lines ${sources})
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D ROOT=${CMAKE_SOURCE_DIR} -D LIST=${list} -D OUTPUT=${output}
            -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR}"
            -D "FLAGS=${flags}" -P ${CMAKE_SOURCE_DIR}/cmake/fingerprint.cmake
    DEPENDS ${paths} ${list} ${CMAKE_SOURCE_DIR}/cmake/fingerprint.cmake
    COMMENT "Fingerprint of this build" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

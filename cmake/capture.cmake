# The library that stands in for CUDA's runtime, NCCL and cuBLAS(Lt) (experiments/capture), in BUILD/lib/manyworlds/capture
# under the names by which the loader looks for these. Included, it offers manyworlds_capture_library(); run with
# `cmake -P`, it writes the source of what ends a capture.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(names)
  foreach(list IN LISTS LISTS_OF_NAMES)
    file(STRINGS ${list} found)
    list(APPEND names ${found})
  endforeach()
  list(SORT names)
  list(REMOVE_DUPLICATES names)
  set(text "// Written by cmake/capture.cmake; do not edit.\n#include \"experiments/capture/session.hpp\"\n")
  string(APPEND text "using manyworlds::experiments::capture::end_unmodelled;\nextern \"C\" {\n")
  foreach(name IN LISTS names)  # weak: what the rooms define takes its place
    string(APPEND text "__attribute__((weak)) void ${name}() { end_unmodelled(\"${name}\"); }\n")
  endforeach()
  file(WRITE ${OUTPUT} "${text}}\n")
  return()
endif()

# manyworlds_capture_library(ROOM...): the shared library of the rooms, with every function that the real ones export.
function(manyworlds_capture_library)
  set(room ${CMAKE_SOURCE_DIR}/experiments/capture)
  file(GLOB lists CONFIGURE_DEPENDS ${room}/names/*.txt)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/unmodelled.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DLISTS_OF_NAMES=${lists}" -DOUTPUT=${source} -P ${CMAKE_SOURCE_DIR}/cmake/capture.cmake
    DEPENDS ${lists} ${CMAKE_SOURCE_DIR}/cmake/capture.cmake COMMENT "Functions that end a capture" VERBATIM)
  add_library(manyworlds_capture SHARED ${source})
  set(archives)
  foreach(path IN LISTS ARGN)
    string(REPLACE "/" "_" name manyworlds_${path})
    set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET default)  # the version script hides what is our own
    list(APPEND archives ${name})
  endforeach()
  target_link_libraries(manyworlds_capture PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive)
  set(map ${room}/versions.map)
  target_link_options(manyworlds_capture PRIVATE -Wl,--version-script=${map})
  set_property(TARGET manyworlds_capture APPEND PROPERTY LINK_DEPENDS ${map})
  set(folder ${CMAKE_BINARY_DIR}/lib/manyworlds/capture)
  set_target_properties(manyworlds_capture PROPERTIES OUTPUT_NAME cudart SUFFIX .so.13 NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${folder} CXX_VISIBILITY_PRESET default)
  target_link_options(manyworlds_capture PRIVATE -Wl,-soname,libcudart.so.13)
  file(MAKE_DIRECTORY ${folder})
  foreach(name libnccl.so.2 libcublas.so.13 libcublasLt.so.13)
    file(CREATE_LINK libcudart.so.13 ${folder}/${name} SYMBOLIC)
    install(FILES ${folder}/${name} DESTINATION lib/manyworlds/capture)
  endforeach()
  install(TARGETS manyworlds_capture LIBRARY DESTINATION lib/manyworlds/capture)
endfunction()

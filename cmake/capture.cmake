# The libraries that stand in for CUDA's runtime, NCCL, cuBLAS(Lt) and cuDNN (experiments/capture), one for each major version of
# CUDA, in BUILD/lib/manyworlds/capture under the names by which the loader looks for these. Included, it offers manyworlds_capture_library(); run with
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

# manyworlds_capture_library(MAJOR ROOM...): the shared library of the rooms, with every function that the real ones of this
# major version of CUDA export. That of CUDA 13 lies in the folder itself, others below it.
function(manyworlds_capture_library major)
  set(target manyworlds_capture_${major})
  set(room ${CMAKE_SOURCE_DIR}/experiments/capture)
  set(lists ${room}/names/cudart_${major}.txt ${room}/names/cublas_13.txt ${room}/names/cublaslt_13.txt
            ${room}/names/nccl_2.txt ${room}/names/cudnn_9.txt)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/unmodelled_${major}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DLISTS_OF_NAMES=${lists}" -DOUTPUT=${source} -P ${CMAKE_SOURCE_DIR}/cmake/capture.cmake
    DEPENDS ${lists} ${CMAKE_SOURCE_DIR}/cmake/capture.cmake COMMENT "Functions that end a capture" VERBATIM)
  add_library(${target} SHARED ${source})
  set(archives)
  foreach(path IN LISTS ARGN)
    string(REPLACE "/" "_" name manyworlds_${path})
    set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET default)  # the version script hides what is our own
    list(APPEND archives ${name})
  endforeach()
  target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive)
  set(map ${CMAKE_CURRENT_BINARY_DIR}/versions_${major}.map)
  configure_file(${room}/versions.map.in ${map} @ONLY)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-soname,libcudart.so.${major})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  set(place lib/manyworlds/capture)
  if(NOT major EQUAL 13)
    string(APPEND place /cuda${major})
  endif()
  set(folder ${CMAKE_BINARY_DIR}/${place})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME cudart SUFFIX .so.${major} NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${folder} CXX_VISIBILITY_PRESET default)
  file(MAKE_DIRECTORY ${folder})
  foreach(name libnccl.so.2 libcudnn.so.9 libcublas.so.${major} libcublasLt.so.${major})
    file(CREATE_LINK libcudart.so.${major} ${folder}/${name} SYMBOLIC)
    install(FILES ${folder}/${name} DESTINATION ${place})
  endforeach()
  install(TARGETS ${target} LIBRARY DESTINATION ${place})
endfunction()

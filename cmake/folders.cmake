# manyworlds_folder(NAME MAY_INCLUDE libs... USES external...): every .cpp of the folder as one library.
# The folder itself is never on the include path: files include each other as "folder/file.hpp", and see a
# sibling folder only through the library they link, so a wrong include does not compile.
function(manyworlds_folder name)
  cmake_parse_arguments(ARG "" "" "MAY_INCLUDE;USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  set(view ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)
  if(NOT sources)  # a folder that is still headers only
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/headers_only.cpp CONTENT "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/headers_only.cpp)
  endif()
  add_library(manyworlds_${name} STATIC ${sources})
  target_include_directories(manyworlds_${name} PUBLIC ${view})
  target_link_libraries(manyworlds_${name} PUBLIC ${ARG_MAY_INCLUDE} PRIVATE manyworlds_flags)
  target_link_libraries(manyworlds_${name} PUBLIC ${ARG_USES})
endfunction()

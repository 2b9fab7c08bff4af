# manyworlds_room(PATH NEEDS rooms... USES external...): the sources of one folder as a library, and what it may know.
# A room sees its own headers, as "path/of/room/file.hpp", and through the libraries it links those of the rooms that
# it needs and of the rooms that these need: an include of any other room does not compile, and no circle can be.
function(manyworlds_room path)
  cmake_parse_arguments(ARG "" "" "NEEDS;USES" ${ARGN})
  string(REPLACE "/" "_" name manyworlds_${path})
  set(view ${CMAKE_BINARY_DIR}/rooms/${name})
  cmake_path(GET path PARENT_PATH above)
  file(MAKE_DIRECTORY ${view}/${above})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${path} ${view}/${path} SYMBOLIC)
  list(TRANSFORM ARG_NEEDS REPLACE "/" "_")
  list(TRANSFORM ARG_NEEDS PREPEND manyworlds_)

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${path}/*.cpp)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${view})
    target_link_libraries(${name} PUBLIC ${ARG_NEEDS} ${ARG_USES} PRIVATE manyworlds_flags)
    # So that the Python module can be made of the same objects. Hidden symbols keep calls and data as direct as in a
    # program: nothing outside may replace them.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  else()  # headers alone
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${view})
    target_link_libraries(${name} INTERFACE ${ARG_NEEDS} ${ARG_USES})
  endif()
  set_property(GLOBAL APPEND PROPERTY MANYWORLDS_ROOMS ${path})
endfunction()

# manyworlds_house(FOLDER): the library manyworlds_FOLDER, which is every room declared so far: those of FOLDER and of
# the folders to its left.
function(manyworlds_house folder)
  get_property(rooms GLOBAL PROPERTY MANYWORLDS_ROOMS)
  list(TRANSFORM rooms REPLACE "/" "_")
  list(TRANSFORM rooms PREPEND manyworlds_)
  add_library(manyworlds_${folder} INTERFACE)
  target_link_libraries(manyworlds_${folder} INTERFACE ${rooms})
endfunction()

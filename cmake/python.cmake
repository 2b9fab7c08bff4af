# The Python package `manyworlds`: its module, compiled with pybind11 for one python3, and its Python, side by side in
# build/python so that tests and `PYTHONPATH=build/release/python` find them. A target of its own: `manyworlds` does not
# need it.
set(PYBIND11_FINDPYTHON OFF)
find_program(MANYWORLDS_PYTHON_PROGRAM python3 PATHS /usr/bin NO_DEFAULT_PATH)  # Debian's, which has h5py and pandas
find_program(MANYWORLDS_PYTHON_PROGRAM python3 REQUIRED)
set(Python_EXECUTABLE ${MANYWORLDS_PYTHON_PROGRAM})
find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
find_package(pybind11 2.10 REQUIRED)

set(package ${CMAKE_BINARY_DIR}/python/manyworlds)
set(python_folder ${CMAKE_SOURCE_DIR}/farm/python/manyworlds)
file(GLOB_RECURSE python_sources RELATIVE ${python_folder} CONFIGURE_DEPENDS ${python_folder}/*.py)
foreach(source IN LISTS python_sources)
  get_filename_component(directory ${package}/${source} DIRECTORY)
  file(MAKE_DIRECTORY ${directory})
  file(CREATE_LINK ${python_folder}/${source} ${package}/${source} SYMBOLIC)
endforeach()

Python_add_library(manyworlds_module MODULE WITH_SOABI ${CMAKE_SOURCE_DIR}/farm/python/module/module.cpp)
target_link_libraries(manyworlds_module PRIVATE manyworlds_farm_python manyworlds_flags pybind11::headers)
set_target_properties(manyworlds_module PROPERTIES
  OUTPUT_NAME _native LIBRARY_OUTPUT_DIRECTORY ${package} CXX_VISIBILITY_PRESET hidden
  INSTALL_RPATH "$ORIGIN/lib" INSTALL_RPATH_USE_LINK_PATH ON)

# Where Python looks: that of the system for Debian's python3, another for a wheel.
set(MANYWORLDS_PYTHON_FOLDER lib/python3/dist-packages CACHE STRING "where the Python package is installed")
set(folder ${MANYWORLDS_PYTHON_FOLDER}/manyworlds)
install(TARGETS manyworlds_module RUNTIME_DEPENDENCY_SET needed_by_python LIBRARY DESTINATION ${folder}
        COMPONENT python)
foreach(source IN LISTS python_sources)
  get_filename_component(directory ${source} DIRECTORY)
  install(FILES ${python_folder}/${source} DESTINATION ${folder}/${directory} COMPONENT python)
endforeach()

# What a wheel has besides: the program, and the shared libraries that a machine may lack.
include(GNUInstallDirs)
install(TARGETS manyworlds RUNTIME_DEPENDENCY_SET needed_by_python RUNTIME DESTINATION ${folder}/bin COMPONENT wheel
        EXCLUDE_FROM_ALL)
install(RUNTIME_DEPENDENCY_SET needed_by_python
  PRE_EXCLUDE_REGEXES "^lib(mpi|open-|pmix|mpich)" "^lib(c|m|pthread|dl|rt)\\.so" "^ld-linux"
  POST_INCLUDE_REGEXES "lib(yaml-cpp|fmt|hdf5|muparserx|xxhash|sqlite3|sz|aec|stdc\\+\\+|gcc_s)[^/]*$"
  POST_EXCLUDE_REGEXES ".*"
  LIBRARY DESTINATION ${folder}/lib COMPONENT wheel EXCLUDE_FROM_ALL)

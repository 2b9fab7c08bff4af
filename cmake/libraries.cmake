# Debian packages that bring no CMake target of their own.
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(xxhash::xxhash INTERFACE IMPORTED)
target_include_directories(xxhash::xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
target_link_libraries(xxhash::xxhash INTERFACE ${XXHASH_LIBRARY})

# Serial HDF5 by name: the MPI flavour would bring mpi.h into io/.
find_path(HDF5_SERIAL_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
find_library(HDF5_SERIAL_LIBRARY NAMES hdf5_serial hdf5 REQUIRED)
add_library(hdf5::serial INTERFACE IMPORTED)
target_include_directories(hdf5::serial SYSTEM INTERFACE ${HDF5_SERIAL_INCLUDE})
target_link_libraries(hdf5::serial INTERFACE ${HDF5_SERIAL_LIBRARY})

find_path(MUPARSERX_INCLUDE mpParser.h PATH_SUFFIXES muparserx REQUIRED)
find_library(MUPARSERX_LIBRARY muparserx REQUIRED)
add_library(muparserx::muparserx INTERFACE IMPORTED)
target_include_directories(muparserx::muparserx SYSTEM INTERFACE ${MUPARSERX_INCLUDE})
target_link_libraries(muparserx::muparserx INTERFACE ${MUPARSERX_LIBRARY})

# Debian's own target of toml++ links its shared library; the headers suffice.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
target_include_directories(tomlplusplus::tomlplusplus SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})

# The library that draws the charts of pages: Chart.js 3, one file. Few systems but Debian package it: elsewhere it is
# fetched, or given as -DCHART_JS=FILE.
find_file(CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js ${CMAKE_BINARY_DIR}/chart.js/package/dist)
if(NOT CHART_JS)
  set(archive ${CMAKE_BINARY_DIR}/chart.js.tgz)
  file(DOWNLOAD https://registry.npmjs.org/chart.js/-/chart.js-3.9.1.tgz ${archive} STATUS status
       EXPECTED_HASH SHA256=111e0751796f087a51e94dfed910ccfb1278fd30e584a6e48514dba9ae7e72c6)
  if(NOT status MATCHES "^0;")
    file(REMOVE ${archive})
    message(FATAL_ERROR "No Chart.js (${status}): install libjs-chart.js, or give -DCHART_JS=FILE of its chart.min.js")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${CMAKE_BINARY_DIR}/chart.js)
  find_file(CHART_JS chart.min.js PATHS ${CMAKE_BINARY_DIR}/chart.js/package/dist REQUIRED)
endif()

# What `cmake --install` leaves: bin/, share/manyworlds/ and, with --component libraries, lib/ with the shared libraries
# that the program needs, so that the tree runs on a machine of the same kind that has them not. MPI stays the site's.
include(GNUInstallDirs)
set_target_properties(manyworlds PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS manyworlds RUNTIME_DEPENDENCY_SET needed RUNTIME)
install(RUNTIME_DEPENDENCY_SET needed COMPONENT libraries EXCLUDE_FROM_ALL
  PRE_EXCLUDE_REGEXES "^lib(mpi|open-|pmix|mpich)" "^lib(c|m|pthread|dl|rt)\\.so" "^ld-linux"
  POST_INCLUDE_REGEXES "lib(yaml-cpp|fmt|hdf5|muparserx|xxhash|sz|aec|stdc\\+\\+|gcc_s)[^/]*$"
  POST_EXCLUDE_REGEXES ".*")

set(share ${CMAKE_INSTALL_DATADIR}/manyworlds)
install(FILES README.md LICENSE DESTINATION ${share})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)  # where Debian looks for it
install(DIRECTORY docs DESTINATION ${share})
install(DIRECTORY experiments/sweeps DESTINATION ${share})
install(DIRECTORY slurm DESTINATION ${share} PATTERN __pycache__ EXCLUDE)

# What `cmake --install` leaves: bin/, share/manyworlds/ and, with --component libraries, lib/ with the shared libraries
# that the program needs, so that the tree runs on a machine of the same kind that has them not. MPI stays the site's.
include(GNUInstallDirs)
set_target_properties(manyworlds PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS manyworlds RUNTIME_DEPENDENCY_SET needed RUNTIME)
install(RUNTIME_DEPENDENCY_SET needed COMPONENT libraries EXCLUDE_FROM_ALL
  PRE_EXCLUDE_REGEXES "^lib(mpi|open-|pmix|mpich)" "^lib(c|m|pthread|dl|rt)\\.so" "^ld-linux"
  POST_INCLUDE_REGEXES "lib(yaml-cpp|fmt|hdf5|muparserx|xxhash|sqlite3|sz|aec|stdc\\+\\+|gcc_s)[^/]*$"
  POST_EXCLUDE_REGEXES ".*")

# Manual pages and completion are made by the program, of its own help.
set(made ${CMAKE_BINARY_DIR}/share)
set(completion_files ${made}/completion.bash ${made}/completion.zsh ${made}/completion.fish)
add_custom_command(OUTPUT ${made}/man1/manyworlds.1 ${completion_files}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${made}/man1
  COMMAND manyworlds man -o ${made}/man1
  COMMAND manyworlds completion bash > ${made}/completion.bash
  COMMAND manyworlds completion zsh > ${made}/completion.zsh
  COMMAND manyworlds completion fish > ${made}/completion.fish
  DEPENDS manyworlds COMMENT "Manual pages and completion" VERBATIM)
add_custom_target(manual ALL DEPENDS ${made}/man1/manyworlds.1 ${completion_files})
install(DIRECTORY ${made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${made}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME manyworlds)
install(FILES ${made}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _manyworlds)
install(FILES ${made}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        RENAME manyworlds.fish)

set(share ${CMAKE_INSTALL_DATADIR}/manyworlds)
install(FILES README.md LICENSE DESTINATION ${share})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)  # where Debian looks for it
install(DIRECTORY docs DESTINATION ${share})
install(DIRECTORY experiments/sweeps DESTINATION ${share})
install(DIRECTORY slurm DESTINATION ${share} PATTERN __pycache__ EXCLUDE)

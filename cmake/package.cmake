# What `cpack --config BUILD/CPackConfig.cmake` makes: Debian packages of what is installed. They need the libraries of
# the system that it was built on, and the commands of the MPI that it was built with; Chart.js is compiled in.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Seed 9396fd1c maintainers <maintainers@users.noreply.a-seed-9396fd1c.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator that ranks layouts of LLM training on a cluster")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Simulates every candidate layout of a training step of a large language model:
tensor, pipeline, data, context and expert parallelism, micro-batch, schedule
and recomputation, on this fabric or that one. GPUs are simulated kernel by
kernel and the network packet by packet, on one machine or over MPI; results
are one HDF5 file and a page that shows what is in it.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)  # manyworlds_VERSION_ARCHITECTURE.deb
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

if(MPI_CXX_COMPILER MATCHES mpich OR MPI_CXX_LIBRARIES MATCHES mpich)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS mpich)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-h5py, python3-pandas, slurm-client")
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_COMMAND file)
mark_as_advanced(DPKG_SHLIBDEPS FILE_COMMAND)
if(DPKG_SHLIBDEPS AND FILE_COMMAND)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()

# Two packages: the program, and the Python package for Debian's python3.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME manyworlds)
if(TARGET manyworlds_module)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-manyworlds)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  math(EXPR next_minor "${Python_VERSION_MINOR} + 1")
  string(JOIN ", " CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "manyworlds (= ${PROJECT_VERSION})"
         "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})"
         "python3 (<< ${Python_VERSION_MAJOR}.${next_minor})" python3-h5py python3-pandas)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-xarray, python3-matplotlib")
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION
"simulator that ranks layouts of LLM training, in Python
Experiments and sweeps from Python; results as pandas, as xarray, and as
pictures.")
endif()
include(CPack)

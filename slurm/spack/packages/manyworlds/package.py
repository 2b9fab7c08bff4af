"""Spack's recipe, for clusters that build software with it. From the root of the repository:

    spack repo add slurm/spack
    spack dev-build manyworlds@main          # builds the working copy; add ^mpich or ^openmpi for the MPI of the site
    spack load manyworlds
"""

from spack.package import *

try:  # Spack 1.0 and later keep build systems beside the packages
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Manyworlds(CMakePackage):
    """Ranks the ways to train a large language model on a cluster, by simulating each packet by packet."""

    # Has no versions that could be fetched: it is built from a working copy (spack dev-build, spack develop).
    version("main")
    license("Apache-2.0")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("boost@1.74:")  # Asio: headers only
    depends_on("cxxopts@3:")
    depends_on("eigen@3.4")
    depends_on("fmt@9")
    depends_on("hdf5@1.10: ~mpi")
    depends_on("mpi")
    depends_on("muparserx")
    depends_on("nlohmann-json@3.11:")
    depends_on("sqlite@3.31:")
    depends_on("tomlplusplus@3:")
    depends_on("xxhash@0.8:")
    depends_on("yaml-cpp@0.7:")
    # Chart.js is no Spack package: CMake fetches it, or takes -DCHART_JS=FILE.

    def cmake_args(self):
        return [self.define("MANYWORLDS_TESTS", False)]

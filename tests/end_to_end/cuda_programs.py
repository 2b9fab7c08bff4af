"""Programs of tests/capture as clang compiles them without a toolkit: their host part alone, with our own declarations."""

import os
import shutil
import subprocess

from program import BUILD, ROOT

SOURCES = ROOT / "tests" / "capture"
LIBRARY = BUILD / "lib" / "manyworlds" / "capture"
CLANG = os.environ.get("CLANG") or shutil.which("clang++-14") or shutil.which("clang++")
LACKING = "clang++ is not installed (Debian: clang), and nothing else compiles CUDA without a toolkit: nothing was tested"
OF_HOST_ALONE = ["-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-Wno-unknown-cuda-version",
                 "-Xclang", "-target-sdk-version=10.1"]


def libraries_of(cuda):
    """The folder of the libraries that stand in for those of a major version of CUDA."""
    return LIBRARY if cuda == 13 else LIBRARY / f"cuda{cuda}"


def compile_cuda(name, folder, registered=True, libraries=None, cuda=13):
    """The program of tests/capture/NAME.cu in `folder`, for a major version of CUDA; one that is not registered has no
    device code."""
    if libraries is None:
        libraries = (f"-L{libraries_of(cuda)}", f"-l:libcudart.so.{cuda}", "-l:libnccl.so.2", f"-l:libcublas.so.{cuda}",
                     f"-l:libcublasLt.so.{cuda}", "-l:libcudnn.so.9")
    code = folder / "none.fatbin"
    code.write_text("no code of a device", encoding="utf-8")
    program = folder / f"{name}_{registered}_{cuda}"
    register = ["-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(code)] if registered else []
    subprocess.run([CLANG, *OF_HOST_ALONE, *register, f"-DCUDA_MAJOR={cuda}", "-c", SOURCES / f"{name}.cu", "-o",
                    f"{program}.o"], check=True)
    subprocess.run([CLANG, f"{program}.o", *libraries, "-o", program], check=True)
    return program

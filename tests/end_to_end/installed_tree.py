"""A tree of the program somewhere else than where it was built: that it has its files and gives the build's answers."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
FILES = ("README.md", "LICENSE", "docs/formats.md", "docs/model/network.md", "sweeps/tiny.yaml", "slurm/sweep.sh",
         "slurm/merge.sh", "slurm/manyworlds.def", "slurm/Containerfile", "slurm/spack/packages/manyworlds/package.py")  # of share/manyworlds


def run(*words, **more):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=1200, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def source_of(name):
    """Where a file of share/manyworlds lies in the repository."""
    return ROOT / ("experiments/" + name if name.startswith("sweeps/") else name)


def check_tree(test, tree, directory):
    """`tree` (what holds bin/ and share/) has what people need, and runs a small sweep, in `directory`, as the build does."""
    share = tree / "share/manyworlds"
    for name in FILES:
        test.assertEqual((share / name).read_bytes(), source_of(name).read_bytes(), name)
    environment = {**os.environ, "XDG_CACHE_HOME": str(directory / "cache")}
    program = tree / "bin/manyworlds"
    run(program, "sweep", share / "sweeps/tiny.yaml", "-j", 2, "-o", directory / "run", env=environment)
    run(BUILD / "manyworlds", "sweep", ROOT / "experiments/sweeps/tiny.yaml", "-j", 1, "-o", directory / "other",
        env=environment)
    test.assertEqual(run(program, "diff", directory / "run", directory / "other"), "same results\n")

"""The image of slurm/Containerfile: podman or docker builds it, and it finds its machine in order and runs a small job.

CMake adds this test for each engine that can run a container of the base image."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import ROOT, SWEEPS

ENGINE = sys.argv.pop() if len(sys.argv) > 1 else "podman"
IMAGE = "manyworlds-under-test"


def engine(*words):
    done = subprocess.run([ENGINE, *map(str, words)], capture_output=True, text=True, timeout=7200, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        engine("build", "-t", IMAGE, "-f", ROOT / "slurm/Containerfile", ROOT)
        cls.addClassCleanup(engine, "rmi", "-f", IMAGE)

    def test_it_finds_its_machine_in_order(self):
        self.assertIn("sweeps run on this machine", engine("run", "--rm", IMAGE, "doctor"))

    def test_it_runs_a_sweep_into_a_folder_of_the_host(self):
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(SWEEPS / "tiny.yaml", directory)
            said = engine("run", "--rm", "-v", f"{directory}:/work", IMAGE, "sweep", "tiny.yaml", "-j", 2)
            self.assertIn("20 experiments", said)
            self.assertTrue((pathlib.Path(directory) / "runs/tiny/results.h5").is_file())


if __name__ == "__main__":
    unittest.main(verbosity=2)

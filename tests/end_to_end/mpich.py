"""Built with MPICH: the same answer from two ranks, also when a rank is killed. Skipped (exit 77) where it is not installed."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import program

ROOT, BUILD = program.ROOT, program.BUILD
COMPILER = shutil.which("mpicxx.mpich")
LAUNCHER = shutil.which("mpiexec.mpich")


class WithMpich(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-mpich-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        # Beside the other build, so that the compiler's cache knows all that does not see mpi.h.
        build = BUILD.with_name(BUILD.name + "-mpich")
        cls.addClassCleanup(shutil.rmtree, build, ignore_errors=True)
        environment = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
        for words in (["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                       "-DMANYWORLDS_WERROR=ON", "-DMANYWORLDS_TESTS=OFF", f"-DMPI_CXX_COMPILER={COMPILER}"],
                      ["cmake", "--build", build, "--parallel", os.cpu_count()]):
            done = subprocess.run([*map(str, words)], env=environment, capture_output=True, text=True, timeout=1500)
            if done.returncode != 0:
                raise AssertionError(done.stdout[-4000:] + done.stderr[-4000:])
        cls.binary = build / "manyworlds"

    def run_program(self, *words, binary=None):
        done = subprocess.run([str(binary or self.binary), *map(str, words)], cwd=self.directory, capture_output=True,
                              text=True, timeout=program.PATIENCE_S, stdin=subprocess.DEVNULL,
                              env={**os.environ, "XDG_CACHE_HOME": f"{self.directory}/cache"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_two_ranks_give_the_answer_of_one_and_of_the_other_library(self):
        tiny = program.SWEEPS / "tiny.yaml"
        self.assertIn("2 ranks", self.run_program("sweep", tiny, "-o", "two", "-j", 2, "--store", "none").stderr)
        figures = program.provenance(self.directory / "two/results.h5")
        self.assertEqual(figures["ranks"], 2)
        self.assertRegex(figures["mpi_version"], r"^MPICH \d")
        self.run_program("sweep", tiny, "-o", "one", "-j", 1, "--store", "none")
        self.run_program("sweep", tiny, "-o", "other", "-j", 2, "--store", "none", binary=program.PROGRAM)
        self.assertRegex(program.provenance(self.directory / "other/results.h5")["mpi_version"], r"^Open MPI \d")
        for name in ("one", "other"):
            self.assertEqual(self.run_program("diff", "two", name).stdout, "same results\n")
            self.assertEqual(program.answer_digest(self.directory / "two/results.h5"),
                             program.answer_digest(self.directory / name / "results.h5"))

    def test_started_by_its_launcher_it_is_a_rank(self):
        done = subprocess.run([LAUNCHER, "-n", "2", self.binary, "sweep", str(program.SWEEPS / "tiny.yaml"), "-o", "launched",
                               "--store", "none"], cwd=self.directory, capture_output=True, text=True, timeout=program.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(program.provenance(self.directory / "launched/results.h5")["ranks"], 2)

    def test_a_killed_rank_costs_a_life_and_not_what_was_computed(self):
        (self.directory / "slow.yaml").write_text(program.SLOW_SWEEP)
        mark = uuid.uuid4().hex
        words = [self.binary, "sweep", "slow.yaml", "-o", "killed", "-j", "3", "--store", "none"]
        process = subprocess.Popen([*map(str, words)], cwd=self.directory, env={**os.environ, program.MARK: mark},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(program.kill_all, mark)
        journal = self.directory / "killed/journal"
        deadline = time.time() + program.PATIENCE_S
        while not any(path.stat().st_size > 2000 for path in (journal.iterdir() if journal.exists() else ())):
            self.assertLess(time.time(), deadline)
            self.assertIsNone(process.poll(), "it ended before it could be killed")
            time.sleep(0.05)
        os.kill(self.rank(1, mark), signal.SIGKILL)
        if process.wait(timeout=program.PATIENCE_S) != 0:  # hydra may end the others; what is journalled stays
            self.run_program("resume", "killed", "-j", 2, "--store", "none")
        self.run_program("sweep", "slow.yaml", "-o", "whole", "-j", 2, "--store", "none")
        self.assertEqual(self.run_program("diff", "whole", "killed").stdout, "same results\n")

    @staticmethod
    def rank(number, mark):
        """The MPI process of a rank: of those with its number the one that the launcher started."""
        found = [process for process in program.marked(mark)
                 if f"PMI_RANK={number}".encode() in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")]
        return min(found)


if __name__ == "__main__":
    if not COMPILER or not LAUNCHER:
        print("skipped: MPICH is not installed (Debian: mpich libmpich-dev)")
        sys.exit(77)
    unittest.main(verbosity=2)

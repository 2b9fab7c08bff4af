"""A random rank is killed within its first second: the run ends in time and says why, the same line goes on, and the
answer is that of an undisturbed run. Usage: early_kills.py [FIRST_SEED LAST_SEED], under mpirun and, where there is a
Slurm, under srun."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import throwaway_slurm
from program import PROGRAM, SLOW_SWEEP, answer_digest, environment_in, kill_all, marked, rank_of, run
from tally import Tally

FIRST, LAST = (int(sys.argv.pop(1)), int(sys.argv.pop(1))) if len(sys.argv) > 2 else (1, 2)
RANKS = 3
START_S = 8  # --start-time: after it the run has to end by itself
HANG_S = 600  # what takes longer hangs, however busy the machine is


class EarlyKills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-early-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        (cls.directory / "slow.yaml").write_text(SLOW_SWEEP)
        run("sweep", "slow.yaml", "-o", "whole", "-j", 2, "--store", "none", directory=cls.directory)
        cls.expected = answer_digest(cls.directory / "whole" / "results.h5")

    def strike(self, mark, process, drawn):
        """Kills a rank some time within its first second; its number, or None where the run was over before."""
        victim, delay = drawn.randrange(RANKS), drawn.uniform(0, 1)
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline and process.poll() is None:
            found = [number for number in marked(mark) if rank_of(number) == victim]
            if found:
                time.sleep(delay)
                try:
                    os.kill(found[0], signal.SIGKILL)
                    return victim, delay
                except ProcessLookupError:
                    return None
            time.sleep(0.005)
        return None

    def rounds(self, title, *more, **environment):
        tally = Tally(title)
        for seed in range(FIRST, LAST + 1):
            drawn, mark, name = random.Random(seed), uuid.uuid4().hex, f"{title}{seed}"
            log = self.directory / f"{name}.log"
            with log.open("wb") as said:
                process = subprocess.Popen([PROGRAM, "sweep", "slow.yaml", "-o", name, "--store", "none", "--start-time",
                                            f"{START_S}s", "-j", str(RANKS), *more],
                                           cwd=self.directory, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                                           env={**environment_in(self.directory, mark), **environment})
                struck = self.strike(mark, process, drawn)
                begin = time.monotonic()
                try:
                    code = process.wait(timeout=HANG_S)
                except subprocess.TimeoutExpired:
                    code = "hangs"
            took = time.monotonic() - begin
            kill_all(mark)
            run_directory = self.directory / name
            complete = run_directory / "complete.json"
            reason = json.loads(complete.read_text()).get("reason", "") if complete.exists() else ""
            text = log.read_text(errors="replace")
            # A rank that had started may be done without; else there is a reason, where the run can be gone on with.
            ended = code == 0 or (code not in ("hangs", 2) and "resumes it" in text and
                                  (reason or not (run_directory / "sweep.resolved.json").exists()))
            line = ["resume", name] if (run_directory / "sweep.resolved.json").exists() else ["sweep", "slow.yaml", "-o", name]
            run(*line, "-j", RANKS, "--store", "none", directory=self.directory, timeout=HANG_S)
            same = answer_digest(run_directory / "results.h5") == self.expected
            print(f"{title} seed {seed}: {'rank %d at %.2f s' % struck if struck else 'nobody'}; exit {code} after "
                  f"{took:.0f} s; {reason or 'no reason'}", flush=True)
            tally.note("ended in time, with a reason", ended, f"seed {seed}: exit {code}, reason {reason!r}\n{text}")
            tally.note("gone on with, same bytes", same, f"seed {seed}")
            shutil.rmtree(run_directory)
        tally.check(self)

    def test_under_mpirun(self):
        self.rounds("mpirun")

    @unittest.skipIf(throwaway_slurm.missing(), "Slurm is not installed")
    def test_under_srun(self):
        slurm = throwaway_slurm.ThrowawaySlurm(cpus=RANKS)
        self.addCleanup(slurm.stop)
        self.rounds("srun", "--srun", **{name: slurm.environment[name] for name in ("PATH", "SLURM_CONF")})


if __name__ == "__main__":
    unittest.main()

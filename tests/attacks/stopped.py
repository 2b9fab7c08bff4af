"""Processes of a run that are stopped (SIGSTOP) and continued: the run is over in time, with the same answer, whoever it
was. Usage: stopped.py [SECONDS], which is longer than silence (6 s), or than followers wait (30 s) and look (15 s)."""

import contextlib
import json
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

from program import PROGRAM, SLOW_SWEEP, answer_digest, environment_in, kill_all, marked, rank_of, run
from tally import Tally

STOPPED_S = float(sys.argv.pop(1)) if len(sys.argv) > 1 else 8
HANG_S = 900  # what takes longer hangs, however busy the machine is


def child_of(process, mark):
    """A process of the run that this one started, or None."""
    for number in marked(mark):
        try:
            if int(pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[1]) == process:
                return number
        except OSError:
            continue
    return None


class Stopped(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-stopped-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "slow.yaml").write_text(SLOW_SWEEP)

    def find(self, victim, mark):
        rank = next((number for number in marked(mark) if rank_of(number) == int("0" not in victim)), None)
        for _ in range({"zygote": 1, "simulator": 2}.get(victim.split()[0], 0)):
            rank = rank and child_of(rank, mark)
        return rank

    def test_whoever_is_stopped_and_continued(self):
        tally = Tally(f"stopped {STOPPED_S:.0f} s")
        run("sweep", "slow.yaml", "-o", "whole", "-j", 2, "--store", "none", directory=self.directory)
        expected = answer_digest(self.directory / "whole" / "results.h5")
        for victim in ("rank 0", "rank 1", "simulator of 0", "simulator of 1", "zygote of 0"):
            name, mark = victim.replace(" ", "-"), uuid.uuid4().hex
            self.addCleanup(kill_all, mark)
            log = self.directory / f"{name}.log"
            with log.open("wb") as said:
                process = subprocess.Popen([PROGRAM, "sweep", "slow.yaml", "-o", name, "--store", "none", "-j", "2"],
                                           cwd=self.directory, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                                           env=environment_in(self.directory, mark))
            status, deadline, stopped = self.directory / name / "status.json", time.monotonic() + HANG_S, None
            while stopped is None and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
                if status.exists() and json.loads(status.read_text())["done"] > 0:
                    stopped = self.find(victim, mark)
            if stopped:
                os.kill(stopped, signal.SIGSTOP)
                time.sleep(STOPPED_S)
                with contextlib.suppress(ProcessLookupError):  # a run may go on without it, and end it at its end
                    os.kill(stopped, signal.SIGCONT)
            begin = time.monotonic()
            try:
                code = process.wait(timeout=HANG_S)
            except subprocess.TimeoutExpired:
                code = "hangs"
            print(f"{victim}: exit {code} {time.monotonic() - begin:.0f} s after it went on", flush=True)
            same = code == 0 and answer_digest(self.directory / name / "results.h5") == expected
            tally.note(victim, stopped and same, f"exit {code}\n{log.read_text(errors='replace')}")
        tally.check(self)


if __name__ == "__main__":
    unittest.main()

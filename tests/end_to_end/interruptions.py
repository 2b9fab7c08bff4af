"""Sweeps that are killed, asked to stop, or stop by themselves: they say how to go on, and going on changes nothing."""

import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import h5py
import numpy

from program import PATIENCE_S, PROGRAM, SLOW_SWEEP, answer_digest, environment_in, kill_all, marked, provenance, run


class Interruptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-interruptions-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "slow.yaml").write_text(SLOW_SWEEP)
        run("sweep", "slow.yaml", "-o", "whole", "-j", 1, "--store", "none", directory=folder)
        cls.undisturbed = folder / "whole"

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-interruptions-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "slow.yaml").write_text(SLOW_SWEEP)
        self.mark = uuid.uuid4().hex
        self.addCleanup(kill_all, self.mark)

    def start(self, name, *words):
        return subprocess.Popen([PROGRAM, "sweep", "slow.yaml", "-o", name, "--store", "none", *words],
                                cwd=self.directory, env=environment_in(self.directory, self.mark),
                                start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def wait_for_steps(self, name, process):
        """Until a step is done and others are not."""
        status = self.directory / name / "status.json"
        steps = {"done": 0, "total": 1}
        deadline = time.time() + PATIENCE_S
        while steps["done"] < 1:
            self.assertLess(time.time(), deadline)
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            time.sleep(0.05)
            if status.exists():
                steps = next(kind for kind in json.loads(status.read_text())["kinds"] if kind["name"] == "steps")
        self.assertLess(steps["done"], steps["total"])

    def check_partial_results(self, name):
        """What has been computed by now can be read, and the rest says that it is pending."""
        with h5py.File(self.directory / name / "results.h5") as file:
            status = file["experiments"]["status"][:]
            step_time = file["experiments"]["step_time_s"][:]
        self.assertEqual(set(status) - {b"ran", b"pending", b"out_of_memory"}, set())
        self.assertIn(b"pending", status)
        self.assertTrue((numpy.isnan(step_time) == (status != b"ran")).all())
        self.assertIn("did not run", run("top", name, directory=self.directory).stdout)

    def check_goes_on(self, name, state, computed_before=True):
        """Status says where it stands and the line that goes on; that line has the answer of an undisturbed run."""
        told = run("status", name, directory=self.directory).stdout
        self.assertTrue(told.startswith(state), told)
        line = f"manyworlds resume {name} --store none"
        self.assertIn(f"`{line}` resumes it", told)
        if state == "stopped":
            self.check_partial_results(name)
        run(*line.split()[1:], "-j", 2, directory=self.directory)
        figures = provenance(self.directory / name / "results.h5")
        self.assertGreater(figures["tasks_computed"], 0)
        if computed_before:
            self.assertGreater(figures["tasks_from_journal"], 0)
        self.assertEqual(run("diff", self.undisturbed, name, directory=self.directory).stdout, "same results\n")
        self.assertEqual(answer_digest(self.undisturbed / "results.h5"),
                         answer_digest(self.directory / name / "results.h5"))
        self.assertTrue(run("status", name, directory=self.directory).stdout.startswith("complete"))

    def test_killed_in_the_middle(self):
        process = self.start("killed", "-j", "2")
        self.wait_for_steps("killed", process)
        self.assertGreater(kill_all(self.mark), 4)  # supervisor, mpirun, ranks, zygotes, workers
        process.communicate()
        self.check_goes_on("killed", "interrupted")

    def test_stopped_by_itself(self):
        for name, words in {"ranks": ["-j", "2"], "inside": ["-j", "2", "--in-process"]}.items():
            process = self.start(name, "--stop-after", "2s", *words)
            said = process.communicate(timeout=PATIENCE_S)[1]
            self.assertEqual(process.returncode, 75, said)
            self.assertIn(f"`manyworlds resume {name} --store none` resumes it", said)
            self.assertEqual(marked(self.mark), [])
            self.check_goes_on(name, "stopped", computed_before=False)  # two seconds may go by in planning

    def test_asked_once_to_stop_it_drains(self):
        process = self.start("asked", "-j", "2")
        self.wait_for_steps("asked", process)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(process.returncode, 75, said)
        self.assertIn("once more Ctrl-C stops at once", said)
        self.check_goes_on("asked", "stopped")

    def test_asked_twice_to_stop_it_stops_at_once(self):
        process = self.start("told", "-j", "2")
        self.wait_for_steps("told", process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(process.returncode, 75, said)
        self.assertIn("`manyworlds resume told --store none` resumes it", said)
        deadline = time.time() + PATIENCE_S
        while marked(self.mark):
            self.assertLess(time.time(), deadline)
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()

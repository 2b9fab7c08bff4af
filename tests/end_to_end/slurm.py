"""Sweeps under a real Slurm: completion, warning and second life, time limits, arrays with a lost shard, exit codes.

Skipped (exit 77) where Slurm is not installed."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import throwaway_slurm
from program import BUILD, PATIENCE_S, PROGRAM, SLOW_SWEEP, SWEEPS, answer_digest, provenance, run

TINY = SWEEPS / "tiny.yaml"
RANKS = ("--tasks-per-node", "2")


class UnderSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = throwaway_slurm.ThrowawaySlurm(cpus=8, max_array_size=6)
        cls.addClassCleanup(cls.slurm.stop)
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-under-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.references = {}
        (cls.directory / "slow.yaml").write_text(SLOW_SWEEP)

    def submitted(self, spec, run_directory, *words):
        """Ids of the jobs that `manyworlds slurm --submit` submits."""
        return self.slurm.run(PROGRAM, "slurm", spec, "-o", run_directory, "--store", "none", *words, "--submit",
                              cwd=self.directory).splitlines()

    def said(self, run_directory):
        return "".join(path.read_text() for path in sorted((self.directory / f"{run_directory}.slurm").glob("*.out")))

    def assert_ended(self, job, run_directory, code=0):
        for part in self.slurm.wait(job):
            self.assertEqual((part["JobState"], part["ExitCode"]), ("COMPLETED" if code == 0 else "FAILED", f"{code}:0"),
                             self.said(run_directory))

    def reference(self, spec):
        """The digest of the answer without Slurm, and the seconds that it took."""
        if spec not in self.references:
            begin = time.monotonic()
            run("sweep", spec, "-o", f"{spec}.reference", "-j", 2, "--store", "none", directory=self.directory)
            seconds = time.monotonic() - begin
            self.references[spec] = answer_digest(self.directory / f"{spec}.reference/results.h5"), seconds
        return self.references[spec]

    def assert_same_answer_as_without_slurm(self, spec, run_directory):
        self.assertEqual(answer_digest(self.directory / run_directory / "results.h5"), self.reference(spec)[0])
        self.assertEqual(run("diff", f"{spec}.reference", run_directory, directory=self.directory).stdout, "same results\n")

    def steps_done(self, run_directory):
        status = self.directory / run_directory / "status.json"
        if not status.exists():
            return 0
        return next(kind["done"] for kind in json.loads(status.read_text())["kinds"] if kind["name"] == "steps")

    def test_one_job_runs_to_completion_under_mpirun_and_under_srun(self):
        shutil.copy(TINY, self.directory / "tiny.yaml")
        for name, words in {"mpirun": (), "srun": ("--srun",)}.items():
            job, = self.submitted("tiny.yaml", name, *RANKS, *words)
            self.assert_ended(job, name)
            self.assert_same_answer_as_without_slurm("tiny.yaml", name)
            figures = provenance(self.directory / name / "results.h5")
            self.assertEqual((figures["ranks"], figures["SLURM_JOB_ID"]), (2, job))
            self.assertNotIn("SLURM_ARRAY_JOB_ID", figures)
            self.assertIn("tokens/s/GPU", self.said(name))

    def test_warned_it_drains_is_queued_again_and_goes_on(self):
        job, = self.submitted("slow.yaml", "warned", *RANKS)
        self.slurm.wait_for(lambda: self.steps_done("warned") > 0, PATIENCE_S, lambda: self.said("warned"))
        self.slurm.run("scancel", "--signal=USR1", "--batch", job)
        self.slurm.wait_for(lambda: self.slurm.job(job)[0]["Restarts"] == "1", PATIENCE_S, lambda: self.said("warned"))
        self.assertEqual(json.loads((self.directory / "warned/complete.json").read_text())["exit"], 75)
        self.assert_ended(job, "warned")
        self.assertIn("not finished; this script again goes on", self.said("warned"))
        self.assert_same_answer_as_without_slurm("slow.yaml", "warned")
        figures = provenance(self.directory / "warned/results.h5")
        self.assertEqual((figures["SLURM_RESTART_COUNT"], figures["SLURM_JOB_ID"]), ("1", job))
        self.assertGreater(figures["tasks_from_journal"], 0)
        self.assertGreater(figures["tasks_computed"], 0)

    def test_a_time_limit_ends_a_life_and_not_the_sweep(self):
        life_s, restarts = min(40, max(3, round(self.reference("slow.yaml")[1] / 2))), 0  # half the sweep
        while restarts == 0 and life_s > 0:  # what was busy as the reference was made may be idle now
            shutil.rmtree(self.directory / "limited", ignore_errors=True)
            job, = self.submitted("slow.yaml", "limited", "--tasks-per-node", "1", "--time", "1", "--margin", str(60 - life_s))
            self.assert_ended(job, "limited")
            restarts, life_s = int(self.slurm.job(job)[0]["Restarts"]), life_s // 2
        self.assertGreater(restarts, 0)
        self.assertNotIn("DUE TO TIME LIMIT", self.said("limited"))
        self.assert_same_answer_as_without_slurm("slow.yaml", "limited")

    def test_an_array_that_loses_a_shard_is_completed_by_that_shard_alone(self):
        array, merge = self.submitted("slow.yaml", "sharded", "--tasks-per-node", "1", "--array", "3")
        lost = self.directory / "sharded.shards/2-of-3/journal"
        self.slurm.wait_for(lambda: lost.exists() and any(lost.iterdir()), PATIENCE_S, lambda: self.said("sharded"))
        self.slurm.run("scancel", "--signal=KILL", "--full", f"{array}_2")
        self.assert_ended(merge, "sharded", 75)
        states = {part["ArrayTaskId"]: part["JobState"] for part in self.slurm.job(array)}
        self.assertEqual((states["1"], states["3"]), ("COMPLETED", "COMPLETED"))
        self.assertNotEqual(states["2"], "COMPLETED")
        said = self.said("sharded")
        self.assertRegex(said, r"\d+ of 72 experiments are missing, in shard 2\n")
        self.assertRegex(said, r"shard 2 of 3: \d+ experiments; `manyworlds resume \S+/sharded.shards/2-of-3` resumes it")
        self.assertTrue((self.directory / "sharded/report.html").exists())

        scripts = self.directory / "sharded.slurm"
        again = self.slurm.submit("--array=2", scripts / "sweep.sh")
        self.assert_ended(again, "sharded")
        self.assert_ended(self.slurm.submit(scripts / "merge.sh"), "sharded")
        self.assert_same_answer_as_without_slurm("slow.yaml", "sharded")
        figures = provenance(self.directory / "sharded.shards/2-of-3/results.h5")
        self.assertEqual((figures["SLURM_ARRAY_JOB_ID"], figures["SLURM_ARRAY_TASK_ID"]), (again, "2"))

    def test_sbatch_waits_for_the_exit_code_of_the_sweep(self):
        def waited(*words):
            return subprocess.run(["sbatch", "--wait", *map(str, words)], env=self.slurm.environment, cwd=self.directory,
                                  capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL).returncode
        spec = self.directory / "waited.yaml"
        shutil.copy(TINY, spec)
        words = (PROGRAM, "slurm", spec, "-o", "waited", "--store", "none", "--tasks-per-node", 1)
        self.slurm.run(*words, cwd=self.directory)
        script = self.directory / "waited.slurm/sweep.sh"
        self.assertEqual(waited(script), 0)
        spec.write_text(spec.read_text().replace("strategy.tp:", "strategy.tpp:"))
        self.assertEqual(waited(script), 2)
        self.assertIn("strategy.tp", self.said("waited"))
        self.slurm.run(BUILD / "tests/misbehaving", "slurm", TINY, "-o", "failing", "--store", "none", "--tasks-per-node", 1,
                       cwd=self.directory)
        self.assertEqual(waited("--export=ALL,MISBEHAVE=crash 3", self.directory / "failing.slurm/sweep.sh"), 3)

    def test_arrays_are_no_larger_than_this_site_allows(self):
        jobs = self.slurm.run("squeue", "-h", "-o", "%A")
        refused = run_refused(self.slurm, self.directory, TINY, "--tasks-per-node", "1", "--array", "6")
        self.assertIn("--array 6: it is from 1 to 5", refused)
        self.assertLessEqual(set(self.slurm.run("squeue", "-h", "-o", "%A").split()), set(jobs.split()))


def run_refused(slurm, directory, *words):
    done = subprocess.run([PROGRAM, "slurm", *map(str, words)], env=slurm.environment, cwd=directory, timeout=PATIENCE_S,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2, done
    return done.stderr


if __name__ == "__main__":
    if absent := throwaway_slurm.missing():
        print(f"skipped: {absent} is not installed (Debian: slurm-wlm munge)")
        sys.exit(77)
    unittest.main(verbosity=2)

"""`manyworlds allocate` on the results of a real sweep over numbers of nodes, and the example of docs/decisions.md."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import h5py

from program import PROGRAM, ROOT, environment_in, run

PAGE = (ROOT / "docs" / "decisions.md").read_text()
SECTION = re.search(r"^## GPUs among jobs\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)
SWEEP = """
name: nodes
assume: 2021
base:
  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}
  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 4, nic_gbps: 200}
  strategy: {global_batch: 32}
axes:
  cluster.nodes: [1, 2, 4]
  strategy.tp: [1, 4]
"""
JOBS = """
jobs:
  - {name: small, steps: 4000, results: runs/nodes}
  - {name: large, steps: 90000, results: runs/nodes/results.h5}
  - {name: late, steps: 20000, arrival: 2m, results: runs/nodes, where: strategy.tp == 4}
"""


class Allocate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-allocate-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        (cls.directory / "nodes.yaml").write_text(SWEEP)
        (cls.directory / "jobs.yaml").write_text(JOBS)
        run("sweep", "nodes.yaml", "-j", 1, "--store", "none", directory=cls.directory)
        with h5py.File(cls.directory / "runs" / "nodes" / "results.h5") as file:
            names = ("gpus", "strategy.tp", "status", "step_time_s")
            rows = zip(*(file["experiments"][name][:].tolist() for name in names))
            cls.rows = [row for row in rows if row[2] in (b"ran", "ran")]

    def refused(self, text, *words):
        (self.directory / "bad.yaml").write_text(text)
        done = run("allocate", "bad.yaml", "--gpus", 16, *words, directory=self.directory, expect=2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_speeds_are_those_of_the_fastest_experiments(self):
        told = json.loads(run("allocate", "jobs.yaml", "--gpus", 24, "--json", directory=self.directory).stdout)
        self.assertEqual(len(self.rows), 6)
        for job, chosen in zip(told["jobs"], (self.rows, self.rows, [row for row in self.rows if row[1] == 4])):
            fastest = {gpus: min(row[3] for row in chosen if row[0] == gpus) for gpus in {row[0] for row in chosen}}
            self.assertEqual([point["gpus"] for point in job["curve"]], sorted(fastest))
            for point in job["curve"]:
                self.assertAlmostEqual(point["steps_per_s"] * fastest[point["gpus"]], 1, delta=1e-9)

    def test_every_policy_does_the_work_with_the_gpus_that_there_are(self):
        told = json.loads(run("allocate", "jobs.yaml", "--gpus", 24, "--json", directory=self.directory).stdout)
        self.assertEqual([policy["policy"] for policy in told["policies"]], ["marginal_gain", "fifo", "drf"])
        for policy in told["policies"]:
            held, last = {}, 0
            work = dict.fromkeys((job["name"] for job in told["jobs"]), 0)
            speeds = {job["name"]: {0: 0, **{point["gpus"]: point["steps_per_s"] for point in job["curve"]}} for job in told["jobs"]}
            for division in policy["changes"]:
                for name, gpus in held.items():
                    work[name] += speeds[name][gpus] * (division["at_s"] - last)
                held.update(division["gpus"])
                self.assertLessEqual(sum(held.values()), 24)
                last = division["at_s"]
            self.assertEqual(set(held.values()), {0})
            for job in told["jobs"]:
                self.assertAlmostEqual(work[job["name"]] / job["steps"], 1, delta=1e-6)
            self.assertAlmostEqual(policy["mean_completion_s"],
                                   sum(job["completion_s"] for job in policy["jobs"]) / len(told["jobs"]), places=6)
            self.assertEqual(policy["makespan_s"], max(job["end_s"] for job in policy["jobs"]))
        gain, fifo, _ = told["policies"]
        self.assertLess(gain["mean_completion_s"], fifo["mean_completion_s"])

    def test_what_is_wrong_with_results_is_said_with_the_job_and_its_line(self):
        self.assertIn("bad.yaml:2: job 'a': ", self.refused("jobs:\n  - {name: a, steps: 1, results: runs/nodes, where: gpus > 99}\n"))
        self.assertIn("bad.yaml:2: job 'a': ", self.refused("jobs:\n  - {name: a, steps: 1, results: jobs.yaml}\n"))
        missing = run("allocate", "jobs.yaml", directory=self.directory, expect=2)
        self.assertIn("--gpus", missing.stderr)

    def test_the_example_of_the_page_prints_what_it_says(self):
        file, = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        shown, = re.findall(r"^```\n\$ manyworlds (.*?)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        (self.directory / "example.yaml").write_text(file)
        done = subprocess.run([PROGRAM, *shown[0].split()], cwd=self.directory, env=environment_in(self.directory),
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, shown[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)

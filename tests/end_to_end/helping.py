"""Steps on several threads and with the help of idle ranks: the same bytes, whoever helps, stops or dies."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

from program import PATIENCE_S, PROGRAM, answer_digest, environment_in, kill_all, rank_of, run

CONTENDED = """
name: contended
base:
  model: gpt3-13b
  cluster: {gpu: h100_sxm, nodes: 8, gpus_per_node: 8, nic_gbps: 400}
  topology: {fat_tree: {leaf_hosts: 16, oversubscription: 4}}
  transport: {dcqcn: {routing: ecmp_hash}}
  strategy: {tp: 4, pp: 4, micro_batch: 1, global_batch: 16, recompute: full}
"""
SWEEP = CONTENDED + """
axes:
  transport.ecn_pmax_ppm: [100000, 300000]
"""
LONG = CONTENDED.replace("nodes: 8", "nodes: 16").replace("nic_gbps: 400", "nic_gbps: 200").replace("batch: 16", "batch: 32")


class Helping(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="manyworlds-helping-") as directory:
            (pathlib.Path(directory) / "long.yaml").write_text(LONG)
            run("sweep", "long.yaml", "-o", "alone", "--store", "none", "-j", 1, directory=directory)
            cls.long_alone = answer_digest(f"{directory}/alone/results.h5")
            status = json.loads((pathlib.Path(directory) / "alone/status.json").read_text())
            cls.helped_alone = status["load"]["helped"]

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-helping-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        for name, text in {"sweep": SWEEP, "long": LONG}.items():
            (self.directory / f"{name}.yaml").write_text(text)
        self.mark = uuid.uuid4().hex
        self.addCleanup(kill_all, self.mark)

    def sweep(self, name, spec, *words):
        run("sweep", f"{spec}.yaml", "-o", name, "--store", "none", *words, directory=self.directory)
        return self.digest(name)

    def digest(self, name):
        return answer_digest(self.directory / name / "results.h5")

    def status(self, name):
        path = self.directory / name / "status.json"
        return json.loads(path.read_text()) if path.exists() else None

    def helped(self, name):
        """How many components ranks have simulated for others, and how many of these were used."""
        status = self.status(name)
        return (sum(status["load"]["helped"]), sum(status["load"]["used"])) if status else (0, 0)

    def start(self, name, *words):
        return subprocess.Popen([PROGRAM, "sweep", "long.yaml", "-o", name, "--store", "none", *words],
                                cwd=self.directory, env=environment_in(self.directory, self.mark),
                                start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def wait_for_help(self, name, process):
        deadline = time.time() + PATIENCE_S
        while self.helped(name)[0] == 0:
            self.assertLess(time.time(), deadline)
            self.assertIsNone(process.poll(), "it ended before anybody helped")
            time.sleep(0.02)

    def test_ranks_and_threads_change_no_byte(self):
        alone = self.sweep("alone", "sweep", "-j", 1)
        for ranks, threads in ((1, 2), (2, 1), (3, 2)):
            name = f"{ranks}-{threads}"
            with self.subTest(name):
                self.assertEqual(self.sweep(name, "sweep", "-j", ranks, "--threads", threads), alone)
        self.assertEqual(self.sweep("unshared", "sweep", "-j", 3, "--no-sharing"), alone)
        self.assertEqual(self.sweep("in-process", "sweep", "-j", 3, "--in-process"), alone)
        self.assertEqual(run("diff", "alone", "in-process", directory=self.directory).stdout, "same results\n")

    def test_threads_are_said_and_refused_where_there_can_be_none(self):
        words = ("--store", "none", "--set", "fidelity=analytic")
        for ranks, said in ((1, "1 worker, with 2 threads each\n"), (2, "2 ranks (-j 2), with 2 threads each\n")):
            done = run("sweep", "sweep.yaml", "-o", f"said-{ranks}", "-j", ranks, "--threads", 2, *words, directory=self.directory)
            self.assertIn(said, done.stderr)
        for threads in (0, 1025):
            done = run("sweep", "sweep.yaml", "-o", "refused", "--threads", threads, *words, directory=self.directory, expect=2)
            self.assertIn("the number of threads is from 1 to 1024", done.stderr)

    def test_idle_ranks_help_a_step_that_is_alone(self):
        self.assertEqual(sum(self.helped_alone), 0)
        for words in (("-j", 2), ("-j", 4, "--in-process")):
            name = "-".join(map(str, words))
            self.assertEqual(self.sweep(name, "long", *words), self.long_alone)
            helped, used = self.helped(name)
            self.assertGreater(helped, 0)
            self.assertGreater(used, 0)
            said = run("status", name, directory=self.directory).stdout
            self.assertIn(f"help: idle ranks have simulated {helped} components of steps, {used} of them of use\n", said)

    def test_a_helper_that_is_killed_costs_nothing(self):
        process = self.start("killed", "-j", "3")
        self.wait_for_help("killed", process)
        status = self.status("killed")
        load = status["load"]
        helper = max((rank for rank in load["rank"] if rank > 0), key=lambda rank: load["helped"][load["rank"].index(rank)])
        victims = [int(entry.name) for entry in pathlib.Path("/proc").iterdir()
                   if entry.name.isdigit() and rank_of(entry.name) == helper and self.is_ours(entry.name)]
        self.assertEqual(len(victims), 1)
        os.kill(victims[0], signal.SIGKILL)
        said = process.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(self.digest("killed"), self.long_alone)

    def test_an_interrupted_step_with_help_is_computed_again(self):
        process = self.start("stopped", "-j", "2")
        self.wait_for_help("stopped", process)
        kill_all(self.mark)
        process.communicate()
        run("resume", "stopped", "-j", 3, "--threads", 2, "--store", "none", directory=self.directory)
        self.assertEqual(self.digest("stopped"), self.long_alone)

    def is_ours(self, process):
        return f"MANYWORLDS_TEST_MARK={self.mark}".encode() in pathlib.Path(f"/proc/{process}/environ").read_bytes()


if __name__ == "__main__":
    unittest.main()

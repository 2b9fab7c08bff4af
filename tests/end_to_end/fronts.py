"""Pareto fronts among the proven best: those of the whole sweep, for any ranks and whatever interrupts it."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest
import uuid

import h5py
from program import PATIENCE_S, PROGRAM, ROOT, SWEEPS, answer_digest, environment_in, kill_all, provenance, run

TINY = SWEEPS / "tiny.yaml"
FRONT = ["--front", "memory_peak_bytes", "--store", "none"]


class Fronts(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-fronts-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def sweep(self, *words, **more):
        return run("sweep", *words, directory=self.directory, **more)

    def rows(self, name):
        with h5py.File(self.directory / name / "results.h5") as file:
            table = file["experiments"]
            columns = {column: table[column][:] for column in ("id", "status", "tokens_per_s_per_gpu", "memory_peak_bytes")}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def front(self, name):
        """The experiments that no other is better than in one column and no worse in the other."""
        ran = [row for row in self.rows(name) if row["status"] == b"ran"]

        def dominates(a, b):
            gain, cost = a["tokens_per_s_per_gpu"] - b["tokens_per_s_per_gpu"], b["memory_peak_bytes"] - a["memory_peak_bytes"]
            return gain >= 0 and cost >= 0 and (gain > 0 or cost > 0)
        return {(row["id"], row["tokens_per_s_per_gpu"], row["memory_peak_bytes"]) for row in ran
                if not any(dominates(other, row) for other in ran)}

    def test_a_front_is_that_of_the_whole_sweep_whatever_runs_or_interrupts_it(self):
        self.sweep(TINY, "-o", "whole", "--store", "none")
        for name, words in [("one", ["-j", "1"]), ("three", ["-j", "3", "--in-process"]), ("apart", ["--no-sharing"])]:
            told = self.sweep(TINY, *FRONT, "-o", name, *words).stderr
            said = re.search(r"the Pareto front of tokens_per_s_per_gpu against memory_peak_bytes is proven: (\d+) on it, (\d+) were "
                             r"simulated, and the lower bounds of (\d+) others are behind them", told)
            self.assertIsNotNone(said, told)
            on_it, ran, bounded = (int(number) for number in said.groups())
            self.assertEqual(ran + bounded, 20)
            self.assertGreater(bounded, 0)
            self.assertLessEqual(on_it, len(self.front("whole")))
            self.assertEqual(self.front(name), self.front("whole"))
        mark = uuid.uuid4().hex
        self.addCleanup(kill_all, mark)
        killed = subprocess.Popen([PROGRAM, "sweep", TINY, *FRONT, "-o", "killed", "-j", "2"], cwd=self.directory,
                                  env=environment_in(self.directory, mark), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + PATIENCE_S
        while killed.poll() is None and not list((self.directory / "killed").glob("journal/*")) and time.time() < deadline:
            time.sleep(0.005)
        kill_all(mark)
        killed.wait()
        run("resume", "killed", "--store", "none", directory=self.directory)
        (self.directory / "mine.yaml").write_text(TINY.read_text() + "front: memory_peak_bytes\n")
        self.sweep("mine.yaml", "-o", "written", "--store", "none")
        for name in ("three", "apart", "killed"):
            self.assertEqual(run("diff", "one", name, directory=self.directory).stdout, "same results\n")
            self.assertEqual(*(answer_digest(self.directory / one / "results.h5") for one in ("one", name)))
        self.assertEqual([row["status"] for row in self.rows("one")], [row["status"] for row in self.rows("written")])
        run("report", "one", "--md", "-o", "one.md", directory=self.directory)
        self.assertIn("The proven Pareto front", (self.directory / "one.md").read_text())
        told = json.loads(run("explain", "one", "--json", directory=self.directory).stdout)["front"]
        self.assertEqual((told["column"], told["gap"]), ("memory_peak_bytes", 0))
        self.assertLessEqual(set(told["experiments"]), {row[0] for row in self.front("whole")})

    def test_with_a_gap_a_front_tells_how_near_it_is(self):
        self.sweep(TINY, *FRONT, "--gap", "5%", "--best", "2", "-o", "near")
        about = provenance(self.directory / "near/results.h5")
        self.assertEqual((about["best"], about["front_column"], about["front_objective"]),
                         (2, "memory_peak_bytes asc", "tokens_per_s_per_gpu desc"))
        self.assertLessEqual(about["front_gap"], 0.05)

    def test_the_page_on_sweeps_shows_what_its_commands_print(self):
        page = re.search(r"^### Pareto fronts\n(.*?)^### ", (ROOT / "docs/sweeps.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
        shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        commands = [shlex.split(line.replace("experiments/", f"{ROOT}/experiments/"))[1:]
                    for line in re.findall(r"^    (manyworlds .*)$", page, re.MULTILINE)]
        self.assertEqual((len(commands), len(shown)), (2, 1))
        printed = [run(*command, directory=self.directory).stdout for command in commands]
        for line in shown[0].splitlines():
            self.assertIn(line, printed[1].splitlines())

    def test_fronts_are_refused_where_nothing_proves_them(self):
        wide = "axes:\n  strategy.bucket_parameters: {range: [10000, 3250000, \"+500\"]}\n  strategy.tp"
        (self.directory / "wide.yaml").write_text(TINY.read_text().replace("axes:\n  strategy.tp", wide))
        for words, reason in [
                ([TINY, "--front", "goodput"], "--front: 'goodput' is neither known before a step is simulated nor bounded by its time; "
                 "a front is against one of memory_peak_bytes, gpus, strategy.global_batch, step_time_s, mfu, "),
                ([TINY, "--front", "tokens_per_s_per_gpu"], "--front: tokens_per_s_per_gpu is the objective itself; "),
                ([TINY, "--front", "strategy.global_batch"], "'front' strategy.global_batch needs it as an axis, as in"),
                ([TINY, "--front", "train_usd"], "'front' train_usd needs training.tokens"),
                ([TINY, "--front", "gpus", "--shard", "1/2"], "--shard: the front of a sweep is proven by all of it: run it in one part"),
                (["wide.yaml", "--front", "gpus"], "wide.yaml: no front is found among 1.56e+05 points")]:
            refused = self.sweep(*words, expect=2).stderr
            self.assertEqual(len(refused.splitlines()), 1, refused)
            self.assertIn(reason, refused)


if __name__ == "__main__":
    unittest.main(verbosity=2)

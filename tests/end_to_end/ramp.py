"""`manyworlds ramp` on the results of a real sweep over batches, its front, and the example of docs/decisions.md."""

import json
import pathlib
import re
import shlex
import shutil
import tempfile
import unittest

import h5py

from program import ROOT, run

PAGE = (ROOT / "docs" / "decisions.md").read_text()
SECTION = re.search(r"^## Batches over a run\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)
SWEEP = """
name: batches
assume: 2021
base:
  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}
  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 4, nic_gbps: 200}
axes:
  strategy.global_batch: [8, 16, 24, 32, 64, 128]
  strategy.tp: [1, 2, 4]
  strategy.micro_batch: [1, 2, 4]
"""
CRITICAL = "points: {0: 500, 20e6: 2e4, 1e9: 3e5}\n"
ASKED = ["--tokens", "1e9", "--batch", "32"]


class Ramp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-ramp-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        (cls.directory / "batches.yaml").write_text(SWEEP)
        (cls.directory / "critical.yaml").write_text(CRITICAL)
        run("sweep", "batches.yaml", "-j", 1, "--store", "none", directory=cls.directory)
        with h5py.File(cls.directory / "runs/batches/results.h5") as file:
            names = ("id", "strategy.global_batch", "strategy.tp", "strategy.micro_batch", "status", "step_time_s")
            rows = zip(*(file["experiments"][name][:].tolist() for name in names))
            cls.rows = {row[0]: row[1:] for row in rows if row[4] in (b"ran", "ran")}

    def ramp(self, *words, run_name="runs/batches"):
        return json.loads(run("ramp", run_name, *words, "--json", directory=self.directory).stdout)

    def follow(self, told, schedule, critical):
        """Trains in small steps of tokens, plainly, through the phases of a schedule; returns how far that comes."""
        steps = tokens = 0.0
        parts = 20_000
        for phase in schedule["phases"]:
            more = (phase["to_tokens"] - phase["from_tokens"]) / parts
            for _ in range(parts):
                # dS = dt / (r + B), of r in the middle.
                middle = tokens + more / 2 * critical(tokens) / (critical(tokens) + phase["batch_tokens"])
                passed = more / (critical(middle) + phase["batch_tokens"])
                steps, tokens = steps + passed, tokens + more - passed * phase["batch_tokens"]
        return steps, tokens

    def test_every_schedule_comes_as_far_as_the_batch_that_was_asked_for_in_the_times_of_the_run(self):
        def critical(tokens):
            points = [(0, 500), (20e6, 2e4), (1e9, 3e5)]
            for (low, first), (high, last) in zip(points, points[1:]):
                if tokens < high:
                    return first + (last - first) * (tokens - low) / (high - low)
            return points[-1][1]
        told = self.ramp(*ASKED, "--critical", "critical.yaml")
        self.assertEqual([one["schedule"] for one in told["schedules"]], ["best", "megatron_ramp", "best_fixed", "given"])
        for schedule in told["schedules"]:
            steps, tokens = self.follow(told, schedule, critical)
            self.assertAlmostEqual(steps / told["infinite_batch_steps"], 1, delta=1e-3)
            self.assertAlmostEqual(tokens / told["tiny_batch_tokens"], 1, delta=1e-3)
            for phase in schedule["phases"]:
                batch, tp, micro_batch, _, step_s = self.rows[phase["experiment"]]
                self.assertEqual((phase["batch"], phase["step_time_s"]), (batch, step_s))
                self.assertEqual(phase["layout"], f"tp={tp} micro_batch={micro_batch}")
                self.assertAlmostEqual(phase["steps"] * batch * 256 / (phase["to_tokens"] - phase["from_tokens"]), 1, places=6)
                self.assertAlmostEqual(phase["time_s"] / phase["steps"] / step_s, 1, places=9)
            self.assertAlmostEqual(schedule["time_s"], sum(phase["time_s"] for phase in schedule["phases"]), places=6)
        times = [schedule["time_s"] for schedule in told["schedules"]]
        self.assertEqual(min(times), times[0])
        self.assertEqual(min(times[2:]), times[2])
        self.assertAlmostEqual(told["schedules"][3]["tokens"], 1e9, delta=1)
        self.assertEqual(told["schedules"][3]["phases"][0]["step_time_s"],
                         min(row[4] for row in self.rows.values() if row[0] == 32))
        first, flags = told["schedules"][1]["phases"][0], told["megatron"]
        self.assertEqual(first["batch"], flags["start"])
        self.assertEqual(len({phase["layout"] for phase in told["schedules"][1]["phases"]}), 1)

    def test_restarts_are_weighed(self):
        free, dear = self.ramp(*ASKED), self.ramp(*ASKED, "--restart", "1d")
        self.assertGreater(free["schedules"][0]["restarts"], 0)
        self.assertEqual(dear["schedules"][0]["restarts"], 0)
        self.assertLessEqual(free["schedules"][0]["time_s"], dear["schedules"][0]["time_s"])
        self.assertLessEqual(dear["schedules"][0]["time_s"], dear["schedules"][1]["time_s"])

    def test_the_law_counts_parameters_without_embeddings(self):
        # Four layers of 12 h^2 + 13 h and the last norm's 2 h, of h = 768.
        self.assertEqual(self.ramp(*ASKED)["critical_batch"]["parameters"], 4 * (12 * 768**2 + 13 * 768) + 2 * 768)
        told = self.ramp(*ASKED, "--parameters", "28353024", run_name="runs/batches/results.h5")
        self.assertEqual(told["schedules"], self.ramp(*ASKED)["schedules"])

    def test_the_front_of_batches_has_all_that_the_best_schedule_needs(self):
        run("sweep", "batches.yaml", "--front", "strategy.global_batch", "-o", "runs/front", "--store", "none",
            directory=self.directory)
        with h5py.File(self.directory / "runs/front/results.h5") as file:
            ran = sum(status in (b"ran", "ran") for status in file["experiments/status"][:].tolist())
        self.assertLess(ran, len(self.rows))
        for words in ([], ["--critical", "critical.yaml"]):
            self.assertEqual(self.ramp(*ASKED, *words)["schedules"][0],
                             self.ramp(*ASKED, *words, run_name="runs/front")["schedules"][0])

    def test_what_is_wrong_is_said_on_one_line(self):
        (self.directory / "nodes.yaml").write_text(SWEEP.replace("strategy.tp: [1, 2, 4]", "cluster.nodes: [1, 2]"))
        (self.directory / "one.yaml").write_text(SWEEP.replace("  strategy.global_batch: [8, 16, 24, 32, 64, 128]\n", "").replace(
            "axes:", "  strategy: {global_batch: 32}\naxes:"))
        for name in ("nodes", "one"):
            run("sweep", f"{name}.yaml", "-o", f"runs/{name}", "--store", "none", directory=self.directory)
        (self.directory / "falls.yaml").write_text("points:\n  1e6: 2e5\n  2e6: 1e5\n")
        for words, reason in [
                (["runs/nodes", *ASKED], "differ in gpus: 4 and 8; a ramp is of one model on the same GPUs"),
                (["runs/one", *ASKED], "the sweep has no axis strategy.global_batch; a ramp needs one"),
                (["runs/batches/results.h5", *ASKED], "needs the model's parameters without embeddings"),
                (["runs/batches", "--batch", 32], "--tokens: is missing"),
                (["runs/batches", "--tokens", "1e9"], "--batch: is missing"),
                (["runs/batches", *ASKED, "--where", "strategy.tp == 9"], "no experiment ran where strategy.tp == 9"),
                (["runs/batches", *ASKED, "--critical", "falls.yaml"], "falls.yaml:3: the critical batch falls from 200000 to 100000")]:
            refused = run("ramp", *words, directory=self.directory, expect=2).stderr
            self.assertEqual(len(refused.splitlines()), 1, refused)
            self.assertIn(reason, refused)

    def test_the_example_of_the_page_prints_what_it_says(self):
        folder = self.directory / "page"
        folder.mkdir()
        files = re.findall(r"^```yaml\n# (\w+\.yaml).*?\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        for name, text in files:
            (folder / name).write_text(text)
        commands = re.findall(r"^    manyworlds (.*)$", SECTION, re.MULTILINE)
        shown = re.findall(r"^```\n\$ manyworlds (.*?)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        self.assertEqual((len(files), len(commands), len(shown)), (2, 1, 1))
        for command in commands:
            run(*shlex.split(command), "--store", "none", directory=folder)
        for command, printed in shown:
            done = run(*shlex.split(command), directory=folder)
            self.assertEqual((done.stdout, done.stderr), (printed, ""))
            run(*shlex.split(command), "--critical", "critical.yaml", directory=folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)

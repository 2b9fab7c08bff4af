"""Programs that are given in place of a model and a strategy: the example of docs/programs.md, sweeps over fabrics, and
what is refused."""

import json
import pathlib
import re
import shutil
import tempfile
import textwrap
import unittest

import h5py

from given_jobs import job, layers
from program import ROOT, answer_digest, kill_and_resume, run

PAGE = (ROOT / "docs" / "programs.md").read_text()
EDITS = (ROOT / "docs" / "edits.md").read_text()
FABRICS = """
name: fabrics
base:
  program: {file: job.jsonl}
  cluster: {gpu: h100_sxm, nodes: 4, gpus_per_node: 4, nic_gbps: 400}
axes:
  topology:
    - {rail_optimized: {oversubscription: 1, nodes_per_pod: 2}}
    - {rail_optimized: {oversubscription: 2, nodes_per_pod: 2}}
    - {fat_tree: {leaf_hosts: 4, oversubscription: 1}}
    - {fat_tree: {leaf_hosts: 4, oversubscription: 4}}
  cluster.nic_gbps: {range: [16, 400, "+48"]}
  collectives.all_reduce: [ring, double_tree]
objective: step_time_s
"""


class Programs(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-programs-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def rows(self, name, *columns):
        with h5py.File(self.directory / "runs" / name / "results.h5") as file:
            return list(zip(*(file["experiments"][column][:].tolist() for column in columns)))

    def test_the_example_of_the_page_runs(self):
        (self.directory / "two.yaml").write_text(re.search(r"```yaml\n(# two.yaml.*?)```", PAGE, re.DOTALL).group(1))
        (self.directory / "two.jsonl").write_text("".join(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)))
        command = re.search(r"^    manyworlds (sweep two.yaml)$", PAGE, re.MULTILINE).group(1).split()
        run(*command, directory=self.directory)
        for stall, dp, pp, bubble, kernels, host, step in self.rows(
                "two", "stall_s", "exposed_dp_s", "exposed_pp_s", "bubble_s", "kernels_s", "host_s", "step_time_s"):
            self.assertAlmostEqual(stall, (5e-6 + 92.5e-6) / 2)  # the second rank waits for the first one's kernel
            self.assertAlmostEqual(dp + pp, step - (5e-6 + 92.5e-6))  # and then both communicate until they end
            self.assertGreater(dp, pp)
            self.assertEqual(bubble, 0)
            self.assertAlmostEqual(kernels + host, stall)
        for status, step, kernels, memory, tokens in self.rows("two", "status", "step_time_s", "kernels_s",
                                                               "memory_peak_bytes", "tokens_per_s_per_gpu"):
            self.assertEqual(status, b"ran")
            self.assertGreater(step, 5e-6 + 92.5e-6)
            self.assertAlmostEqual(kernels, 92.5e-6 / 2)  # of one rank of two
            self.assertEqual(memory, 8388608)
            self.assertAlmostEqual(tokens, 4096 / 2 / step, places=3)
        steps = [step for _, step in sorted(self.rows("two", "cluster.nic_gbps", "step_time_s"))]
        self.assertEqual(len(steps), 3)
        self.assertEqual(sorted(steps, reverse=True), steps)
        self.assertGreater(steps[0] - steps[-1], (8388608 + 65536) * 8 / 100e9 / 2)  # at least half of the bytes' time

    def test_the_edits_of_the_page_are_made(self):
        (self.directory / "job.jsonl").write_text(layers())
        for name, text in re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", EDITS, re.DOTALL):
            (self.directory / name).write_text(text)
        commands = [command.split() for command in re.findall(r"^    manyworlds (.*)$", EDITS, re.MULTILINE)]
        self.assertEqual(len(commands), 2)
        for command in commands:
            told = run(*command, directory=self.directory).stdout
            if command[0] == "program":
                self.assertRegex(told, r"faster.yaml:1: scale: 16 operations selected; measured and host time 15\.08 -> 12\.68 ms")
            else:  # of four times as many ranks
                self.assertRegex(told, r"assumed.*faster.yaml:1: scale: 64 operations selected; measured and host time 60\.32 -> 50\.72 ms")
                self.assertRegex(told, r"assumed.*groups of \w+ are 4 times as large, with the same bytes")
        rows = {row[0]: row[1:] for row in self.rows("edits", "program.edits", "step_time_s", "forward_s", "backward_s",
                                                     "tokens_per_s_per_gpu", "link_hops")}
        as_recorded, faster, buckets = (rows[name] for name in (b"", b"faster.yaml", b"buckets.yaml"))
        self.assertAlmostEqual(as_recorded[1], 8 * 330e-6)
        self.assertAlmostEqual(faster[1], 8 * (150e-6 + 0.6 * 30e-6))
        self.assertLess(faster[2], as_recorded[2])
        self.assertEqual(buckets[1:3], as_recorded[1:3])
        for row in rows.values():
            self.assertAlmostEqual(row[3], 4 * 8192 / 8 / row[0], places=3)
        # The file that was written is the same program, of a quarter of the ranks; its own sweep needs no edits.
        spec = (self.directory / "edits.yaml").read_text()
        (self.directory / "written.yaml").write_text(
            spec.replace("name: edits", "name: written").replace("job.jsonl", "faster.jsonl")
            .replace('["", faster.yaml, buckets.yaml]', '[""]'))
        run("sweep", "written.yaml", directory=self.directory)
        self.assertEqual(self.rows("written", "step_time_s")[0][0], faster[0])
        (self.directory / "buckets.yaml").write_text("- select: {collective: all_gather}\n  bucket: 25MB\n")
        error = run("sweep", "edits.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("buckets.yaml:1: selects no operation of any rank: no 'collective' is 'all_gather'", error)
        (self.directory / "none.yaml").write_text(
            "name: none\nbase:\n  program: {replicas: 2}\n  model: llama2-7b\n  cluster: {like: dgx_h100_superpod, nodes: 1}\n"
            "  strategy: {global_batch: 8}\nobjective: step_time_s\n")
        self.assertIn("program_changes", run("sweep", "none.yaml", directory=self.directory, expect=2).stderr)

    def test_fabrics_share_what_they_can_and_change_nothing(self):
        (self.directory / "job.jsonl").write_text(job())
        (self.directory / "fabrics.yaml").write_text(FABRICS)
        run("sweep", "fabrics.yaml", "-j", 2, directory=self.directory)
        results = self.directory / "runs" / "fabrics" / "results.h5"
        first = answer_digest(results)
        steps = {row[0] for row in self.rows("fabrics", "step_time_s")}
        self.assertGreater(len(steps), 36)
        with h5py.File(results) as file:
            self.assertEqual(len(file["experiments"]["id"]), 72)
            kernels = file["subsimulations/kernels"]["parameters"][:].tolist()
        self.assertEqual(len(kernels), 3)  # however many fabrics
        axes = ("topology", "topology.oversubscription", "cluster.nic_gbps", "collectives.all_reduce")
        known = {row[:4]: row[4:] for row in self.rows("fabrics", *axes, "step_time_ps", "link_hops")}
        few = FABRICS.replace('{range: [16, 400, "+48"]}', "[16, 208]")
        for name, words in (("alone", ("--no-sharing",)), ("coupled", ("--set", "composition=coupled"))):
            (self.directory / f"{name}.yaml").write_text(few.replace("name: fabrics", f"name: {name}"))
            run("sweep", f"{name}.yaml", *words, "-j", 1, "--store", "none", directory=self.directory)
            rows = self.rows(name, *axes, "step_time_ps", "link_hops")
            self.assertEqual(len(rows), 16)
            for row in rows:
                self.assertEqual(row[4:], known[row[:4]], name)
        kill_and_resume(self, self.directory, "fabrics.yaml")
        self.assertEqual(answer_digest(self.directory / "killed" / "results.h5"), first)

    def test_the_critical_path_adds_up_to_the_step(self):
        (self.directory / "job.jsonl").write_text(job())
        (self.directory / "fabrics.yaml").write_text(FABRICS)
        words = ("run", "fabrics.yaml", "--experiment", 54, "--critical-path")
        told = json.loads(run(*words, "--json", directory=self.directory).stdout)
        path = told["critical_path"]
        self.assertAlmostEqual(sum(row["s"] for row in path["sums"]), told["step_time_s"], delta=1e-11)
        self.assertEqual(sum(row["operations"] for row in path["sums"]), path["operations"])
        times = [row["s"] for row in path["sums"]]
        self.assertEqual(times, sorted(times, reverse=True))
        names = {(row["kind"], row["name"]) for row in path["sums"]}
        self.assertLessEqual({("backward", "layer_backward"), ("forward", "layer_forward"), ("tp", "all_reduce"),
                              ("optimizer", "adam")}, names)
        self.assertIn(f"critical path: {path['operations']} operations", run(*words, directory=self.directory).stdout)

    def test_a_slow_gpu_slows_kernels_and_who_waits_for_it(self):
        """A kernel takes the inverse of its GPU's share as long; the other rank meets it in the collective behind."""
        two = [{"manyworlds_program": 1, "name": "two", "gpu": "h100_sxm"}, {"dimension": "all", "part": "exposed_dp"},
               {"groups": "all", "ranks": [[0, 1]]}, {"program": "p", "ranks": "0-1", "streams": ["compute"]},
               {"kernel": "unknown", "us": 1000, "stream": "compute"},
               {"collective": "all_reduce", "in": "all", "bytes": 1 << 20, "stream": "compute"}]
        (self.directory / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in two))
        (self.directory / "two.yaml").write_text(
            "name: two\nbase:\n  program: {file: two.jsonl}\n"
            "  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 1, nic_gbps: 400}\n  topology: one_switch\n"
            "axes:\n  faults.slow_gpus: ['', 'gpu1=0.8', 'gpu0=0.5, gpu1=0.8']\nobjective: step_time_s\n")
        run("sweep", "two.yaml", "-j", 1, directory=self.directory)
        steps = {slow.decode(): step for slow, step in self.rows("two", "faults.slow_gpus", "step_time_ps")}
        self.assertEqual(steps["gpu1=0.8"] - steps[""], 250_000_000)
        self.assertEqual(steps["gpu0=0.5, gpu1=0.8"] - steps[""], 1_000_000_000)
        text = run("run", "two.yaml", "--experiment", 0, directory=self.directory).stdout
        self.assertIn("tokens/s/GPU      not known: the programs do not say tokens_per_step\n", text)
        self.assertIn("peak memory       not known: the programs do not say what they allocate\n", text)
        self.assertNotIn("nan", text)

    def test_a_slow_rank_of_a_program_is_found(self):
        (self.directory / "job.jsonl").write_text(job())
        (self.directory / "job.yaml").write_text(
            "name: job\nbase:\n  program: {file: job.jsonl}\n"
            "  cluster: {gpu: h100_sxm, nodes: 4, gpus_per_node: 4, nic_gbps: 400}\n  topology: rail_optimized\n"
            "objective: step_time_s\n")
        for slow, phases in ((5, {"forward", "backward", "optimizer"}), (12, {"forward", "backward", "optimizer"})):
            told = json.loads(run("stragglers", "job.yaml", "--set", f"faults.slow_gpus=gpu{slow}=0.8", "--json",
                                  directory=self.directory).stdout)
            self.assertEqual([one["rank"] for one in told["stragglers"]], [slow])
            self.assertEqual({seen["what"] for seen in told["stragglers"][0]["seen"]}, phases)
            for seen in told["stragglers"][0]["seen"]:
                self.assertAlmostEqual(seen["slower"], 0.25, delta=0.05)
        self.assertEqual(json.loads(run("stragglers", "job.yaml", "--json", directory=self.directory).stdout)["stragglers"], [])

    def test_another_gpu_needs_shapes(self):
        (self.directory / "job.jsonl").write_text(job(layers=1, micro_batches=1))
        (self.directory / "a.yaml").write_text(FABRICS.replace("h100_sxm", "a100_80"))
        error = run("sweep", "a.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("3 kernels have a time on another GPU, and no shape", error)
        self.assertIn("'layer_backward'", error)

    def test_an_experiment_is_written_and_comes_back(self):
        """As a program file, as traces of Chakra and as a schedule of GOAL, whose times are whole nanoseconds."""
        words = ("program", ROOT / "experiments" / "sweeps" / "tiny.yaml", "--experiment", 3)
        told = run(*words, "--to", "tiny.jsonl", "--chakra", "tiny", "--goal", "tiny.goal", directory=self.directory).stdout
        self.assertEqual(len(list(self.directory.glob("tiny.*.et"))), 8)
        for line in (r"wrote +tiny.jsonl, ", r"wrote +tiny.goal, ", r"wrote +tiny.0.et to tiny.7.et, and tiny.groups.json$",
                     r"as GOAL +up to \d+ durations of a rank are rounded to whole nanoseconds", r"as GOAL +left out: .*parts of the step",
                     r"as Chakra +up to \d+ durations of a rank are rounded to whole microseconds"):
            self.assertRegex(told, re.compile("^" + line, re.MULTILINE))
        told = run("program", "tiny", "--to", "chakra.jsonl", directory=self.directory).stdout
        self.assertIn("groups of tiny.groups.json, as no --groups says others\n", told)
        run("program", "tiny.goal", "--to", "goal.jsonl", directory=self.directory)
        machines = "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
        machines += "  topology: {fat_tree: {leaf_hosts: 4, oversubscription: 4}}\n  transport: dcqcn\n"
        steps = {}
        for name in ("tiny", "chakra", "goal"):
            (self.directory / f"{name}.yaml").write_text(
                f"name: {name}\nassume: 2021\nbase:\n  program: {{file: {name}.jsonl}}\n{machines}objective: step_time_s\n")
            assumed = run("sweep", f"{name}.yaml", "-j", 1, directory=self.directory).stdout
            steps[name] = self.rows(name, "step_time_ps")[0][0]
            self.assertEqual("does not say on which GPU its times were measured: they are taken as they are on any" in assumed,
                             name != "tiny")
        run("sweep", ROOT / "experiments" / "sweeps" / "tiny.yaml", "-o", "whole", "-j", 1, directory=self.directory)
        with h5py.File(self.directory / "whole" / "results.h5") as file:
            self.assertEqual(steps["tiny"], file["experiments"]["step_time_ps"][3])
        for name in ("chakra", "goal"):
            self.assertAlmostEqual(steps[name] / steps["tiny"], 1, delta=0.02, msg=name)

    def test_what_does_not_fit_is_refused(self):
        (self.directory / "job.jsonl").write_text(job(layers=1, micro_batches=1))
        (self.directory / "small.yaml").write_text(FABRICS.replace("nodes: 4", "nodes: 2"))
        error = run("sweep", "small.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("program_ranks", error)
        (self.directory / "one.yaml").write_text(re.sub(r"axes:.*(?=objective)", "", FABRICS, flags=re.DOTALL))
        for override, key in (("strategy.tp=1", "strategy.tp"), ("model=llama2-7b", "model")):
            error = run("run", "one.yaml", "--set", override, directory=self.directory, expect=2).stderr
            self.assertIn(f"--set {override}: '{key}' has no effect beside 'program.file'", error)
        (self.directory / "axis.yaml").write_text(FABRICS.replace("axes:\n", "axes:\n  strategy.tp: [1, 2]\n"))
        self.assertRegex(run("sweep", "axis.yaml", "--dry-run", directory=self.directory, expect=2).stderr,
                         r"axis.yaml:\d+: 'strategy.tp' has no effect beside 'program.file'")
        self.assertIn("programs are given in place of a strategy",
                      run("explain", "one.yaml", directory=self.directory).stdout)
        mixed = "nodes: 3, second: {nodes: 1, gpu: a100_80, nic_gbps: 200}"
        (self.directory / "mixed.yaml").write_text(FABRICS.replace("nodes: 4", mixed))
        error = run("sweep", "mixed.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("3 kernels have a time on another GPU, and no shape", error)
        (self.directory / "job.jsonl").write_text("{\"manyworlds_program\":1}\n{\"kernel\":1}\n")
        error = run("sweep", "small.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("job.jsonl:2:", error)
        shutil.copy(ROOT / "tests" / "experiments" / "simai" / "microAllReduce.txt", self.directory / "job.jsonl")
        error = run("sweep", "small.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("job.jsonl:1: is no program file, whose first line has 'manyworlds_program'; of a trace, or another", error)
        (self.directory / "job.jsonl").write_text(job(layers=1, micro_batches=1).replace("h100_sxm", "h100_sxn"))
        error = run("program", "job.jsonl", directory=self.directory, expect=2).stderr
        self.assertIn("job.jsonl: unknown gpu 'h100_sxn'; did you mean", error)
        own = (ROOT / "experiments" / "catalog" / "gpus" / "mi300x.yaml").read_text()
        (self.directory / "mine.yaml").write_text("gpus:\n  h100_sxn:\n" + textwrap.indent(own, "    "))
        run("program", "job.jsonl", "--catalog", "mine.yaml", directory=self.directory)


if __name__ == "__main__":
    unittest.main()

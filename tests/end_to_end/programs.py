"""Programs that are given in place of a model and a strategy: the example of docs/programs.md, sweeps over fabrics, and
what is refused."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

import h5py

from program import ROOT, answer_digest, kill_and_resume, run

PAGE = (ROOT / "docs" / "programs.md").read_text()
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
  cluster.nic_gbps: {range: [16, 400, "+16"]}
  collectives.all_reduce: [ring, double_tree]
objective: step_time_s
"""


def job(layers=4, micro_batches=3):
    """16 ranks: tensor-parallel groups of 4 in nodes, two stages of two replicas each; gradients on a stream of their own."""
    lines = [{"manyworlds_program": 1, "name": "job", "gpu": "h100_sxm", "tokens_per_step": 65536}]
    for dimension, kind, part in (("tp", "groups", "exposed_tp"), ("dp", "groups", "exposed_dp"),
                                ("forward", "pairs", "exposed_pp"), ("backward", "pairs", "exposed_pp")):
        lines.append({"dimension": dimension, "kind": kind, "part": part})
    lines.append({"groups": "tp", "ranks": [[4 * node + i for i in range(4)] for node in range(4)]})
    lines.append({"groups": "dp", "ranks": [[8 * stage + i, 8 * stage + 4 + i] for stage in range(2) for i in range(4)]})
    lines.append({"groups": "forward", "ranks": [[rank, rank + 8] for rank in range(8)]})
    lines.append({"groups": "backward", "ranks": [[rank + 8, rank] for rank in range(8)]})
    for stage in range(2):
        lines.append({"program": f"stage {stage}", "ranks": "0-7" if stage == 0 else "8-15",
                      "streams": ["compute", "gradients", "receive"], "host_streams": ["host"]})
        at = 0

        def add(line, after=()):
            nonlocal at
            lines.append({**line, **({"after": sorted(after)} if after else {})})
            at += 1
            return at - 1

        for micro_batch in range(micro_batches):
            for part in ("forward", "backward"):
                receives = (part == "forward") == (stage == 1)
                arrived = [add({"receive": part, "bytes": 4 << 20, "stream": "receive"})] if receives else []
                for layer in range(layers):
                    launch = add({"host": "launch", "us": 4, "stream": "host"})
                    kernel = add({"kernel": f"layer_{part}", "us": 310.5 if part == "forward" else 603.25,
                                  "part": part, "stream": "compute"}, [launch, *arrived])
                    arrived = []
                    reduced = add({"collective": "all_reduce", "in": "tp", "bytes": 8 << 20, "stream": "compute"}, [kernel])
                    if part == "backward" and micro_batch == micro_batches - 1:
                        add({"collective": "all_reduce", "in": "dp", "bytes": 50 << 20, "stream": "gradients"}, [reduced])
                if not receives:
                    add({"send": part, "bytes": 4 << 20, "stream": "compute"})
        add({"kernel": "adam", "us": 900, "part": "optimizer", "stream": "compute"}, [at - 1])
    return "".join(json.dumps(line) + "\n" for line in lines)


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
        for status, step, kernels, memory, tokens in self.rows("two", "status", "step_time_s", "kernels_s",
                                                               "memory_peak_bytes", "tokens_per_s_per_gpu"):
            self.assertEqual(status, b"ran")
            self.assertGreater(step, 5e-6 + 92.5e-6)
            self.assertAlmostEqual(kernels, 92.5e-6 / 2)  # of one rank of two
            self.assertEqual(memory, 8388608)
            self.assertAlmostEqual(tokens, 4096 / 2 / step, places=3)

    def test_fabrics_share_what_they_can_and_change_nothing(self):
        (self.directory / "job.jsonl").write_text(job())
        (self.directory / "fabrics.yaml").write_text(FABRICS)
        run("sweep", "fabrics.yaml", "-j", 2, directory=self.directory)
        results = self.directory / "runs" / "fabrics" / "results.h5"
        first = answer_digest(results)
        steps = {row[0] for row in self.rows("fabrics", "step_time_s")}
        self.assertGreater(len(steps), 100)
        with h5py.File(results) as file:
            self.assertEqual(len(file["experiments"]["id"]), 200)
            kernels = file["subsimulations/kernels"]["parameters"][:].tolist()
        self.assertEqual(len(kernels), 3)  # however many fabrics
        axes = ("topology", "topology.oversubscription", "cluster.nic_gbps", "collectives.all_reduce")
        known = {row[:4]: row[4:] for row in self.rows("fabrics", *axes, "step_time_ps", "link_hops")}
        few = FABRICS.replace('{range: [16, 400, "+16"]}', "[16, 208]")
        for name, words in (("alone", ("--no-sharing",)), ("coupled", ("--set", "composition=coupled"))):
            (self.directory / f"{name}.yaml").write_text(few.replace("name: fabrics", f"name: {name}"))
            run("sweep", f"{name}.yaml", *words, "-j", 1, "--store", "none", directory=self.directory)
            rows = self.rows(name, *axes, "step_time_ps", "link_hops")
            self.assertEqual(len(rows), 16)
            for row in rows:
                self.assertEqual(row[4:], known[row[:4]], name)
        kill_and_resume(self, self.directory, "fabrics.yaml")
        self.assertEqual(answer_digest(self.directory / "killed" / "results.h5"), first)

    def test_another_gpu_needs_shapes(self):
        (self.directory / "job.jsonl").write_text(job(layers=1, micro_batches=1))
        (self.directory / "a.yaml").write_text(FABRICS.replace("h100_sxm", "a100_80"))
        error = run("sweep", "a.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("3 kernels have a time on another GPU, and no shape", error)
        self.assertIn("'layer_backward'", error)

    def test_files_of_others_are_read_and_run(self):
        """Each becomes a program file, which is the same when it is read again, and a step of all its ranks."""
        tests = ROOT / "tests" / "experiments"
        for name, path, words, gpus in (
                ("simai", tests / "simai" / "microAllReduce.txt", ("--ranks", 8), 8),
                ("kineto", tests / "kineto" / "event_sync_multi_stream.json.gz", (), 1),
                ("goal", ROOT / "tests" / "fuzz" / "seeds" / "goal" / "two_ranks.goal", (), 2)):
            with self.subTest(name):
                told = run("program", path, *words, "--to", f"{name}.jsonl", directory=self.directory).stdout
                self.assertRegex(told, rf"ranks +{gpus}, ")
                run("program", f"{name}.jsonl", "--to", "again.jsonl", directory=self.directory)
                self.assertEqual((self.directory / "again.jsonl").read_text(), (self.directory / f"{name}.jsonl").read_text())
                (self.directory / f"{name}.yaml").write_text(
                    f"name: {name}\nbase:\n  program: {{file: {name}.jsonl}}\n"
                    f"  cluster: {{gpu: h100_sxm, nodes: 1, gpus_per_node: {gpus}, nic_gbps: 400}}\nobjective: step_time_s\n")
                self.assertIn("step time", run("run", f"{name}.yaml", directory=self.directory).stdout)

    def test_an_experiment_is_written_and_comes_back(self):
        """As a program file, as traces of Chakra and as a schedule of GOAL, whose times are whole nanoseconds."""
        words = ("program", ROOT / "experiments" / "sweeps" / "tiny.yaml", "--experiment", 3)
        run(*words, "--to", "tiny.jsonl", "--chakra", "tiny", "--goal", "tiny.goal", directory=self.directory)
        self.assertEqual(len(list(self.directory.glob("tiny.*.et"))), 8)
        run("program", "tiny", "--groups", "tiny.groups.json", "--to", "chakra.jsonl", directory=self.directory)
        run("program", "tiny.goal", "--to", "goal.jsonl", directory=self.directory)
        machines = "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
        machines += "  topology: {fat_tree: {leaf_hosts: 4, oversubscription: 4}}\n  transport: dcqcn\n"
        steps = {}
        for name in ("tiny", "chakra", "goal"):
            (self.directory / f"{name}.yaml").write_text(
                f"name: {name}\nassume: 2021\nbase:\n  program: {{file: {name}.jsonl}}\n{machines}objective: step_time_s\n")
            run("sweep", f"{name}.yaml", "-j", 1, directory=self.directory)
            steps[name] = self.rows(name, "step_time_ps")[0][0]
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
        mixed = "nodes: 4, second: {nodes: 2, gpu: a100_80, nic_gbps: 200}"
        (self.directory / "mixed.yaml").write_text(FABRICS.replace("nodes: 4", mixed))
        self.assertIn("program_machines", run("sweep", "mixed.yaml", directory=self.directory, expect=2).stderr)
        (self.directory / "job.jsonl").write_text("{\"manyworlds_program\":1}\n{\"kernel\":1}\n")
        error = run("sweep", "small.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("job.jsonl:2:", error)


if __name__ == "__main__":
    unittest.main()

"""Programs that are given in place of a model and a strategy: the example of docs/programs.md, sweeps over fabrics, and
what is refused."""

import gzip
import json
import pathlib
import pickle
import re
import shutil
import tempfile
import unittest

import h5py

from program import ROOT, answer_digest, kill_and_resume, run
from trace import Trace

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


def layers(count=8):
    """Two replicas of some layers, whose gradients of 10 MB each are reduced beside the backward pass."""
    lines = [{"manyworlds_program": 1, "name": "job", "gpu": "h100_sxm", "tokens_per_step": 8192},
             {"dimension": "dp", "part": "exposed_dp"}, {"groups": "dp", "ranks": [[0, 1]]},
             {"program": "all", "ranks": "0-1", "streams": ["compute", "nccl"]}]
    matmul = {"gemm": [4096, 4096, 4096, 1], "stream": "compute"}
    for layer in range(count):
        lines.append({"kernel": "matmul", "us": 300, "part": "forward", **matmul})
        lines.append({"kernel": "gelu", "us": 20, "part": "forward", "stream": "compute"})
        lines.append({"kernel": "gelu_bias", "us": 10, "part": "forward", "stream": "compute"})
    reductions = []
    for layer in range(count):
        lines.append({"kernel": "matmul", "us": 600, "part": "backward", **matmul})
        reductions.append(len(lines) - 4)
        lines.append({"collective": "all_reduce", "in": "dp", "bytes": 10_000_000, "stream": "nccl",
                      "after": [len(lines) - 5]})
    lines.append({"kernel": "adam", "us": 100, "part": "optimizer", "stream": "compute", "after": reductions})
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

    def test_files_of_others_are_read_and_run(self):
        """Each becomes a program file, which is the same when it is read again, and a step of all its ranks."""
        tests = ROOT / "tests" / "experiments"
        for name, path, words, gpus in (
                ("simai", tests / "simai" / "microAllReduce.txt", ("--ranks", 8), 8),
                ("kineto", tests / "kineto" / "event_sync_multi_stream.json.gz", (), 1),
                ("goal", ROOT / "tests" / "fuzz" / "seeds" / "goal" / "two_ranks.goal", (), 2),
                ("msccl", ROOT / "tests" / "fuzz" / "seeds" / "msccl" / "all_pairs.xml", ("--bytes", "1MiB"), 2),
                ("nsys", ROOT / "tests" / "fuzz" / "seeds" / "nsys" / "small.sqlite", (), 1),
                ("inspector", ROOT / "tests" / "fuzz" / "seeds" / "inspector" / "log.jsonl", (), 2)):
            with self.subTest(name):
                told = run("program", path, *words, "--to", f"{name}.jsonl", directory=self.directory).stdout
                self.assertRegex(told, rf"ranks +{gpus}, ")
                run("program", f"{name}.jsonl", "--to", "again.jsonl", directory=self.directory)
                self.assertEqual((self.directory / "again.jsonl").read_text(), (self.directory / f"{name}.jsonl").read_text())
                (self.directory / f"{name}.yaml").write_text(
                    f"name: {name}\nbase:\n  program: {{file: {name}.jsonl}}\n"
                    f"  cluster: {{gpu: h100_sxm, nodes: 1, gpus_per_node: {gpus}, nic_gbps: 400}}\nobjective: step_time_s\n")
                told = run("run", f"{name}.yaml", "--timeline", "timeline.json", directory=self.directory).stdout
                self.assertIn("step time", told)
                lines = (self.directory / f"{name}.jsonl").read_text().splitlines()
                for note in json.loads(lines[0]).get("notes", []):
                    self.assertIn(note, told)
                trace = Trace(self.directory / "timeline.json")
                self.assertEqual(trace.end, trace.about["step_time_ps"])
                streams = {stream for line in lines for stream in json.loads(line).get("streams", [])}
                self.assertLessEqual({told for (kind, _, _), told in trace.names.items() if kind == "thread_name"},
                                     streams | {"compute", "compute waits for", "host"})

    def test_times_of_aiob_become_rows_and_totals_stand_side_by_side(self):
        """The file that AICB ships, for the experiment that AICB's own example is of: GPT 13B on 8 GPUs of a tensor group."""
        (self.directory / "SPEC.yaml").write_text(
            "name: aiob\nbase:\n  model: gpt3-13b\n  cluster: {gpu: a100_80, nodes: 1, gpus_per_node: 8, nic_gbps: 200}\n"
            "  strategy: {tp: 8, micro_batch: 1, global_batch: 8}\n")
        shutil.copy(ROOT / "tests" / "experiments" / "simai" / "aiob_example.txt", self.directory / "Example.txt")
        command = re.search(r"^    manyworlds (run .*--aiob.*) > aiob.csv$", (ROOT / "docs" / "formats.md").read_text(),
                            re.MULTILINE).group(1)
        done = run(*command.split(), directory=self.directory)
        self.assertRegex(done.stderr, r"Example.txt: not used, as .*: param_time\n")
        self.assertRegex(done.stderr, r"has no time of attention_residual, cross_entropy, ")
        self.assertIn("does not say of which model", done.stderr)
        rows = done.stdout.splitlines()
        self.assertEqual(len(rows), 1 + 11)
        self.assertTrue(all(",forward," in row for row in rows[1:]))
        self.assertTrue(any(row.startswith("submodule,attention,forward,") and ",512.000000," in row for row in rows))
        (self.directory / "aiob.csv").write_text(done.stdout)
        table = ("--set", "cluster.gpu.measured_kernels=aiob.csv")
        told = run("run", "SPEC.yaml", "--totals", *table, directory=self.directory).stdout
        self.assertRegex(told, r"submodules +\S+ m?s +\d+\.\d %\n")
        self.assertRegex(told, r"attention forward +- +512\.00 us")
        error = run("run", "SPEC.yaml", *table, "--set", "cluster.gpu.measured_only=true", directory=self.directory, expect=2)
        self.assertIn("attention", error.stderr)

    def test_dumps_of_a_flight_recorder_say_who_lacks_what(self):
        """Pickles of any protocol are what JSON of the same dump is; a rank that hangs is told, and nothing is written."""
        def dump(rank, calls):
            entries = [{"record_id": i, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": i + 1,
                        "p2p_seq_id": 0, "op_id": i + 1, "profiling_name": "nccl:all_reduce", "time_created_ns": 10 ** 18 + i,
                        "input_sizes": [[1 << 20]], "input_dtypes": ["BFloat16"], "output_sizes": [[1 << 20]],
                        "output_dtypes": ["BFloat16"], "state": "completed" if i < calls - 1 else "started",
                        "time_discovered_started_ns": None, "retired": True, "timeout_ms": 600000, "is_p2p": False,
                        "frames": [{"name": "main", "filename": "train.py", "line": 7}]} for i in range(calls)]
            return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
                    "nccl_version": "2.27.3", "pg_status": {"0": {"last_enqueued_collective": calls}}, "entries": entries}

        for rank, protocol in enumerate((2, 3, 4, 5)):
            (self.directory / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(rank, 3), protocol=protocol))
            (self.directory / f"json_rank_{rank}").write_text(json.dumps(dump(rank, 3)))
            (self.directory / f"hang_rank_{rank}").write_bytes(pickle.dumps(dump(rank, 2 if rank == 1 else 3), protocol=2))
        names = {kind: [f"{kind}_rank_{rank}" for rank in range(4)] for kind in ("nccl_trace", "json", "hang")}
        for kind in ("nccl_trace", "json"):
            told = run("program", *names[kind], "--to", f"{kind}.jsonl", directory=self.directory).stdout
            self.assertIn("all ranks called the same collectives in the same order", told)
        texts = [(self.directory / f"{kind}.jsonl").read_text().splitlines()[1:] for kind in ("nccl_trace", "json")]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual("\n".join(texts[0]).count('"bytes":2097152'), 3)
        told = run("program", *names["hang"], directory=self.directory).stdout
        self.assertIn("collective 3 differs: all_reduce of 2097152 bytes on ranks 0,2-3, missing on rank 1, where the last is 2 "
                      "(all_reduce, started)", told)
        error = run("program", *names["hang"], "--to", "no.jsonl", directory=self.directory, expect=2).stderr
        self.assertIn("has no programs for --to: its ranks did not call the same", error)
        self.assertFalse((self.directory / "no.jsonl").exists())
        (self.directory / "evil_rank_0").write_bytes(pickle.dumps(pathlib.Path("/")))
        error = run("program", "evil_rank_0", directory=self.directory, expect=2).stderr
        self.assertRegex(error, "the opcode (STACK_)?GLOBAL, which plain values do not need")

    def test_commands_of_the_pages_run(self):
        seeds = ROOT / "tests" / "fuzz" / "seeds"
        shutil.copy(seeds / "nsys" / "small.sqlite", self.directory / "rank-0.sqlite")
        for rank in range(2):
            shutil.copy(seeds / "flight" / "dump.json", self.directory / f"nccl_trace_rank_{rank}")
        (self.directory / "nccl-inspector-17").mkdir()
        for name in ("nccl-inspector-17/node0.log", "nccl-inspector.log"):
            shutil.copy(seeds / "inspector" / "log.jsonl", self.directory / name)
        shutil.copy(seeds / "msccl" / "ring.xml", self.directory / "ring.xml")
        for page, outputs in (("traces_nsys", ["rank 0: process"]), ("flight_recorder", ["all ranks called the same"]),
                              ("nccl_inspector", ["all_reduce_2", "operations of 2 ranks"]),
                              ("msccl", ["ends with what the collective demands"])):
            text = (ROOT / "docs" / f"{page}.md").read_text()
            commands = re.findall(r"^    (manyworlds .*)$", text, re.MULTILINE)
            self.assertEqual(len(commands), len(outputs), page)
            for command, output in zip(commands, outputs):
                words = [name for word in command.split()[1:]
                         for name in (sorted(str(path.relative_to(self.directory)) for path in self.directory.glob(word))
                                      if "*" in word else [word])]
                self.assertIn(output, run(*words, directory=self.directory).stdout)

    def test_the_job_of_astra_sim_of_the_page_has_its_time(self):
        page = (ROOT / "docs" / "astra_sim.md").read_text()
        for name, text in zip(("system.json", "memory.json"), re.findall(r"```json\n(.*?)```", page, re.DOTALL), strict=True):
            (self.directory / name).write_text(text)
        for name, text in re.findall(r"```yaml\n# (\w+\.\w+)\n(.*?)```", page, re.DOTALL):
            (self.directory / name).write_text(text)
        for rank in range(4):
            shutil.copy(ROOT / "tests" / "experiments" / "chakra" / f"all_reduce.{rank}.et", self.directory)
        traces = [f"all_reduce.{rank}.et" for rank in range(4)]
        for named in (traces[:1], traces):
            said = run("program", *named, directory=self.directory).stdout
            self.assertIn("all traces at all_reduce, from all_reduce.0.et on", said)
            self.assertIn("rank 0: 4 ranks, 1 operations", said)
        commands = [command.split() for command in re.findall(r"^    manyworlds (.*)$", page, re.MULTILINE)]
        simulated, as_astra, sweep = [run(*command, directory=self.directory).stdout for command in commands]
        spec = (self.directory / "astra.yaml").read_text()
        for told in (simulated, as_astra):
            cluster, topology = re.search(r"with a GPU of yours: cluster: (.*), topology: (\w+)", told).groups()
            self.assertIn(f"cluster: {cluster.replace('GPU', 'a100_80')}\n  topology: {topology}\n", spec)
        self.assertIn("collectives are simulated, and not as system.json says: all-reduce-implementation", simulated)
        self.assertIn("ASTRA-sim's time: 55000 ns, of the longest rank", as_astra)
        steps = dict(self.rows("astra", "program.file", "step_time_ps"))
        self.assertEqual(steps[b"as_astra.jsonl"], 55_000_000)
        self.assertNotEqual(steps[b"job.jsonl"], 55_000_000)

    def test_files_of_astra_sim_are_refused_in_one_line(self):
        shutil.copy(ROOT / "tests" / "experiments" / "chakra" / "all_reduce.0.et", self.directory)
        (self.directory / "s.json").write_text('{"preferred-dataset-splits": 4, "all-reduce-implementation": ["tree"]}')
        (self.directory / "n.yml").write_text("topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]\nlatency: [1]\n")
        system, network = ("--astra-system", "s.json"), ("--astra-network", "n.yml")
        for words, error in [
            (system, "--astra-network: must be there: ASTRA-sim's system.json and network.yml are read together"),
            (network, "--astra-system: must be there: ASTRA-sim's"),
            (("--collectives", "as-astra"), "--astra-system: must be there, as --collectives is as-astra"),
            ((*system, *network, "--collectives", "as-recorded"),
             "all_reduce: --collectives as-recorded is of traces of PyTorch's profiler and exports of Nsight Systems, not of Chakra"),
            ((*system, *network), "s.json: all-reduce-implementation: must be a list of ring, direct"),
            ((*network, "--astra-system", "none.json"), "none.json: "),
        ]:
            said = run("program", "all_reduce", *words, directory=self.directory, expect=2).stderr
            self.assertIn(error, said)
            self.assertEqual(said.count("\n"), 1)
        (self.directory / "s.json").write_text("{}")
        said = run("program", "all_reduce", *system, *network, directory=self.directory, expect=2).stderr
        self.assertIn("n.yml:3: bandwidth: must be GB/s of a link", said)
        shutil.copy(ROOT / "tests" / "fuzz" / "seeds" / "goal" / "two_ranks.goal", self.directory)
        said = run("program", "two_ranks.goal", *system, *network, directory=self.directory, expect=2).stderr
        self.assertIn("two_ranks.goal: --astra-system is of Chakra traces, not of a schedule of GOAL", said)

    def test_every_option_of_another_format_is_refused(self):
        """Those of readers, as the help lists them, and those of specs: a program file takes none of them."""
        (self.directory / "job.jsonl").write_text(job(layers=1, micro_batches=1))
        text = run("program", "--help", directory=self.directory).stdout
        own, readers = (re.findall(r"^ +--([a-z-]+)(?: (\S+))?  ", part, re.MULTILINE) for part in text.split("readers options:"))
        self.assertGreater(len(readers), 15)
        of_specs = [row for row in own if row[0] in ("set", "catalog", "assume", "experiment")]
        self.assertEqual(len(of_specs), 4)
        for option, value in of_specs + readers:
            words = (f"--{option}", "1") if value else (f"--{option}",)
            said = run("program", "job.jsonl", *words, directory=self.directory, expect=2).stderr
            self.assertRegex(said, rf"^manyworlds program: job.jsonl: --{option} is of .*, not of a program file\n$")
        tiny = ROOT / "experiments" / "sweeps" / "tiny.yaml"
        said = run("program", tiny, "--experiment", 3, "--ranks", 4, directory=self.directory, expect=2).stderr
        self.assertIn("tiny.yaml: --ranks is of a workload of SimAI, a table of AICB and Chakra traces, not of a spec", said)
        said = run("program", tiny, "job.jsonl", "--experiment", 3, directory=self.directory, expect=2).stderr
        self.assertIn("tiny.yaml: is a spec, which is read alone", said)

    def test_files_are_compressed_by_their_names_and_whole_or_not_there(self):
        (self.directory / "job.jsonl").write_text(job(layers=1, micro_batches=1))
        run("program", "job.jsonl", "--to", "plain.jsonl", "--goal", "plain.goal", directory=self.directory)
        told = json.loads(run("program", "job.jsonl", "--to", "job.jsonl.gz", "--goal", "job.goal.gz", "--json",
                              directory=self.directory).stdout)
        self.assertEqual([one["as"] for one in told["written"]], ["a program file", "GOAL"])
        for plain, packed in (("plain.jsonl", "job.jsonl.gz"), ("plain.goal", "job.goal.gz")):
            self.assertEqual(gzip.decompress((self.directory / packed).read_bytes()), (self.directory / plain).read_bytes())
            run("program", packed, directory=self.directory)
        for words in (("--to", "none/x.jsonl"), ("--goal", "none/x.goal"), ("--chakra", "none/x")):
            said = run("program", "job.jsonl", *words, directory=self.directory, expect=74).stderr
            self.assertRegex(said, r"^manyworlds program: cannot \w+ none/x.*: No such file or directory\n$")
        (self.directory / "untimed.jsonl").write_text(re.sub(r'"us": 900, ', "", (self.directory / "job.jsonl").read_text()))
        said = run("program", "untimed.jsonl", "--goal", "untimed.goal", directory=self.directory, expect=2).stderr
        self.assertIn("'adam' has no time, which GOAL needs", said)
        self.assertEqual(list(self.directory.glob("untimed.goal*")), [])
        self.assertIn("FILE is required", run("program", directory=self.directory, expect=2).stderr)

    def test_kernels_and_hosts_are_summed_by_name(self):
        (self.directory / "job.jsonl").write_text(layers())
        words = ("program", "job.jsonl", "--by-name")
        rows = json.loads(run(*words, "--json", directory=self.directory).stdout)["programs"][0]["by_name"]
        self.assertEqual([(row["kind"], row["name"], row["count"], row["us"]) for row in rows],
                         [("kernel", "matmul", 16, 8 * 300 + 8 * 600), ("kernel", "gelu", 8, 160), ("kernel", "adam", 1, 100),
                          ("kernel", "gelu_bias", 8, 80)])
        self.assertRegex(run(*words, directory=self.directory).stdout, r"\n +kernel +16 +7\.200 ms +matmul\n +kernel +8 +160\.0 us +gelu\n")
        self.assertNotIn("gelu", run(*words[:2], directory=self.directory).stdout)
        (self.directory / "job.yaml").write_text(
            "name: job\nbase:\n  program: {file: job.jsonl}\n  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 1, nic_gbps: 400}\n")
        said = run("run", "job.yaml", "--totals", directory=self.directory, expect=2).stderr
        self.assertIn("`manyworlds program FILE --by-name` sums them", said)

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


if __name__ == "__main__":
    unittest.main()

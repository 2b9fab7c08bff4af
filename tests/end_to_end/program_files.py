"""`manyworlds program`: files of others are read, programs are written for others, and options of other formats refused."""

import gzip
import json
import pathlib
import pickle
import re
import shutil
import tempfile
import unittest

import h5py

from given_jobs import job, layers
from program import ROOT, run
from trace import Trace


class ProgramFiles(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-program-files-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

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
        with h5py.File(self.directory / "runs" / "astra" / "results.h5") as file:
            steps = dict(zip(*(file["experiments"][column][:].tolist() for column in ("program.file", "step_time_ps"))))
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
        of_specs = [row for row in own if row[0] in ("set", "assume", "experiment")]
        self.assertEqual(len(of_specs), 3)
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


if __name__ == "__main__":
    unittest.main()

"""A CUDA program is captured without a GPU, becomes a program, and is swept: the commands of docs/capture.md, and what is
refused. Skipped where there is no clang."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py

from cuda_programs import CLANG, LACKING, compile_cuda
from program import ROOT, run

PAGE = (ROOT / "docs" / "capture.md").read_text()
LAYERS, PARAMETERS, STEPS = 4, 1 << 20, 3
OPTIMIZER_BYTES = 28 * PARAMETERS * LAYERS


def plain_step(cluster):
    """What the step takes where reductions take longer than backward passes: its parts, one after the other."""
    backward_us = 150 + 64 + STEPS - 1
    lines = [{"manyworlds_program": 1, "name": "plain", "gpu": "h100_sxm", "slowdown": {"by": "none"}},
             {"dimension": "all"}, {"groups": "all", "ranks": [[0, 1, 2, 3]]},
             {"program": "rank", "ranks": "0-3", "streams": ["compute"]},
             {"copy": "host_to_device", "bytes": 4 * 8192}, {"kernel": "forward", "us": 100 * LAYERS},
             {"kernel": "backward", "us": backward_us},
             *[{"collective": "all_reduce", "in": "all", "bytes": 4 * PARAMETERS}] * LAYERS,
             {"kernel": "adam", "bytes": OPTIMIZER_BYTES}, {"copy": "device_to_host", "bytes": 4}]
    text = "".join(json.dumps({**line, "stream": "compute"} if number > 3 else line) + "\n" for number, line in enumerate(lines))
    return text, f"name: plain\nbase:\n  program: {{file: plain.jsonl}}\n{cluster}objective: step_time_s\n"


class CapturedPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="manyworlds-captured-")
        cls.directory = pathlib.Path(cls.folder.name)
        compile_cuda("training", cls.directory).rename(cls.directory / "train")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_here(self, *words, **more):
        return run(*words, directory=self.directory, **more)

    def rows(self, name, *columns):
        with h5py.File(self.directory / "runs" / name / "results.h5") as file:
            return list(zip(*(file["experiments"][column][:].tolist() for column in columns)))

    def test_the_commands_of_the_page_run_and_the_step_is_what_its_parts_take(self):
        for name in ("kernels.yaml", "train.yaml"):
            (self.directory / name).write_text(re.search(rf"```yaml\n(# {name}.*?)```", PAGE, re.DOTALL).group(1))
        commands = [line.split()[1:] for line in re.findall(r"^    (manyworlds .*)$", PAGE, re.MULTILINE)]
        self.assertEqual([words[0] for words in commands], ["capture", "program", "sweep"])
        captured = self.run_here(*commands[0])
        self.assertIn("4 of 4 ranks reached their end", captured.stdout)
        self.assertIn("next: manyworlds program records --to records.jsonl", captured.stdout)
        self.assertEqual(captured.stderr, "")  # as in a log
        self.assertEqual((self.directory / "records" / "rank0.log").read_text().splitlines()[-1], "step 2, loss 0.000000")
        told = self.run_here(*commands[1]).stdout
        self.assertRegex(told, r"ranks +4, 1 distinct programs")
        self.assertIn(f"the last of {STEPS} periods of what repeats", told)
        self.assertNotIn("have no time", told)
        self.check_program(self.directory / "train.jsonl")
        self.run_here(*commands[2])
        steps = dict(self.rows("train", "cluster.nic_gbps", "step_time_ps"))
        cluster = re.search(r"  cluster:.*\n  topology:.*\n", (self.directory / "train.yaml").read_text()).group()
        text, spec = plain_step(cluster.replace("nic_gbps: 400", "nic_gbps: 10"))
        (self.directory / "plain.jsonl").write_text(text)
        (self.directory / "plain.yaml").write_text(spec)
        self.run_here("sweep", "plain.yaml")
        self.assertEqual(steps[10], self.rows("plain", "step_time_ps")[0][0])
        self.assertGreater(steps[10], 2 * steps[400])
        self.assertGreater(steps[400], 1e6 * LAYERS * (100 + 150 + 66))

    def check_program(self, path):
        """By a plain account of what the source says."""
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([line["ranks"] for line in lines if "groups" in line], [[[0, 1, 2, 3]]])
        calls = [line for line in lines if "collective" in line]
        self.assertEqual([(call["collective"], call["bytes"]) for call in calls], [("all_reduce", 4 * PARAMETERS)] * LAYERS)
        kernels = [line["kernel"].split("(")[0] for line in lines if "kernel" in line]
        self.assertEqual(kernels, ["forward"] * LAYERS + ["backward"] * LAYERS + ["adam"])
        adam = next(line for line in lines if line.get("kernel", "").startswith("adam"))
        self.assertEqual(adam["bytes"], OPTIMIZER_BYTES)
        self.assertEqual([line["allocate"] for line in lines if "allocate" in line],
                         [2 * 4 * PARAMETERS * LAYERS + (64 << 20) + 4 * 8192])
        # Each reduction waits for the backward pass of its layer, and the optimizer for the last reduction.
        operations = [line for line in lines if "stream" in line]
        reductions = [number for number, line in enumerate(operations) if "collective" in line]
        for number in reductions:
            self.assertTrue(operations[operations[number]["after"][0]]["kernel"].startswith("backward"))
        self.assertEqual(adam["after"], [reductions[-1]])

    def capture(self, folder, *words, options=(), expect=0, program="./train", world=4):
        return self.run_here("capture", "--world", world, *options, "--to", folder, "--", program, *words, expect=expect)

    def test_two_captures_are_equal_and_one_rank_stands_for_all(self):
        for folder, at_once in (("first", 1), ("second", 3)):
            for ranks in ("0", "1-3"):  # rank 0 carries the id to the others
                self.capture(folder, "{world}", f"{folder}.id", 2, 3, 1, options=("--ranks", ranks, "-j", at_once))
            self.run_here("program", folder, "--to", f"{folder}.jsonl")
        texts = [(self.directory / f"{name}.jsonl").read_text().replace(name, "job") for name in ("first", "second")]
        self.assertEqual(*texts)
        shutil.rmtree(self.directory / "second")
        self.capture("second", "{world}", "second.id", 2, 3, 1, options=("--ranks", "0"))
        error = self.run_here("program", "second", expect=2).stderr
        self.assertIn("second: ranks 1-3 of 4 have no record", error)
        told = self.run_here("program", "second", "--alike", "--to", "alike.jsonl").stdout
        self.assertIn("1 ranks of 4 have records", told)
        programs = [[line for line in (self.directory / f"{name}.jsonl").read_text().splitlines()[1:]] for name in ("first", "alike")]
        self.assertEqual(*programs)  # but for the header

    def test_a_program_of_cuda_12_is_that_of_cuda_13(self):
        older = compile_cuda("training", self.directory, cuda=12)
        for name, program in (("of_12", older), ("of_13", "./train")):
            self.capture(name, "{world}", f"{name}.id", 2, 3, 1, program=program)
            self.run_here("program", name, "--to", f"{name}.jsonl")
        heads = [json.loads((self.directory / name / "rank3.jsonl").read_text().split("\n", 1)[0]) for name in ("of_12", "of_13")]
        self.assertEqual([head["cuda"] for head in heads], [12, 13])
        texts = [(self.directory / f"{name}.jsonl").read_text().replace(name, "job") for name in ("of_12", "of_13")]
        self.assertEqual(*texts)

    def test_a_graph_made_node_by_node_runs_its_nodes_as_they_wait_for_each_other(self):
        """tests/capture/nodes.cu: copy in | set -> join -> left | right -> copy out. After four launches one has one block of
        right, and the last has 16 of left."""
        for cuda in (12, 13):
            program = compile_cuda("nodes", self.directory, cuda=cuda)
            self.capture(f"nodes{cuda}", 4, program=program, world=1)
            self.assertEqual((self.directory / f"nodes{cuda}" / "rank0.log").read_text(), "done 6\n")
        (self.directory / "nodes.yaml").write_text('gpu: h100_sxm\nkernels:\n  - {kernel: "*", us: 10 + blocks}\n')
        told = self.run_here("program", "nodes13", "--kernels", "nodes.yaml", "--to", "nodes.jsonl").stdout
        self.assertIn("the last of 6 periods of what repeats", told)
        self.assertIn("1 copies within the host and functions of the host on streams take no time", told)
        lines = [json.loads(line) for line in (self.directory / "nodes.jsonl").read_text().splitlines()]
        operations = [line for line in lines if "stream" in line]
        self.assertEqual([(line.get("copy") or line["kernel"].split("(")[0], line["stream"], line.get("after", []))
                          for line in operations],
                         [("host_to_device", "stream 2", []), ("set", "stream 1 of nodes", []), ("join", "stream 2", [1]),
                          ("left", "stream 2", []), ("right", "stream 2 of nodes", [2]), ("device_to_host", "stream 2", [4])])
        self.assertEqual([line["us"] for line in operations if "us" in line], [10 + 8, 10 + 16, 10 + 2])
        self.assertEqual([line["bytes"] for line in operations if "copy" in line], [4096] * 3)
        self.run_here("program", "nodes13", "--kernels", "nodes.yaml", "--steps", "all", "--to", "all.jsonl")
        lines = [json.loads(line) for line in (self.directory / "all.jsonl").read_text().splitlines()]
        for kernel, us in (("left", [14] * 5 + [26]), ("right", [12] * 4 + [11, 12])):
            self.assertEqual([line["us"] for line in lines if line.get("kernel", "").startswith(kernel)], us)

    def test_occupancy_is_told_as_assumed(self):
        program = compile_cuda("occupancy", self.directory)
        self.capture("occupancy", program=program, world=1)
        told = self.run_here("program", "occupancy", "--steps", "all", "--to", "occupancy.jsonl").stdout
        self.assertIn("what fits on a multiprocessor was answered as if kernels had at most 32 registers a thread", told)
        self.assertIn("'persistent(float*, int)' (15 queries)", told)

    def test_communicators_that_are_split_have_the_groups_that_were_named(self):
        program = compile_cuda("collectives", self.directory)
        (self.directory / "groups.json").write_text('{"1": [[0, 1], [2, 3]], "2": [[0, 2], [1, 3]]}')
        done = self.capture("unsplit", "{world}", "split.id", "split", program=program, options=("--ranks", "0"), expect=3)
        self.assertIn("ncclCommSplit: which ranks have the color of this one is not known for communicator 1", done.stderr)
        self.capture("split", "{world}", "split.id", "split", program=program, options=("--groups", "groups.json"))
        self.run_here("program", "split", "--steps", "all", "--to", "split.jsonl")
        lines = [json.loads(line) for line in (self.directory / "split.jsonl").read_text().splitlines()]
        groups = [line["ranks"][0] for line in lines if "groups" in line]
        self.assertEqual(groups[:5], [[0, 1, 2, 3], [0, 1], [2, 3], [0, 2], [1, 3]])

    def test_a_device_that_is_too_small_is_the_programs_own_error(self):
        done = self.capture("small", 1, "small.id", 2, 4, 2000, options=("--memory", "1GiB"), world=1, expect=3)
        self.assertIn("then: ended with exit code 1: activations: out of memory", done.stderr)
        self.assertIn("0 of 1 rank reached its end", done.stdout)
        self.capture("large", 1, "small.id", 2, 4, 2000, options=("--memory", "3GiB"), world=1)

    def test_ranks_that_do_not_call_the_same_are_refused_with_both_lines(self):
        self.capture("uneven", "{world}", "uneven.id", 3, 4, 1, "uneven")
        error = self.run_here("program", "uneven", expect=2).stderr
        self.assertRegex(error, r"uneven/rank1.jsonl:\d+: rank 1's ncclAllReduce of 1048575 fp32 \(avg\) is number 12 in "
                                r"communicator 'manyworlds 0.0', where rank 0 has ncclAllReduce of 1048576 fp32 \(avg\) "
                                r"\(uneven/rank0.jsonl:\d+\)")

    def test_kernels_without_an_entry_are_named_by_the_sweep(self):
        self.capture("bare", 1, "bare.id", 3, 1, 1, world=1)
        told = self.run_here("program", "bare", "--to", "bare.jsonl").stdout
        self.assertIn("3 kernels of 3 launches have no time", told)
        (self.directory / "bare.yaml").write_text(
            "name: bare\nbase:\n  program: {file: bare.jsonl}\n"
            "  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 1, nic_gbps: 400}\nobjective: step_time_s\n")
        error = self.run_here("sweep", "bare.yaml", expect=2).stderr
        self.assertIn("3 kernels have no time, and no shape by which one is known: 'adam(", error)

    def test_what_cannot_be_captured_is_refused_by_name(self):
        ignore = "-Wl,--unresolved-symbols=ignore-all"
        inside = compile_cuda("two_streams", self.directory, libraries=(ignore,)).rename(self.directory / "inside")
        error = self.run_here("capture", "--", inside, expect=2).stderr
        self.assertIn("CUDA's runtime is linked in", error)
        self.assertIn("-cudart shared", error)
        for names, said in ((("libcudart.so.11.0",), "needs libcudart.so.11.0; what stands in for CUDA's libraries is of "
                                                     "major versions 12 and 13"),
                            (("libcudart.so.12", "libcublas.so.13"), "needs libcudart.so.12 and libcublas.so.13")):
            for name in names:
                subprocess.run([CLANG, "-shared", "-xc++", "/dev/null", f"-Wl,-soname,{name}", "-o", self.directory / name],
                               check=True)
            other = compile_cuda("two_streams", self.directory,
                                 libraries=(ignore, "-Wl,--no-as-needed", f"-L{self.directory}",
                                            *(f"-l:{name}" for name in names)))
            self.assertIn(said, self.run_here("capture", "--", other, expect=2).stderr)
        for words, said in (((), "the program to capture is required"), (("--", "./nothing"), "./nothing: is no program"),
                            (("--ranks", 3, "--world", 2, "--", "./train"), "--ranks: has rank 3"),
                            (("--cuda", 12, "--", "./train"), "./train: needs libcudart.so.13, and --cuda is 12"),
                            (("--cuda", 11, "--", "./train"), "--cuda: must be 12 or 13, not 11"),
                            (("--cuda", 12, "--to", "shell", "--", "true"), "as libcudart.so.12 has it"),
                            (("--gpu", "a100", "--to", "wrong", "--", "./train", 1, "wrong.id", 1, 1, 1), "a100_80"),
                            (("--to", "shell", "--", "true"), "left no record: it ended well, and called no function")):
            self.assertIn(said, self.run_here("capture", *words, expect=2).stderr)

    def test_what_stops_a_capture_is_said_with_its_rank(self):
        program = compile_cuda("two_streams", self.directory)
        done = self.capture("stopped", 1, "graph", program=program, world=2, expect=3)
        self.assertIn("rank 1: ", done.stderr)
        self.assertEqual(done.stderr.count("then: cudaGraphClone is not modelled"), 2)
        self.assertIn("holds rank0.jsonl already", self.capture("stopped", 1, program=program, expect=2).stderr)


if __name__ == "__main__":
    if not CLANG:
        print(LACKING)
        sys.exit(77)
    unittest.main()

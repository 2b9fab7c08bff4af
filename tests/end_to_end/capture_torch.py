"""Scripts of PyTorch that are captured without a GPU: their collectives are those of a real run over gloo, their memory and FLOPs
have closed forms, and what is not understood is refused. Exits with 77 where torch is not installed. Usage: capture_torch.py
[--brief | TEST...]; --brief runs those of a few seconds."""

import collections
import concurrent.futures
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import h5py

from program import ROOT, run

BRIEF = ["Page", "Costs.test_memory_is_that_of_a_plain_account", "Refusals.test_bad_words_are_refused"]
SCRIPTS = ROOT / "tests" / "end_to_end" / "torch_scripts"
PAGE = (ROOT / "docs" / "capture_torch.md").read_text()
EXPERIMENT = """
name: {name}
base:
  program: {{file: {name}.jsonl}}
  cluster: {{gpu: a100_80, nodes: 2, gpus_per_node: 2, nic_gbps: 200}}
axes:
  topology: [{{rail_optimized: {{oversubscription: 1}}}}, {{fat_tree: {{oversubscription: 4}}}}]
  cluster.gpu: [a100_80, h100_sxm]
objective: step_time_s
"""


def block(size):
    """Bytes of an allocation: the caching allocator's are multiples of 512."""
    return -(-size // 512) * 512


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT / "farm" / "python"), "OMP_NUM_THREADS": "1", **more}


class Program:
    """A program file, with what each rank does in it."""

    def __init__(self, path):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.header, self.groups, self.ranks = lines[0], {}, {}
        self.programs = []
        for line in lines[1:]:
            if "groups" in line:
                self.groups[line["groups"]] = line["ranks"]
            elif "program" in line:
                self.programs.append([])
                for piece in line["ranks"].split(","):
                    first, _, last = piece.partition("-")
                    self.ranks.update(dict.fromkeys(range(int(first), int(last or first) + 1), self.programs[-1]))
            elif self.programs:
                self.programs[-1].append(line)

    def communication(self, rank):
        """[kind, bytes, ranks of the group or [the other one]] of a rank, in order."""
        result = []
        for line in self.ranks[rank]:
            if "collective" in line:
                group = next(ranks for ranks in self.groups[line["in"]] if rank in ranks)
                result.append([line["collective"], line["bytes"], group])
            for kind, mine in (("send", 0), ("receive", 1)):
                if kind in line:
                    pair = next(pair for pair in self.groups[line[kind]] if pair[mine] == rank)
                    result.append([kind, line["bytes"], [pair[1 - mine]]])
        return result

    def levels(self, rank=0):
        """Bytes that are allocated while each kernel runs, with its name."""
        level, result = 0, []
        for line in self.ranks[rank]:
            level += line.get("allocate", 0) - line.get("free", 0)
            if "kernel" in line:
                result.append((line["kernel"], line["part"], level))
        return result, level

    def flops(self, *parts):
        return sum(2 * m * n * k * batch for line in self.ranks[0] if "gemm" in line and line["part"] in parts
                   for m, n, k, batch in [line["gemm"]])


@unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
class Captures(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-torch-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def command(self, *words, expect=0):
        done = subprocess.run([sys.executable, "-m", "manyworlds.capture_torch", *map(str, words)], cwd=self.directory,
                              env=environment(), capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def capture(self, script, *words, arguments=()):
        name = f"{script}.jsonl"
        self.command("-o", name, *words, SCRIPTS / f"{script}.py", *arguments)
        return Program(self.directory / name)

    def text(self, code, *words, expect):
        (self.directory / "script.py").write_text(code)
        return self.command("-o", "script.jsonl", *words, "script.py", expect=expect)

    def observe(self, script, world, **more):
        """What the ranks of a real run over gloo did."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]

        def one(rank):
            output = self.directory / f"observed.{rank}.json"
            done = subprocess.run([sys.executable, str(SCRIPTS / "observed.py"), str(SCRIPTS / f"{script}.py"), str(output)],
                                  env=environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1",
                                                  MASTER_PORT=str(port), **more), capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(output.read_text())

        with concurrent.futures.ThreadPoolExecutor(world) as pool:
            return list(pool.map(one, range(world)))

    def sweeps(self, name):
        """The program is read as it stands, and swept over fabrics and GPUs."""
        (self.directory / "sweep.yaml").write_text(EXPERIMENT.format(name=name))
        run("sweep", "sweep.yaml", "-j", 1, "--store", "none", directory=self.directory)
        with h5py.File(self.directory / "runs" / name / "results.h5") as file:
            self.assertEqual(file["experiments"]["status"][:].tolist(), 4 * [b"ran"])
            self.assertGreater(min(file["experiments"]["step_time_s"]), 0)


class Collectives(Captures):
    def test_plain_collectives_and_messages_are_those_of_a_real_run(self):
        """All that the script does, on every rank: kind, bytes, group and order."""
        for script, world in (("tensor_parallel", 4), ("pipeline", 4), ("pipeline", 2)):
            with self.subTest(script, world=world):
                program = self.capture(script, "--world", world, "--steps", "all")
                for rank, observed in enumerate(self.observe(script, world)):
                    calls = [call for call in observed["calls"] if len(call[2]) > 1 or call[0] in ("send", "receive")]
                    self.assertEqual(program.communication(rank), calls)

    def test_the_last_step_is_a_share_of_the_whole(self):
        for script, steps in (("tensor_parallel", 2), ("pipeline", 2)):
            last = self.capture(script, "--world", 4)
            everything = self.capture(script, "--world", 4, "--steps", "all")
            self.assertEqual(steps * last.communication(1), everything.communication(1))
            self.capture(script, "--world", 4)
            self.sweeps(script)

    def test_data_parallel_buckets_are_those_of_the_reducer(self):
        """PyTorch's own, in C++, by the profiler's events; the second bucket is reduced while the backward pass goes on."""
        program = self.capture("data_parallel", "--world", 2, "--steps", "all")
        for rank, observed in enumerate(self.observe("data_parallel", 2)):
            reduced = [4 * shape[0][0] for shape in observed["all_reduces"]]
            self.assertEqual(len(reduced), 5)  # one bucket at first, then two in each step
            self.assertEqual([size for kind, size, group in program.communication(rank) if kind == "all_reduce"], reduced)
        program = self.capture("data_parallel", "--world", 4)
        self.assertEqual(len(program.programs), 1)
        lines = program.ranks[0]
        first, second = [number for number, line in enumerate(lines) if line.get("collective") == "all_reduce"]
        between = lines[first:second]
        self.assertTrue(any("gemm" in line and line["stream"] == "compute" for line in between))
        self.assertFalse(any("wait" in line and line["stream"] == "compute" for line in between))
        self.sweeps("data_parallel")

    def test_variants_of_the_reducer_do_what_pytorchs_own_does(self):
        """Reductions and broadcasts in elements, in order, from the first step to an evaluation. PyTorch's own starts with a gathering and
        a broadcast that compare the shapes of parameters, which a capture has not."""
        for variant in ("static", "unused", "checkpoint", "accumulated"):
            with self.subTest(variant):
                program = self.capture("reducers", "--world", 2, "--ranks", "0", "--steps", "all", arguments=[variant])
                seen = [[kind, size] for kind, size, _ in program.communication(0)]
                observed = self.observe("reducers", 2, VARIANT=variant)[0]["events"]
                self.assertEqual([kind for kind, _ in observed[:2]], ["all_gather", "broadcast"])
                counts = [[kind, sum(math.prod(shape) for shape in shapes)] for kind, shapes in observed[2:]]
                self.assertEqual([kind for kind, _ in seen], [kind for kind, _ in counts])
                for (kind, size), (_, elements) in zip(seen, counts):
                    self.assertIn(size, (4 * elements, 8 * elements), (kind, variant))  # batches that were seen are counted in 8 bytes

    def test_a_hook_that_compresses_halves_the_bytes(self):
        code = ("import os, torch, torch.distributed as dist\n"
                "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
                "dist.init_process_group('nccl')\n"
                "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(600, 600).cuda(), device_ids=[int(os.environ['LOCAL_RANK'])])\n"
                "model.register_comm_hook(None, default_hooks.fp16_compress_hook)\n"
                "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
                "for _ in range(2):\n    model(torch.randn(4, 600).cuda()).sum().backward()\n    optimizer.step()\n")
        self.text(code, "--world", 2, expect=0)
        program = Program(self.directory / "script.jsonl")
        lines = program.ranks[0]
        reduced = next(number for number, line in enumerate(lines) if line.get("collective") == "all_reduce")
        self.assertEqual([line[:2] for line in program.communication(0)][-1], ["all_reduce", 2 * 600 * 601])
        # What is decompressed is waited for: the copy back comes after a wait of the stream that computes.
        after = [line for line in lines[reduced:] if line.get("stream") == "compute"]
        wait = next(number for number, line in enumerate(after) if "wait" in line)
        copies = [number for number, line in enumerate(after) if line.get("kernel") == "copy_"]
        self.assertTrue(copies and min(copies) > wait)

    def test_a_script_that_starts_its_processes_is_each_of_them(self):
        """What rank 0 says and saves reaches the others; nothing is written."""
        program = self.capture("started", "--world", 3, "--steps", "all")
        for rank in range(3):
            calls = program.communication(rank)
            self.assertEqual(calls.count(["all_reduce", 4 * 97 * 8, [0, 1, 2]]), 2)
            others = [other for other in range(3) if other != rank] if rank == 0 else [0]
            gathered, scattered = ("receive", "send") if rank == 0 else ("send", "receive")
            self.assertEqual(calls[-2 * len(others):], [[gathered, 20, [other]] for other in others] + [[scattered, 12, [other]] for other in others])
        done = self.command("-o", "x.jsonl", "--world", 4, "--per-node", 2, SCRIPTS / "started.py", expect=2)
        self.assertIn("init_process_group(world_size=2), which --world 4 makes 4", done.stderr)

    def test_sharded_parameters_are_gathered_and_reduced_by_unit(self):
        """torch 1's FSDP runs on GPUs alone, so that no run over gloo can be counted. By its rules (FULL_SHARD, BACKWARD_PRE): units are
        gathered in the forward pass, gathered again in the backward pass but for the outermost, and their gradients scattered, each
        flat and padded to a multiple of the ranks. A unit's gathering runs beside the backward pass of the one before."""
        width, layers, world = 64, 3, 4
        program = self.capture("sharded", "--world", world, "--ranks", "0-1")
        block_size = 2 * width + (4 * width * width + 4 * width) + (4 * width * width + width)
        root_size = (32 * width + width) + (8 * width + 8)
        padded = {name: 4 * (-(-size // world) * world) for name, size in (("block", block_size), ("root", root_size))}
        order = ["root"] + layers * ["block"]
        calls = program.communication(0)
        self.assertEqual([size for kind, size, _ in calls if kind == "all_gather"], [padded[one] for one in order + layers * ["block"]])
        self.assertEqual([size for kind, size, _ in calls if kind == "reduce_scatter"], [padded[one] for one in reversed(order)])
        self.assertEqual({tuple(group) for _, _, group in calls}, {tuple(range(world))})
        self.assertIn("2 of 4 ranks were captured: any other does as the captured one before it", program.header["notes"])
        whole = self.capture("sharded", "--world", world)
        self.assertEqual(whole.programs, program.programs)
        # Parameters, gradients and both states of Adam are a fourth each between steps, in one tensor for each unit.
        shards = [block(padded[one] // world) for one in order]
        self.assertLessEqual(sum(shards) * 3, program.ranks[0][0]["allocate"])
        self.assertLess(program.ranks[0][0]["allocate"], sum(shards) * 4 + (64 << 10))
        self.sweeps("sharded")


    def test_what_scripts_usually_call_is_answered(self):
        """One bucket holds all gradients; buffers are broadcast by dtype: 32 floats of batch norm, and its count."""
        program = self.capture("usual", "--world", 4, "--ranks", "0")
        parameters = 27 * 16 + 2 * 16 + 9 * 16 * 32 + 32 + 10 * 33 + 2 * (4 * 32 * 33 + 64 * 33 + 32 * 65 + 4 * 32)
        calls = [call[:2] for call in program.communication(0)]
        self.assertIn(["all_reduce", 4 * parameters], calls)
        self.assertIn(["broadcast", 4 * 32], calls)
        self.assertIn(["broadcast", 8], calls)
        self.assertEqual(calls[-4:], [["all_gather", 128], ["reduce_scatter", 128], ["all_to_all", 64], ["all_reduce", 4]])
        self.assertIn("matrix products of float16 count as bf16, whose rates they have", program.header["notes"])
        self.assertFalse((self.directory / "never.pt").exists())


class Costs(Captures):
    def test_memory_is_that_of_a_plain_account(self):
        """Weights, gradients, two states, the input and the loss; the two largest temporaries of Adam, or activations."""
        width, hidden, output = 100, 300, 50
        first, second = block(4 * hidden * width), block(4 * output * hidden)
        for batch in (64, 999):
            program = self.capture("perceptron", arguments=[batch])
            levels, end = program.levels()
            x, activations, scores = block(4 * batch * width), block(4 * batch * hidden), block(4 * batch * output)
            weights, loss = first + second, 512
            states = 3 * weights + x
            self.assertEqual(program.ranks[0][0]["allocate"], states + weights + loss)
            self.assertEqual(end, states + weights + loss)
            expected = [states + loss + activations, states + loss + 2 * activations, states + loss + activations + scores,
                        states + 2 * loss + activations + scores]
            self.assertEqual([level for _, part, level in levels if part == "forward"][:4], expected)
            backward = states + 2 * loss + activations + second  # the loss, its gradient, and what relu left
            self.assertEqual([level for _, part, level in levels if part == "backward"],
                             [backward, backward + activations, backward + 2 * activations, backward + first])
            adam = states + weights + loss
            # sqrt(v) and its quotient; those of the second weights beside the quotient of the first, which still has a name
            self.assertEqual(max(level for _, part, level in levels if part == "optimizer"), adam + max(2 * first, first + 2 * second))

    def test_adam_moves_what_its_equations_say(self):
        """Reads and writes of each elementwise kernel, in elements of all weights."""
        program = self.capture("perceptron", arguments=[8])
        elements = 100 * 300 + 300 * 50
        moved = collections.Counter()
        for line in program.ranks[0]:
            if line.get("part") == "optimizer":
                moved[line["kernel"]] += line["bytes"]
        # m *= b1; m += g (1 - b1); v *= b2; v += g g (1 - b2); d = sqrt(v); d = d / c; d += eps; w += m / d
        self.assertEqual(moved, {"mul_": 4 * elements * 4, "add_": 4 * elements * (3 + 2), "addcmul_": 4 * elements * 4,
                                 "sqrt": 4 * elements * 2, "div": 4 * elements * 2, "addcdiv_": 4 * elements * 4})

    def test_flops_of_a_gpt_are_six_a_parameter_and_token_and_attentions(self):
        layers, width, heads, length, batch, vocabulary = 3, 96, 4, 40, 2, 500
        shape = (layers, width, heads, length, batch, vocabulary)
        tokens, parameters = batch * length, layers * 12 * width * width + vocabulary * width
        attention = 2 * 2 * layers * batch * length * length * width  # scores and values, forward
        program = self.capture("gpt", arguments=shape)
        self.assertEqual(program.flops("forward"), 2 * tokens * parameters + attention)
        self.assertEqual(program.flops("backward"), 4 * tokens * parameters + 2 * attention)
        self.assertEqual({line["dtype"] for line in program.ranks[0] if "gemm" in line}, {"bf16"})
        again = self.capture("gpt", arguments=(*shape, "checkpoint"))
        self.assertEqual(again.flops("forward"), program.flops("forward"))
        self.assertEqual(again.flops("backward"), program.flops("backward"))
        self.assertEqual(again.flops("recompute"), 2 * tokens * layers * 12 * width * width + attention)
        self.assertLess(max(level for *_, level in again.levels()[0]), max(level for *_, level in program.levels()[0]))

    def test_a_model_of_65_billion_parameters_needs_no_memory_of_the_host(self):
        layers, width, length, vocabulary = 80, 8192, 64, 32000
        program = self.capture("gpt", arguments=(layers, width, 64, length, 1, vocabulary))
        parameters = layers * 12 * width * width + vocabulary * width
        attention = 2 * 2 * layers * length * length * width
        self.assertEqual(program.flops("forward", "backward"), 6 * length * parameters + 3 * attention)
        self.assertGreater(program.ranks[0][0]["allocate"], 12 * 65e9)


    def test_transposed_convolutions_are_products_over_their_input(self):
        """2 N H W Ci Co R S operations forward, by places of the input, and twice that for its gradients; so is its kind of bias."""
        code = ("import torch\nlayer = torch.nn.ConvTranspose2d(6, 10, 4, stride=2, padding=1).cuda()\n"
                "optimizer = torch.optim.SGD(layer.parameters(), 0.1)\n"
                "for _ in range(2):\n    x = torch.randn(3, 6, 8, 8, device='cuda', requires_grad=True)\n    layer(x).sum().backward()\n"
                "    assert layer.bias.grad.shape == (10,)\n    optimizer.step()\n")
        self.text(code, expect=0)
        program, once = Program(self.directory / "script.jsonl"), 2 * 3 * 8 * 8 * 6 * 10 * 4 * 4
        self.assertEqual([program.flops("forward"), program.flops("backward")], [once, 2 * once])

    def test_recurrent_networks_are_the_products_of_their_steps(self):
        """An LSTM of one layer multiplies inputs and states by four gates: 2 N T 4 H (I + H) operations, and twice that backward but for
        the gradients of inputs, which are not asked for, and of the first state."""
        code = ("import torch\nlayer = torch.nn.LSTM(12, 20, batch_first=True).cuda()\noptimizer = torch.optim.SGD(layer.parameters(), 0.1)\n"
                "for _ in range(2):\n    layer(torch.randn(3, 7, 12, device='cuda'))[0].sum().backward()\n    optimizer.step()\n")
        self.text(code, expect=0)
        self.assertEqual(Program(self.directory / "script.jsonl").flops("forward"), 2 * 3 * 7 * 4 * 20 * (12 + 20))

    def test_operators_without_shapes_of_their_own_are_found_by_zeros(self):
        """Losses that torch 1 has for values alone, and rows that a mask chooses, all of which count."""
        code = ("import torch\nimport torch.nn.functional as F\nw = torch.ones(6, 5, 4, device='cuda', requires_grad=True)\n"
                "o = torch.optim.SGD([w], 0.1)\n"
                "for _ in range(2):\n    loss = F.cross_entropy(w, torch.zeros(6, 4, dtype=torch.int64, device='cuda'))\n"
                "    chosen = w[w.sum((1, 2)) > 3]\n    assert chosen.shape == (6, 5, 4)\n"
                "    (loss + F.smooth_l1_loss(chosen, torch.zeros_like(chosen))).backward()\n    assert w.grad.shape == w.shape\n    o.step()\n")
        self.assertIn("script.py:7: elements are chosen by values that are not known: all of them", self.text(code, expect=0).stdout)


class Refusals(Captures):
    def test_what_is_not_understood_is_named(self):
        start = "import torch, torch.distributed as dist\ndist.init_process_group('nccl')\n"
        for code, named in (("import torch\ntorch.cuda.CUDAGraph()\n", "torch.cuda.CUDAGraph"),
                            ("import torch.distributed.rpc as rpc\nrpc.init_rpc('a', rank=0, world_size=2)\n", "torch.distributed.rpc.init_rpc"),
                            ("import torch\ntorch.nn.DataParallel(torch.nn.Linear(2, 2).cuda())\n", "torch.nn.DataParallel on 2 GPUs"),
                            ("import torch\ntorch.cuda.get_sync_debug_mode()\n", "get_sync_debug_mode"),
                            ("import torch\ntorch.ones(4, device='cuda').nonzero()\n", "aten::nonzero"),
                            ("import torch\ntorch.ones(4, 4, device='cuda', dtype=torch.float64).mm(torch.ones(4, 4, device='cuda').double())\n",
                             "a matrix product of torch.float64"),
                            (start + "dist.broadcast_object_list([None], src=1)\n", "broadcast_object_list from rank 1"),
                            ("import torch\ntorch.ones(4) + 1\n", "step")):
            done = self.text(code, "--world", 2, expect=2)
            self.assertIn(named, done.stderr)
            self.assertIn("manyworlds: error: ", done.stderr)
            self.assertFalse((self.directory / "script.jsonl").exists())
        done = self.text("import torch\ntorch.ones(4) + 1\n", "--steps", "all", expect=2)
        self.assertIn("ran nothing on a GPU", done.stderr)

    def test_an_exception_is_shown_as_the_scripts(self):
        code = "import torch\n\ndef f():\n    raise KeyError('mine')\n\nf()\n"
        done = self.text(code, expect=3)
        self.assertRegex(done.stderr, r'^Traceback \(most recent call last\):\n  File ".*script.py", line 6, in <module>\n')
        self.assertIn("KeyError: 'mine'\n", done.stderr)
        self.assertNotIn("runpy", done.stderr)
        self.text("import torch\na = torch.ones(2, 3, device='cuda') @ torch.ones(2, 3, device='cuda')\n", expect=3)
        self.text("raise SystemExit(4)\n", expect=3)

    def test_bad_words_are_refused(self):
        for words, said in ((("nothing.py",), "there is no script 'nothing.py'"), (("--ranks", "x", SCRIPTS / "gpt.py"), "--ranks must be"),
                            (("--world", 2, "--ranks", "0-2", SCRIPTS / "gpt.py"), "ranks are 0 to 1"),
                            (("--world", 2, "--ranks", "1", SCRIPTS / "data_parallel.py"), "rank 0 must be captured")):
            self.assertIn(said, self.command("-o", "x.jsonl", *words, expect=2).stderr)

    def test_the_script_may_say_itself_where_a_step_ends(self):
        code = ("import torch\nfrom manyworlds.capture_torch import step\n"
                "for size in (3, 5, 7):\n    a = torch.ones(size, size, device='cuda')\n    a = a @ a\n    step()\n")
        self.text(code, expect=0)
        lines = Program(self.directory / "script.jsonl").ranks[0]
        self.assertEqual([line["gemm"] for line in lines if "gemm" in line], [[7, 7, 7, 1]])
        done = subprocess.run([sys.executable, "-c", "from manyworlds.capture_torch import step; step()"], env=environment(), timeout=60)
        self.assertEqual(done.returncode, 0)

    def test_values_that_are_read_are_zeros_and_said_with_their_line(self):
        code = ("import torch\nw = torch.ones(4, device='cuda', requires_grad=True)\no = torch.optim.SGD([w], 0.1)\n"
                "for _ in range(2):\n    loss = w.sum()\n    loss.backward()\n    o.step()\n"
                "    assert loss.item() == 0.0 and not loss > 1 and float(loss) == 0 and w.tolist() == [0, 0, 0, 0]\n"
                "    print(f'{loss:.2f}', w.cpu().numpy().sum(), w.device, w.is_cuda, torch.cuda.memory_allocated())\n")
        done = self.text(code, expect=0)
        self.assertIn("0.00 0.0 cuda:0 True ", done.stdout)
        self.assertIn("script.py:8: a value is read, and is zero: assert loss.item()", done.stdout)


class Page(Captures):
    def test_its_commands_run_as_they_are_printed(self):
        scripts = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
        self.assertGreater(len(scripts), 0)
        for name, text in scripts:
            (self.directory / name).write_text(text)
        for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
            (self.directory / name).write_text(text)
        commands = re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.MULTILINE)
        self.assertEqual(len(commands), 3)
        for line in commands:
            words = line.split()
            if words[0] == "python3":
                self.assertEqual(words[1:3], ["-m", "manyworlds.capture_torch"])
                self.command(*words[3:])
            else:
                run(*words[1:], directory=self.directory)
        with h5py.File(self.directory / "runs" / "fabrics" / "results.h5") as file:
            self.assertEqual(file["experiments"]["status"][:].tolist(), 2 * [b"ran"])


if __name__ == "__main__":
    if not importlib.util.find_spec("torch"):
        print("skipped: torch is not installed for this python3 (Debian: python3-torch)")
        sys.exit(77)
    if "--brief" in sys.argv:
        sys.argv.remove("--brief")
        sys.argv += BRIEF
    unittest.main(verbosity=2)
